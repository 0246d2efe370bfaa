/*
 * manifest - what a kernel writes beside the chunks of one generation of its namespace:
 * which chunks it is made of, and what is in it.  Checked here before anything is
 * believed; what the pickled bytes mean is never looked at outside a kernel.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef KERNELMGR_MANIFEST_H
#define KERNELMGR_MANIFEST_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/err.h"

enum {
	CHUNK_HASH_SIZE = 33,          /* xxh3-128 in hexadecimal, and its NUL */
	CHUNK_MAX = 16 << 20,          /* bytes */
	MANIFEST_MAX = 64 << 20,       /* bytes */
	MANIFEST_TREE_MAX = 512 << 20, /* bytes of what is made of it; in the helper */
	CARRIES_MAX = 8,               /* generations */
	MANIFEST_CHUNKS_MAX = 4 << 20, /* 4 TiB in chunks of 1 MiB */
};

struct chunk_ref {
	char hash[CHUNK_HASH_SIZE];
	uint32_t size; /* bytes */
};

struct manifest {     /* zero is an empty one */
	json_t *root; /* owned */
	uint64_t generation;
	long long cell;
	/* Generations in which it says that names are which it could not take over
	 * ("carried" in left_out): each once, the oldest first, then 0. */
	uint64_t carries[CARRIES_MAX];
	uint64_t bytes;           /* of its chunks, each counted once */
	struct chunk_ref *chunks; /* owned; those of the stream first, each once */
	size_t count;
};

/* Fails with ERR_PARSE and what is wrong.  manifest_finish() is due only on success. */
int manifest_read(struct manifest *out, const char *text, size_t size,
		  struct err *err) must_check;
void manifest_finish(struct manifest *self);

#endif

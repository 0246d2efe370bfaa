/* depot_impl - what the depot's files share.  Nobody else includes it.
 * SPDX-License-Identifier: MIT */
#ifndef KERNELMGR_DEPOT_IMPL_H
#define KERNELMGR_DEPOT_IMPL_H

#include <limits.h>
#include <stdbool.h>

#include "kernelmgr/depot.h"
#include "kernelmgr/manifest.h"
#include "kernelmgr/names.h"

enum {
	DEPOT_WHY_SIZE = 120,
	CELLS_MAX = 8 << 20, /* bytes of cells.jsonl that are read */
};

struct generation {
	uint64_t number, parent; /* parent: the one that was in force before; 0 none */
	long long cell;
	long long
	    first; /* of the cells that ran since the state before it; 0 unknown */
	uint64_t bytes;
	bool fresh;                     /* its namespace was begun empty */
	uint64_t carries[CARRIES_MAX];  /* those it has names in, as of its manifest */
	char condemned[DEPOT_WHY_SIZE]; /* "": it may be restored */
	struct chunk_ref *chunks;       /* owned; NULL if its manifest is not right */
	size_t count;
};

struct depot {
	char path[PATH_MAX], workspace[WORKSPACE_NAME_SIZE];
	unsigned char key[DEPOT_KEY_SIZE];
	struct depot_limits limits;
	int dir, chunks, generations, spool, lock;
	uint64_t head;   /* in force; 0: the namespace is begun empty */
	uint64_t before; /* then the one that was in force before */
	uint64_t last;   /* highest number ever used */
	long long last_cell;
	long long
	    base; /* the last cell when the state in force was chosen; 0: it was made */
	struct generation *kept; /* owned; by number */
	size_t count;
	json_t *uses;          /* hash to how many of kept have it */
	uint64_t bytes;        /* of the chunks in uses */
	json_t *skip;          /* number as text to array of names */
	json_t *tried;         /* number as text to array of rows: what did not load */
	char origin[PATH_MAX]; /* of a branch: where its first states come from */
	uint64_t origin_last;  /* the last of those */
};

/* depot_file.c */
/* The whole of a regular file, not through a link.  Caller finishes *out. */
int depot_read_file(int dir, const char *name, size_t max, struct buf *out,
		    struct err *err) must_check;
/* Writes a file under another name, syncs it, and puts it in place; the directory is
 * synced too. */
int depot_write_file(int dir, const char *name, const void *data, size_t size,
		     struct err *err) must_check;
/* Calls fn for each name in a directory but "." and "..". */
void depot_each_name(int dir, void (*fn)(int dir, const char *name, void *arg),
		     void *arg);
struct depot_numbers {
	uint64_t *at; /* owned */
	size_t count;
};
/* The N of all N.json in a directory, ascending. */
void depot_list_manifests(int dir, struct depot_numbers *out);
void depot_numbers_finish(struct depot_numbers *self);
/* Checks a file's size and, if hash is true, content against its reference. */
int depot_check_chunk(int dir, const struct chunk_ref *ref, bool hash,
		      struct err *err) must_check;
/* Keyed hash of a generation's manifest, in hexadecimal. */
void depot_mac(const struct depot *self, uint64_t generation, const struct buf *text,
	       char out[2 * 32 + 1]);

/* depot.c */
struct generation *depot_generation(const struct depot *self, uint64_t number);
/* Reads a manifest that is in generations/ and checks its keyed hash. */
int depot_read_manifest(const struct depot *self, uint64_t number, struct manifest *out,
			struct err *err) must_check;
/* Adds a generation, counts its chunks, and puts it in force.  Takes the manifest's
 * chunks. */
void depot_add(struct depot *self, struct manifest *manifest);
void depot_write_name(char out[32], uint64_t number, const char *ending);
int depot_write_head(struct depot *self, struct err *err) must_check;
/* depot_adopt.c */
/* Writes N.mac and N.json. */
int depot_put_manifest(struct depot *self, uint64_t number, const struct buf *text,
		       struct err *err) must_check;
/* Drops generations over the limits, and chunks that none has. */
void depot_prune(struct depot *self);

#endif

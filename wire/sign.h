/*
 * sign - the HMAC-SHA256 of Jupyter messages (messaging spec, "The wire protocol":
 * over header, parent header, metadata and content, in this order, as 64 lower-case
 * hex digits; buffers are not signed) and the guard against replayed ones.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef WIRE_SIGN_H
#define WIRE_SIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SIGN_HEX = 64,     /* characters of a signature */
	SIGN_KEY_HEX = 64, /* characters of a key: 32 random bytes in hex */
	SIGN_PARTS = 4,
	REPLAY_MEMORY = 4096, /* signatures remembered, the newest ones */
};

struct sign_part {
	const void *data;
	size_t size;
};

/* A fresh key as text, which is also the HMAC key (Jupyter uses the text itself). */
void sign_new_key(char out[SIGN_KEY_HEX + 1]);
void sign_parts(const char *key, const struct sign_part parts[SIGN_PARTS],
		char out[SIGN_HEX + 1]);
/* Compares in constant time, and only texts of the right length. */
bool sign_check(const char *key, const struct sign_part parts[SIGN_PARTS],
		const void *signature, size_t size);

/* Signatures seen on one socket; one guard a socket, or equal messages that are
 * rightly sent on two would refuse each other. */
struct replay_guard {    /* embed it; zero remembers nothing */
	uint64_t *ring;  /* owned; newest REPLAY_MEMORY digests in order of arrival */
	uint64_t *slots; /* owned; the same as a hash set, 0 is empty */
	size_t next;
};

/* True the first time a signature is shown, false for a replay. */
bool replay_is_new(struct replay_guard *self, const char signature[SIGN_HEX]);
void replay_finish(struct replay_guard *self);

#endif

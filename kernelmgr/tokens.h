/*
 * tokens - who may come in: the one token of VIVARIUM_TOKEN, which is nobody's in
 * particular, and those of VIVARIUM_TOKENS_FILE, a user's each:
 *
 *     # comment
 *     NAME HASH
 *
 * HASH is the token's BLAKE2b-256 in hexadecimal, as `b2sum -l 256` has it.  A slow
 * hash would gain nothing: a token is 32 random bytes.  A user may have several.
 * The file is read whole or not at all: if it cannot be, those read before stay.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef KERNELMGR_TOKENS_H
#define KERNELMGR_TOKENS_H

#include <stdbool.h>
#include <stddef.h>

#include "kernelmgr/config.h"
#include "wire/err.h"
#include "wire/pass.h"

enum { TOKENS_MAX = 4096, TOKEN_HASH_SIZE = 32 };

struct token {
	unsigned char hash[TOKEN_HASH_SIZE];
	char user[PASS_USER_SIZE];
	unsigned line; /* of the file */
};

struct tokens { /* embed it; zero: there are none, and everybody may come in */
	const struct config *config;
	bool has_shared;
	unsigned char shared[TOKEN_HASH_SIZE]; /* of VIVARIUM_TOKEN */
	struct token *all;                     /* of the file, by hash */
	size_t count;
};

/* Borrows config until closed. */
int tokens_open(struct tokens *self, const struct config *config,
		struct err *err) must_check;
void tokens_close(struct tokens *self);
/* Reads the file again; on failure nothing has changed. */
int tokens_read(struct tokens *self, struct err *err) must_check;
/* Whether any are asked for. */
bool tokens_wanted(const struct config *config);
/* For the gate; self is a struct tokens. */
guard_fn tokens_admit;
pass_fn tokens_honour;

/* --new-token: makes one for the user, adds it to the file if one is configured,
 * prints it, and says what to do with it. */
int tokens_make(const struct config *config, const char *user,
		struct err *err) must_check;

#endif

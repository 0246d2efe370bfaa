/*
 * pass - what a good token stands for.  Somebody else knows the tokens: the HTTP layer
 * asks him by a guard_fn.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef WIRE_PASS_H
#define WIRE_PASS_H

#include <stdbool.h>
#include <stdint.h>

enum { PASS_USER_SIZE = 65 };

struct pass {
	char user[PASS_USER_SIZE]; /* "": the token is no single user's */
	uint64_t id;               /* of the token; says nothing about it */
};

/* True, and *out, for a good token. */
typedef bool guard_fn(void *arg, const char *token, struct pass *out);
/* Whether a pass given earlier is still good. */
typedef bool pass_fn(void *arg, const struct pass *pass);

#endif

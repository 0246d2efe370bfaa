/*
 * relay - hands messages on to the Vivarium that has the work directory, through its
 * door, and its answers back.  What is under way when that one goes is answered with an
 * error.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MCP_RELAY_H
#define MCP_RELAY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "wire/err.h"
#include "wire/loop.h"

struct relay;

struct relay_owner {
	/* An answer, as it came. */
	void (*answer)(void *arg, const char *text, size_t size);
	/* The other one has gone: answers for what was open (an array, borrowed) come
	 * along.  Destroy it. */
	void (*gone)(void *arg, json_t *answers);
	void *arg;
};

/* Fails while nobody has a door there. */
int relay_create(struct relay **out, struct loop *loop, const char *own_dir,
		 const char *user, const struct relay_owner *owner,
		 struct err *err) must_check;
void relay_destroy(struct relay **self);
/* Hands a message on (borrowed).  hello, level: the params of the `initialize` and of
 * the `logging/setLevel` that it comes after, or NULL; the other one gets them first,
 * unless he has. */
int relay_send(struct relay *self, json_t *hello, json_t *level, json_t *message,
	       struct err *err) must_check;
/* Messages that are not answered yet. */
size_t relay_open(const struct relay *self);
/* Whether no more answers are taken for now. */
void relay_pause(struct relay *self, bool paused);

#endif

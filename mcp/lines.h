/*
 * lines - messages over a pair of descriptors, one a line: standard streams and the
 * door.  Nothing blocks, whatever the descriptors are.  Input is not read while much
 * output waits, so that who does not read cannot make us grow.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MCP_LINES_H
#define MCP_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "wire/err.h"
#include "wire/loop.h"

enum {
	LINES_IN_MAX = 4 << 20,   /* bytes of a message, as over HTTP */
	LINES_OUT_MAX = 20 << 20, /* of answers that wait; an empty queue takes any */
};

struct lines;

struct lines_owner {
	/* A line, without its end; never an empty one. */
	void (*line)(void *arg, const char *text, size_t size);
	/* One was over the limit: it is skipped. */
	void (*too_long)(void *arg);
	/* Comes at most once for each of the two. */
	void (*end)(void *arg, bool broken);
	/* What was sent is out.  Or NULL. */
	void (*drained)(void *arg);
	void *arg;
};

/* Consumes both descriptors (which may be duplicates of one), also on failure.
 * line_max: bytes of a line. */
int lines_create(struct lines **out, struct loop *loop, int in, int out_fd,
		 size_t line_max, const struct lines_owner *owner,
		 struct err *err) must_check;
/* From inside its callbacks, too.  What waits to go out is dropped. */
void lines_destroy(struct lines **self);
/* Adds the line's end.  False: too much is waiting, and nothing was taken; never with
 * must. */
bool lines_send(struct lines *self, const char *text, size_t size, bool must);
/* Bytes that are not out yet; 0 when broken. */
size_t lines_waiting(const struct lines *self);
/* Whether the owner takes no more lines for now. */
void lines_pause(struct lines *self, bool paused);

#endif

/*
 * unread - lines that name answers which will not reach their client any more, until
 * the next result of the same owner tells them, once.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MCP_UNREAD_H
#define MCP_UNREAD_H

#include <stddef.h>
#include <sys/queue.h>

#include "wire/buf.h"

enum {
	UNREAD_LINES_MAX = 256,
	UNREAD_OF_ONE_MAX = 8, /* of one owner; then his oldest goes */
};

struct unread_line;

struct unread {                        /* embed it; TAILQ_INIT(&all) first */
	TAILQ_HEAD(, unread_line) all; /* unread_line::link, the oldest first */
	size_t count;
};

/* owner is only compared; line is consumed. */
void unread_add(struct unread *self, const void *owner, char *line);
/* Appends the owner's lines, and forgets them. */
void unread_tell(struct unread *self, const void *owner, struct buf *out);
void unread_finish(struct unread *self);

#endif

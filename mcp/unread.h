/*
 * unread - lines that name answers which will not reach their client any more, until
 * the next result of the same owner tells them, once.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MCP_UNREAD_H
#define MCP_UNREAD_H

#include "mcp/kept.h"
#include "wire/buf.h"

enum {
	UNREAD_LINES_MAX = 256, /* then the oldest of who has most goes */
	UNREAD_OF_ONE_MAX = 8,  /* of one owner; then his oldest goes */
};

struct unread { /* embed it; zero: there is nothing */
	struct kept lines;
};

/* owner is only compared; line is consumed. */
void unread_add(struct unread *self, const void *owner, char *line);
/* Appends the owner's lines, and forgets them. */
void unread_tell(struct unread *self, const void *owner, struct buf *out);
void unread_finish(struct unread *self);

#endif

/*
 * sendq - what still has to go out on one connection, bounded in bytes.  Bytes
 * leave it only in a writeable callback, never more than SENDQ_PIECE at a time,
 * so lws itself never buffers more than one piece.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef WIRE_SENDQ_H
#define WIRE_SENDQ_H

#include <stdbool.h>
#include <stddef.h>

enum { SENDQ_PIECE = 64 * 1024 };

struct sendq { /* embed it; zero is an empty queue */
	struct sendq_item *head, **tail;
	size_t size; /* bytes not yet handed to lws */
};

/* One piece of the oldest message; data has LWS_PRE writable bytes before it. */
struct piece {
	unsigned char *data;
	size_t size;
	bool first, last;
};

/* True if a message of this size must wait.  An empty queue takes any message. */
bool sendq_full(const struct sendq *self, size_t size, size_t max);
/* Copies up to three parts as one message. */
void sendq_add(struct sendq *self, const void *const *parts, const size_t *sizes,
	       int count);
bool sendq_peek(const struct sendq *self, struct piece *out);
void sendq_drop(struct sendq *self, size_t size);
void sendq_finish(struct sendq *self);

#endif

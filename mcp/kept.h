/*
 * kept - what is kept for a while, for who comes back for it: whose each thing is and
 * how many bytes it has, so that who keeps most loses the oldest of his first.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MCP_KEPT_H
#define MCP_KEPT_H

#include <stddef.h>
#include <sys/queue.h>

struct kept_owner;

struct kept_item { /* embed it; zero: it is not among them */
	TAILQ_ENTRY(kept_item) link;
	struct kept_owner *owner;
	size_t bytes;
	void *what; /* that embeds it */
};

struct kept { /* embed it; zero: there is nothing */
	LIST_HEAD(, kept_owner) owners;
	size_t count, bytes;
};

/* As the youngest of its owner's. */
void kept_add(struct kept *self, struct kept_item *item, const void *owner,
	      size_t bytes, void *what);
/* Both are harmless if it is not among them. */
void kept_resize(struct kept *self, struct kept_item *item, size_t bytes);
void kept_remove(struct kept *self, struct kept_item *item);

/* How many an owner has. */
size_t kept_count(const struct kept *self, const void *owner);
/* What embeds the oldest one of an owner; of the owner who has most bytes.  NULL: there
 * is none. */
void *kept_oldest_of(const struct kept *self, const void *owner);
void *kept_oldest_of_most(const struct kept *self);

#endif

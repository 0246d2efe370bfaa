// SPDX-License-Identifier: MIT
#include "mcp/kept.h"

#include <stdlib.h>

#include "wire/mem.h"

struct kept_owner {
	LIST_ENTRY(kept_owner) link;
	const void *who;
	TAILQ_HEAD(, kept_item)
	items; /* kept_item::link, the oldest first; not empty */
	size_t count, bytes;
};

static struct kept_owner *find(const struct kept *self, const void *who)
{
	struct kept_owner *owner;

	LIST_FOREACH(owner, &self->owners, link)
	if (owner->who == who)
		return owner;
	return NULL;
}

static struct kept_owner *find_or_make(struct kept *self, const void *who)
{
	struct kept_owner *owner = find(self, who);

	if (owner)
		return owner;
	owner = xcalloc(1, sizeof *owner);
	owner->who = who;
	TAILQ_INIT(&owner->items);
	LIST_INSERT_HEAD(&self->owners, owner, link);
	return owner;
}

void kept_add(struct kept *self, struct kept_item *item, const void *owner,
	      size_t bytes, void *what)
{
	item->owner = find_or_make(self, owner);
	item->bytes = bytes;
	item->what = what;
	TAILQ_INSERT_TAIL(&item->owner->items, item, link);
	item->owner->count++;
	item->owner->bytes += bytes;
	self->count++;
	self->bytes += bytes;
}

void kept_resize(struct kept *self, struct kept_item *item, size_t bytes)
{
	if (!item->owner)
		return;
	item->owner->bytes += bytes - item->bytes;
	self->bytes += bytes - item->bytes;
	item->bytes = bytes;
}

void kept_remove(struct kept *self, struct kept_item *item)
{
	struct kept_owner *owner = item->owner;

	if (!owner)
		return;
	TAILQ_REMOVE(&owner->items, item, link);
	owner->bytes -= item->bytes;
	self->bytes -= item->bytes;
	self->count--;
	item->owner = NULL;
	if (--owner->count)
		return;
	LIST_REMOVE(owner, link);
	free(owner);
}

size_t kept_count(const struct kept *self, const void *who)
{
	const struct kept_owner *owner = find(self, who);

	return owner ? owner->count : 0;
}

static void *oldest(const struct kept_owner *owner)
{
	return owner ? TAILQ_FIRST(&owner->items)->what : NULL;
}

void *kept_oldest_of(const struct kept *self, const void *who)
{
	return oldest(find(self, who));
}

void *kept_oldest_of_most(const struct kept *self)
{
	const struct kept_owner *owner, *most = NULL;

	LIST_FOREACH(owner, &self->owners, link)
	if (!most || owner->bytes > most->bytes)
		most = owner;
	return oldest(most);
}

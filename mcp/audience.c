// SPDX-License-Identifier: MIT
#include "mcp/audience.h"

#include <stdlib.h>

#include "mcp/outlet.h"
#include "wire/mem.h"

struct listener {
	TAILQ_ENTRY(listener) link;
	uint64_t session;
	int level;
};

void audience_init(struct audience *self)
{
	TAILQ_INIT(&self->all);
}

static struct listener *find(const struct audience *self, uint64_t session)
{
	struct listener *listener;

	TAILQ_FOREACH(listener, &self->all, link)
	if (listener->session == session)
		return listener;
	return NULL;
}

static void drop(struct audience *self, struct listener *listener)
{
	TAILQ_REMOVE(&self->all, listener, link);
	self->count--;
	free(listener);
}

/* The one of the session, now the youngest. */
static struct listener *find_or_make(struct audience *self, uint64_t session)
{
	struct listener *listener = find(self, session);

	if (listener) {
		TAILQ_REMOVE(&self->all, listener, link);
	} else {
		if (self->count == AUDIENCE_MAX)
			drop(self, TAILQ_FIRST(&self->all));
		listener = xcalloc(1, sizeof *listener);
		*listener = (struct listener){.session = session, .level = LOG_NONE};
		self->count++;
	}
	TAILQ_INSERT_TAIL(&self->all, listener, link);
	return listener;
}

int audience_level(const struct audience *self, uint64_t session)
{
	const struct listener *listener = session ? find(self, session) : NULL;

	return listener ? listener->level : LOG_NONE;
}

void audience_set_level(struct audience *self, uint64_t session, int level)
{
	find_or_make(self, session)->level = level;
}

void audience_forget(struct audience *self, uint64_t session)
{
	struct listener *listener = find(self, session);

	if (listener)
		drop(self, listener);
}

void audience_finish(struct audience *self)
{
	struct listener *listener;

	while ((listener = TAILQ_FIRST(&self->all)))
		drop(self, listener);
}

// SPDX-License-Identifier: MIT
#include "mcp/unread.h"

#include <stdlib.h>

#include "wire/mem.h"

struct unread_line {
	TAILQ_ENTRY(unread_line) link;
	const void *owner;
	char *text; /* owned */
};

static void drop(struct unread *self, struct unread_line *line)
{
	TAILQ_REMOVE(&self->all, line, link);
	self->count--;
	free_text(&line->text);
	free(line);
}

/* The oldest one of an owner who has too many, or of all when there are too many. */
static void make_room(struct unread *self, const void *owner)
{
	struct unread_line *line, *oldest = NULL;
	size_t count = 0;

	TAILQ_FOREACH(line, &self->all, link)
	{
		if (line->owner != owner)
			continue;
		oldest = oldest ? oldest : line;
		count++;
	}
	if (count >= UNREAD_OF_ONE_MAX)
		drop(self, oldest);
	else if (self->count >= UNREAD_LINES_MAX)
		drop(self, TAILQ_FIRST(&self->all));
}

void unread_add(struct unread *self, const void *owner, char *text)
{
	struct unread_line *line = xcalloc(1, sizeof *line);

	make_room(self, owner);
	*line = (struct unread_line){.owner = owner, .text = text};
	TAILQ_INSERT_TAIL(&self->all, line, link);
	self->count++;
}

void unread_tell(struct unread *self, const void *owner, struct buf *out)
{
	struct unread_line *line, *next;

	for (line = TAILQ_FIRST(&self->all); line; line = next) {
		next = TAILQ_NEXT(line, link);
		if (line->owner != owner)
			continue;
		buf_text(out, line->text);
		drop(self, line);
	}
}

void unread_finish(struct unread *self)
{
	struct unread_line *line;

	while ((line = TAILQ_FIRST(&self->all)))
		drop(self, line);
}

// SPDX-License-Identifier: MIT
#include "mcp/unread.h"

#include <stdlib.h>

#include "wire/mem.h"

struct unread_line {
	struct kept_item kept;
	char *text; /* owned */
};

static void drop(struct unread *self, struct unread_line *line)
{
	kept_remove(&self->lines, &line->kept);
	free_text(&line->text);
	free(line);
}

void unread_add(struct unread *self, const void *owner, char *text)
{
	struct unread_line *line = xcalloc(1, sizeof *line);

	if (kept_count(&self->lines, owner) >= UNREAD_OF_ONE_MAX)
		drop(self, kept_oldest_of(&self->lines, owner));
	else if (self->lines.count >= UNREAD_LINES_MAX)
		drop(self, kept_oldest_of_most(&self->lines));
	line->text = text;
	kept_add(&self->lines, &line->kept, owner, 1, line);
}

void unread_tell(struct unread *self, const void *owner, struct buf *out)
{
	struct unread_line *line;

	while ((line = kept_oldest_of(&self->lines, owner))) {
		buf_text(out, line->text);
		drop(self, line);
	}
}

void unread_finish(struct unread *self)
{
	struct unread_line *line;

	while ((line = kept_oldest_of_most(&self->lines)))
		drop(self, line);
}

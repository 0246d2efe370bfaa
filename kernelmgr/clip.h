/*
 * clip - text of any length, of which the first thousand characters and the tail are
 * kept and the rest is counted.  Takes memory in proportion to the limit only.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef KERNELMGR_CLIP_H
#define KERNELMGR_CLIP_H

#include <stddef.h>

#include "wire/buf.h"

enum { CLIP_HEAD = 1000 }; /* characters */

struct clip {         /* embed it; zero, with limit set */
	size_t limit; /* characters kept in all, more than CLIP_HEAD */
	size_t total; /* characters added */
	struct buf head, tail;
	size_t head_chars, tail_chars;
};

/* text is UTF-8. */
void clip_add(struct clip *self, const char *text, size_t size);
/* Appends what was kept to out, without terminal control sequences, and where
 * something is missing a line that says how much. */
void clip_render(const struct clip *self, struct buf *out);
/* Ends the text with a newline unless it is empty or has one. */
void clip_end_line(struct clip *self);
void clip_finish(struct clip *self);

#endif

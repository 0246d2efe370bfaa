/*
 * screen - printed text as it stands at the end: carriage returns, backspaces and
 * movements of the cursor change what is there, as in a notebook or a terminal, so that
 * a progress bar is one line.  The last lines can still change; those above are in a
 * clip.  Takes memory in proportion to the clip's limit only.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef KERNELMGR_SCREEN_H
#define KERNELMGR_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernelmgr/clip.h"

enum {
	SCREEN_ROWS = 16,      /* lines that can still change */
	SCREEN_COLUMNS = 2048, /* a longer line can change in its last part only */
};

struct screen_row {
	uint32_t *cells; /* owned: code points */
	size_t used, room;
};

struct screen {           /* embed it; zero, with kept.limit set */
	struct clip kept; /* what can change no more */
	struct screen_row rows[SCREEN_ROWS];
	size_t last;        /* the lowest row that there is */
	size_t row, column; /* where the next character goes */
	unsigned number;    /* of the control sequence that is being read */
	int reading;        /* which part of one; 0: text */
};

/* text is UTF-8. */
void screen_add(struct screen *self, const char *text, size_t size);
/* Nothing that comes later changes what is there; a line that is under way is ended. */
void screen_settle(struct screen *self);
bool screen_is_empty(const struct screen *self);
/* Appends what is there to out; where something is missing, a line says how much. */
void screen_render(const struct screen *self, struct buf *out);
void screen_finish(struct screen *self);

#endif

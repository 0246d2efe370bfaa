/*
 * outputs - what one execution has sent: its broadcasts and its reply, gathered into
 * text and pictures within limits, as they stand at the end: what was cleared is gone,
 * and a display that was updated is there once, in its place.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef KERNELMGR_OUTPUTS_H
#define KERNELMGR_OUTPUTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "kernelmgr/screen.h"
#include "wire/jmsg.h"

enum {
	DISPLAYS_MAX = 32,            /* pictures of one call that are kept at all */
	DISPLAY_BYTES_MAX = 64 << 20, /* of all of them together */
	PIECES_MAX = 32,              /* of stdout; what is more joins the last one */
};

struct display {            /* one image/png, as it came */
	unsigned char *png; /* owned */
	size_t size;
	char *id;    /* owned: display_id, or NULL */
	char *saved; /* owned: the file in the workspace it is in too, or NULL */
};

/* stdout is a list of these, since a display within it may be updated later. */
struct piece {
	char *id; /* owned: display_id, or NULL for what nothing updates */
	struct screen text;
};

struct outputs { /* embed it; outputs_init() first */
	struct piece pieces[PIECES_MAX];
	size_t piece_count, limit;
	struct screen err;
	struct clip result, traceback;
	char *error_name, *error_value; /* owned; NULL without an error */
	struct display displays[DISPLAYS_MAX];
	size_t display_count, display_bytes, displays_dropped;
	long long execution_count; /* 0 until known */
	json_t *summary;           /* owned: the reply's metadata.vivarium, or NULL */
	bool replied, idle, busy, aborted;
	bool clear_next; /* clear_output(wait=True): by what comes next */
};

void outputs_init(struct outputs *self, size_t limit);
/* A broadcast that belongs to this execution. */
void outputs_add(struct outputs *self, const struct jmsg *message);
/* Its execute_reply. */
void outputs_reply(struct outputs *self, const struct jmsg *message);
void outputs_finish(struct outputs *self);
/* Forgets one of the pictures. */
void outputs_drop_display(struct outputs *self, size_t index);
/* Text of a stream, and how many bytes before it nobody has any more. */
void outputs_add_rest(struct outputs *self, bool is_err, const char *text, size_t size,
		      size_t lost);
/* The text of stdout, with what was displayed between; of stderr. */
void outputs_out(const struct outputs *self, struct buf *out);
void outputs_err(const struct outputs *self, struct buf *out);

/* Appends the text of a stream or display message to a clip, for output that belongs
 * to no call that is still open. */
void outputs_add_late(struct clip *late, const struct jmsg *message);

#endif

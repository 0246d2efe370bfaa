/*
 * outputs - what one execution has sent: its broadcasts and its reply, gathered into
 * text and pictures within limits.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef KERNELMGR_OUTPUTS_H
#define KERNELMGR_OUTPUTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "kernelmgr/clip.h"
#include "wire/jmsg.h"

enum {
	DISPLAYS_MAX = 32,            /* pictures of one call that are kept at all */
	DISPLAY_BYTES_MAX = 64 << 20, /* of all of them together */
};

struct display {            /* one image/png, as it came */
	unsigned char *png; /* owned */
	size_t size;
};

struct outputs { /* embed it; outputs_init() first */
	struct clip out, err, result, traceback;
	char *error_name, *error_value; /* owned; NULL without an error */
	struct display displays[DISPLAYS_MAX];
	size_t display_count, display_bytes, displays_dropped;
	long long execution_count; /* 0 until known */
	json_t *summary;           /* owned: the reply's metadata.vivarium, or NULL */
	bool replied, idle, busy, aborted;
};

void outputs_init(struct outputs *self, size_t limit);
/* A broadcast that belongs to this execution. */
void outputs_add(struct outputs *self, const struct jmsg *message);
/* Its execute_reply. */
void outputs_reply(struct outputs *self, const struct jmsg *message);
void outputs_finish(struct outputs *self);

/* Appends the text of a stream or display message to a clip, for output that belongs
 * to no call that is still open. */
void outputs_add_late(struct clip *late, const struct jmsg *message);

#endif

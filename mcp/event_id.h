/*
 * event_id - the ids of events on streams that can be resumed: KIND NAME _ SEQ
 * [_ REQUEST].  The first half of a name is random; the second shows that we gave it to
 * this session, also after a restart.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MCP_EVENT_ID_H
#define MCP_EVENT_ID_H

#include <stdbool.h>
#include <stdint.h>

#include "mcp/session.h"
#include "wire/buf.h"

enum {
	EVENT_ID_NAME_BYTES = 16,
	EVENT_ID_REQUEST_MAX = 96, /* characters; what is longer is left out */
	EVENT_ID_SIZE = 192,       /* written, with its NUL */
};

enum stream_kind { KIND_ANSWER = 'a', KIND_STANDING = 's' };

struct event_id {
	enum stream_kind kind;
	unsigned char name[EVENT_ID_NAME_BYTES]; /* of the stream */
	uint64_t seq;                            /* of the event in it */
	/* The id of the request that the stream answers, as JSON; "": none, or several.
	 */
	char request[EVENT_ID_REQUEST_MAX + 1];
};

/* Gives the stream of this kind and session a new name. */
void event_id_name(struct event_id *self, const struct sessions *sessions,
		   uint64_t session);
/* As a line of an event stream. */
void event_id_write(const struct event_id *self, struct buf *out);
/* False: it is none that this session was ever given. */
bool event_id_read(struct event_id *out, const struct sessions *sessions,
		   uint64_t session, const char *text);

#endif

/*
 * sse - the transport of 2024-11-05 ("HTTP with SSE"): a GET is answered by a stream
 * whose first event, `endpoint`, says where to POST messages to; their answers come on
 * that stream.  A conversation like those over WebSockets; nothing of it is resumed.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MCP_SSE_H
#define MCP_SSE_H

#include <stdbool.h>
#include <sys/queue.h>

#include "mcp/channel.h"
#include "mcp/who.h"
#include "wire/http.h"

struct talk;
struct sses {                      /* embed it; LIST_INIT(&all) */
	struct channels *channels; /* borrowed, like the next */
	const struct who *who;
	LIST_HEAD(, talk) all; /* talk::link */
};

/* A GET that begins a conversation. */
void sse_open(struct sses *self, struct exchange *exchange);
/* Whether a POST belongs to one. */
bool sse_is_named(struct exchange *exchange);
/* Takes such a POST. */
void sse_post(struct sses *self, struct exchange *exchange);

#endif

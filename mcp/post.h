/*
 * post - one POST with messages in it: hands them to the server, gathers the answers,
 * and sends them as JSON when all are there within 250 ms and nothing was to be said
 * before, else as an event stream, if the client takes one.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MCP_POST_H
#define MCP_POST_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/queue.h>

#include "mcp/server.h"
#include "mcp/session.h"
#include "mcp/stream.h"
#include "wire/http.h"
#include "wire/loop.h"

enum { POST_HEADERS_MAX = SESSION_ID_SIZE + 32 };

struct posts {             /* embed it; all that are not answered yet */
	struct loop *loop; /* borrowed, like the next */
	struct server *server;
	struct streams *streams;
	bool eager;            /* sessions get a stream whenever they take one */
	LIST_HEAD(, post) all; /* post::link */
};

/* Takes the messages (an array, borrowed) and ends the exchange, now or later.
 * session: whose they are; headers: lines for the answer's head, or "". */
void post_take(struct posts *posts, struct exchange *exchange, const json_t *messages,
	       bool batch, const struct session *session,
	       const struct server_context *context, const char *headers);
/* Drops what is open, unanswered. */
void posts_finish(struct posts *self);

/* Answers with a JSON value (borrowed).  Ends the exchange. */
void post_reply_json(struct exchange *exchange, int status, const char *headers,
		     json_t *message);

#endif

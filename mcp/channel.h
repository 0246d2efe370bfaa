/*
 * channel - one conversation over a stream of messages, whatever carries it: standard
 * streams, the door of another Vivarium, a WebSocket.  All revisions: of which one a
 * message is, is decided message by message, as over HTTP.  It differs from HTTP in
 * that answers find their request by its id alone, and that a cancelled request is not
 * answered.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MCP_CHANNEL_H
#define MCP_CHANNEL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include "mcp/server.h"

enum {
	CHANNEL_OPEN_MAX = 128, /* requests being answered */
	CHANNEL_BATCH_MAX = 100,
	CHANNEL_WAITING_MAX = 256 * 1024, /* bytes; then notifications are dropped */
};

struct channel;

struct channels { /* embed it: what all conversations share; channels_listen() */
	struct teller teller;
	struct server *server; /* borrowed */
	/* borrowed; NULL while this process has none: see divert */
	struct workspaces *workspaces;
	LIST_HEAD(, channel) all;      /* channel::link */
	LIST_HEAD(, channel_ask) asks; /* channel_ask::link; of those that left, too */
};

struct channel_link { /* what carries it */
	/* Takes one message.  False: too much is waiting already, and nothing was
	 * taken; never with must. */
	bool (*send)(void *arg, const char *text, size_t size, bool must);
	/* Bytes that wait to go out. */
	size_t (*waiting)(void *arg);
	/* Whose workspace it is: sets context's workspace, or else its refusal. */
	void (*who)(void *arg, struct server_context *context);
	/* True if the message, which needs a workspace or belongs to one that does, is
	 * dealt with elsewhere.  NULL: all are answered here. */
	bool (*divert)(void *arg, json_t *message);
	/* Nothing is left to answer.  Or NULL. */
	void (*idle)(void *arg);
	void *arg;
};

/* Borrows channels until destroyed; copies link. */
struct channel *channel_create(struct channels *channels,
			       const struct channel_link *link);
/* The other side has left.  What it asked for in a revision up to 2025-11-25 goes on,
 * and its answer is dropped; later ones are cancelled. */
void channel_destroy(struct channel **self);
/* Takes a message: the text of one, or a value (borrowed).  Never inside send(). */
void channel_take(struct channel *self, const char *text, size_t size);
void channel_take_value(struct channel *self, json_t *message);
/* Answers what could not even be read. */
void channel_refuse(struct channel *self, int code, const char *text);
/* The same, for one over the limit of LINES_IN_MAX. */
void channel_refuse_long(struct channel *self);
/* Answers each request in the message with this failure. */
void channel_fail(struct channel *self, json_t *message, const struct err *err);
/* Requests that wait for an answer. */
size_t channel_open(const struct channel *self);
/* The params of its `initialize`, or NULL.  Borrows until the next one comes. */
json_t *channel_hello(const struct channel *self);
/* The same of its `logging/setLevel`. */
json_t *channel_level(const struct channel *self);

/* Once its server is there: conversations are told what happens. */
void channels_listen(struct channels *self);
/* Ends what was asked for and has no end of its own. */
void channel_hang_up(struct channel *self);
/* After server_destroy(): nobody answers any more. */
void channels_finish(struct channels *self);

#endif

/*
 * stream - the event streams of streamable HTTP: the one that answers a POST, and those
 * that a session's GET is given.  Where the revision can resume, the events are kept
 * for a while, so that who has lost the connection goes on behind the last one he has
 * seen.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MCP_STREAM_H
#define MCP_STREAM_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "mcp/kept.h"
#include "mcp/session.h"
#include "mcp/unread.h"
#include "wire/http.h"
#include "wire/loop.h"

enum {
	STREAM_NOTES_MAX = 256 * 1024, /* bytes of a stream's events; answers besides */
	STREAM_STANDING_MAX = 32,      /* a session's; the oldest makes room */
	/* An answer that nobody has come back for in this time counts as not read. */
	STREAM_UNREAD_US = 10 * 1000 * 1000,
};

struct stream;

struct streams { /* embed it; streams_init(), and what is borrowed, by the owner */
	struct loop *loop;               /* borrowed, like the next */
	const struct sessions *sessions; /* whose key signs the ids of events */
	int64_t keep_us; /* how long the events of one that nobody reads are kept */
	size_t keep_max; /* bytes of events kept in all */
	TAILQ_HEAD(stream_list, stream) all; /* stream::link, the oldest first */
	size_t bytes;                        /* of their events */
	struct kept kept;     /* those that are over and that nobody reads */
	struct unread unread; /* answers that were forgotten */
};

struct stream_options {
	const struct session *session; /* borrowed for the call; serial 0: it cannot be
					  resumed */
	const json_t *request;         /* id of the one request it answers, or NULL */
	const void *owner; /* whose events compete for keep_max: who has most loses */
	const char *headers;
	/* The client left and cannot come back: the stream cannot be resumed, or it has
	 * not been given an id to resume it by.  Or NULL. */
	void (*left)(void *arg);
	void *arg;
};

void streams_init(struct streams *self);
/* After http_stop(). */
void streams_finish(struct streams *self);

/* Starts the stream that answers a POST; the exchange is its own from then on.  Lives
 * until stream_end(), and, where it can be resumed, beyond it for a while. */
struct stream *stream_open(struct streams *self, struct exchange *exchange,
			   const struct stream_options *options);
/* message: borrowed.  False: it was dropped, because too much waits to be read (never
 * with must), or nobody ever will read it. */
bool stream_send(struct stream *self, json_t *message, bool must);
/* The same for an answer, which is never dropped while somebody may read it.  about: a
 * whole line for streams_tell_unread(), consumed, or NULL. */
void stream_answer(struct stream *self, json_t *message, char *about);
/* Ends the connection, not the stream; false where it cannot be resumed. */
bool stream_disconnect(struct stream *self);
/* Nothing more will be sent; what was goes out. */
void stream_end(struct stream **self);

/* A GET without Last-Event-ID: takes the exchange for what the session is told besides
 * its answers.  The newest one is told; the older stay open. */
void streams_stand(struct streams *self, struct exchange *exchange,
		   const struct session *session, const void *owner);
/* Tells the session, if it has such a stream. */
void streams_tell(struct streams *self, uint64_t session, json_t *message);
/* The same for all sessions. */
void streams_tell_all(struct streams *self, json_t *message);
/* A GET with Last-Event-ID: answers the exchange, or -1 if the id is none that this
 * session was ever given.  A stream that is known no more, as after a restart, goes on
 * empty, or says that its answer is lost. */
int streams_resume(struct streams *self, struct exchange *exchange,
		   const struct session *session, const void *owner,
		   const char *event_id) must_check;
/* Appends the line about each answer to what is this owner's that did not get to its
 * client, once: nobody came back for it, or it is too late for that. */
void streams_tell_unread(struct streams *self, const void *owner, struct buf *out);
/* The session was deleted. */
void streams_forget(struct streams *self, uint64_t session);

#endif

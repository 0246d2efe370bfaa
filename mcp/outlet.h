/*
 * outlet - how the code of a running request talks to its client besides the answer:
 * notifications, log messages and progress on the stream of that request, and, in the
 * revisions that have them, requests of the server's own.  What carries it is not seen.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MCP_OUTLET_H
#define MCP_OUTLET_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "wire/loop.h"

struct server_context;

struct outlet { /* copied; good until the request is answered */
	/* One message (borrowed).  False: not taken, as nobody is there, or this client
	 * takes no stream, or, never with must, because too much waits. */
	bool (*send)(void *arg, json_t *message, bool must);
	/* Ends the connection, not the stream, where that can be resumed; else false.
	 * Or NULL. */
	bool (*disconnect)(void *arg);
	/* A whole line that names the next answer, instead of the one before; consumed.
	 * "": none.  It is told with a later result if nobody comes back for the
	 * answer.  Or NULL. */
	void (*about)(void *arg, char *line);
	void *arg;
};

/* params is consumed.  Dropped rather than queued without end: false. */
bool outlet_notify(const struct outlet *self, const char *method, json_t *params);
bool outlet_disconnect(const struct outlet *self);
void outlet_about(const struct outlet *self, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Only if the request has a progress token.  total: below 0 for none.  message: or
 * NULL.  progress has to grow with each. */
bool outlet_progress(const struct server_context *context, double progress,
		     double total, const char *message);

enum { LOG_NONE = -1 }; /* the level of who wants no log messages */
/* Of RFC 5424: 0 debug ... 7 emergency; LOG_NONE for what is no level. */
int outlet_level(const char *name);
/* Only if the client's level asks for it.  data is consumed. */
bool outlet_log(const struct server_context *context, const char *level,
		const char *logger, json_t *data);

/* ---- requests of ours; up to 2025-11-25 ---- */

struct question;
struct questions { /* embed it: those that are open */
	struct loop *loop;
	LIST_HEAD(, question) all; /* question::link */
};
/* response: the whole message, with result or error; borrowed.  NULL: nobody will
 * answer any more.  Comes once, from the loop or a transport, never inside
 * outlet_ask(). */
typedef void question_fn(const json_t *response, void *arg);

enum {
	QUESTIONS_OF_ONE_MAX = 8,
	QUESTIONS_MAX = 1024
}; /* open, of a session; of all */
/* params is consumed.  NULL if it could not be sent, or too many are open. */
struct question *outlet_ask(struct questions *questions,
			    const struct server_context *context, const char *method,
			    json_t *params, int64_t timeout_s, question_fn *done,
			    void *arg);
/* The answer is not wanted any more, and the client is told so.  NULL-safe; not after
 * done(). */
void outlet_withdraw(struct question **self);

/* For the server: a response came; those of other sessions, and to nothing, are
 * ignored. */
void questions_take(struct questions *self, const json_t *response, uint64_t session);
/* The other side has left. */
void questions_left(struct questions *self, uint64_t session);
/* Without a word to anybody. */
void questions_finish(struct questions *self);

#endif

/*
 * http - HTTP/1.1 and event streams on one port, in the loop.  The only files that
 * see an lws connection are http.c, connection.c, exchange*.c, ws*.c and header.c.
 *
 * Every request passes, in this order: the gate (Host, Origin), HEAD 405,
 * /.well-known/ 404, the guard (401; not for GET of an open route), the route by its
 * exact path (404), its methods (405), the size announced (413), begin(), the body,
 * request().  What is refused on the way gets {"error": "..."} and never reaches a
 * route.
 *
 * An exchange is one request and its answer.  It ends with http_reply(),
 * http_error() or http_stream_end() - do not touch it after them - or with its
 * on_gone function, when the client leaves first.  Inside request() it may be
 * answered at once, or be kept and answered later from anywhere in the loop.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef WIRE_HTTP_H
#define WIRE_HTTP_H

#include <stdbool.h>
#include <stddef.h>

#include "wire/err.h"
#include "wire/loop.h"
#include "wire/pass.h"
#include "wire/tls.h"
#include "wire/ws.h"

struct http;
struct exchange;
typedef void exchange_fn(struct exchange *exchange, void *arg);

struct http_route {
	const char *path;     /* exact; a query string is ignored */
	const char *methods;  /* "GET, POST, DELETE": what is let through, and Allow */
	exchange_fn *begin;   /* headers are in: answer now to refuse before the body,
				 or return; NULL: nothing to ask */
	exchange_fn *request; /* the whole body is in */
	void *arg;            /* for both */
	bool open;            /* GET is for everybody: see http_is_trusted() */
	const struct ws_handler *ws; /* takes WebSockets too; NULL: it does not */
	void *ws_arg;                /* for its open() */
};

struct http_config {               /* a limit of 0 stands for the default named */
	const char *address;       /* IPv4 or IPv6 to listen on: "127.0.0.1", "::1" */
	int port;                  /* 0: any free one, see http_port() */
	const char *allowed_hosts; /* more names for the gate, by commas or blanks */
	struct tls_files tls;      /* none: plain HTTP */
	guard_fn *guard;           /* knows the tokens; NULL: nobody needs one */
	void *guard_arg;
	size_t body_max;     /* 4 MiB: bytes of a request's body */
	size_t queue_max;    /* 1 MiB: bytes waiting to go out, per connection */
	size_t bodies_max;   /* 256 MiB: of all of them together; a peer's share is in
				peers.h, as it is of the connections */
	int connections_max; /* 1024 */
	int body_timeout_s;  /* 30: the whole body has to be in, else 408 */
	int idle_timeout_s;  /* 75: a connection without a request is closed */
	int stall_timeout_s; /* 60: a client that takes nothing is cut off */
	const char *const *subprotocols; /* of WebSockets, at most 8, up to a NULL */
	const char *token_subprotocol;   /* what a token is behind in an offered one */
	int ping_s;                      /* 25: between the pings of a WebSocket */
	int comment_s; /* 15: between the comments that keep a stream up */
};

/* Listens.  Copies config; borrows its strings, the routes and the loop until
 * destroyed. */
int http_create(struct http **out, struct loop *loop, const struct http_config *config,
		const struct http_route *routes, size_t route_count,
		struct err *err) must_check;
int http_port(const struct http *self);
/* Reads certificate and key again, for connections to come; on failure those that were
 * read before stay. */
int http_reload_tls(struct http *self, struct err *err) must_check;
/* Exchanges that are not finished yet, and WebSockets that are open: 0 when every
 * answer is out. */
int http_busy(const struct http *self);
/* Takes no new connections, closes each when its answer is out, and ends the streams
 * that answer a GET (they have no end of their own; their on_gone is called).  A
 * stream that answers a POST goes on until its owner ends it, a WebSocket until its
 * handler closes it. */
void http_drain(struct http *self);
/* Cuts off, unanswered, each exchange and WebSocket let in by a pass that is not good
 * any more; its on_gone is called. */
void http_revoke(struct http *self, pass_fn *is_good, void *arg);
/* Calls the on_gone of every exchange still open and, after that, nobody's function
 * any more.  For the way out, before what the routes use is destroyed. */
void http_stop(struct http *self);
/* Only after loop_destroy(): until then lws looks in here.  NULL-safe. */
void http_destroy(struct http **self);

/* ---- the request ---- */

const char *http_method(const struct exchange *self);
const char *http_path(const struct exchange *self);
/* The user whose token it came with, or "". */
const char *http_user(const struct exchange *self);
/* False only for who came to an open route without a good token where there are some.
 */
bool http_is_trusted(const struct exchange *self);
/* Inside begin() and request() only.  Length of the value copied to out, or
 * HEADER_ABSENT, HEADER_TOO_LONG, HEADER_REPEATED (see header.h). */
int http_header(struct exchange *self, const char *name, char *out, size_t size);
/* Inside begin() and request() only.  False if the query string has no such parameter,
 * or one that is longer. */
bool http_query(struct exchange *self, const char *name, char *out, size_t size);
/* Inside begin() and request() only.  True if Accept names the type or has a wildcard
 * that covers it; false when there is no Accept, so that nobody gets an event stream
 * unasked (http_header() tells the two apart). */
bool http_accepts(struct exchange *self, const char *type);
/* Ends in a NUL that is not counted; "" when there is none.  Borrows until the
 * exchange ends or http_stream(). */
const char *http_body(const struct exchange *self, size_t *size);

/* Anything of the caller's, for as long as the exchange lives.  NULL at first. */
void http_set_data(struct exchange *self, void *data);
void *http_data(const struct exchange *self);

/* Calls fn(exchange, arg) if the connection ends first.  The exchange is over when
 * fn returns; fn answers nothing.  NULL: nobody wants to know. */
void http_on_gone(struct exchange *self, exchange_fn *fn, void *arg);

/* ---- the answer: exactly one of these ---- */

/* headers: "Name: value\r\n" lines or "".  type: NULL for an answer without a body.
 * Copies everything.  Ends the exchange. */
void http_reply(struct exchange *self, int status, const char *headers,
		const char *type, const void *body, size_t size);
/* Answers {"error": "<text>"}, escaped, cut at 500 bytes.  Ends the exchange. */
void http_error(struct exchange *self, int status, const char *headers, const char *fmt,
		...) __attribute__((format(printf, 4, 5)));
/* Starts an event stream; only from request() on.  One comment goes out at once. */
void http_stream(struct exchange *self, const char *headers);
/* False: the queue is full and nothing was taken; on_drained's function is called
 * once when it is empty again.  An empty queue takes an event of any size. */
bool http_stream_send(struct exchange *self, const void *text, size_t size) must_check;
void http_on_drained(struct exchange *self, exchange_fn *fn, void *arg);
/* What was sent still goes out.  Ends the exchange. */
void http_stream_end(struct exchange *self);

#endif

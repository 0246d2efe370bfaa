/*
 * http_impl - what the http files share.  Nobody else includes it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef WIRE_HTTP_IMPL_H
#define WIRE_HTTP_IMPL_H

#include <sys/queue.h>

#include "wire/buf.h"
#include "wire/dechunk.h"
#include "wire/gate.h"
#include "wire/header.h"
#include "wire/http.h"
#include "wire/peers.h"
#include "wire/sendq.h"
#include "wire/ws.h"

enum { SUBPROTOCOLS_MAX = 8 };

LIST_HEAD(exchange_list, exchange);
LIST_HEAD(ws_list, ws);
TAILQ_HEAD(idle_list, connection);

struct http {
	struct loop *loop;               /* borrowed, like the next one */
	const struct http_route *routes; /* [route_count] */
	size_t route_count;
	struct http_config config; /* zeros replaced by the defaults */
	struct gate gate;
	struct lws_vhost *vhost;        /* owned by the lws context */
	struct tls *tls;                /* NULL: plain HTTP */
	struct exchange_list exchanges; /* exchange::link */
	struct loop_timer sweep;        /* looks for clients that take nothing */
	struct loop_timer bodies;       /* for the body that is due first */
	bool bodies_wait;               /* it is running */
	int busy;                       /* length of exchanges */
	struct ws_list sockets;         /* ws::link */
	int socket_count;
	struct peers peers;
	bool draining, stopped;
	struct idle_list idle;    /* connection::link, longest first */
	struct loop_timer idling; /* for the first of them */
	/* lws keeps pointers to these three */
	struct lws_protocols protocols[SUBPROTOCOLS_MAX + 2];
	struct lws_http_mount mount;
	lws_retry_bo_t pings;
};

enum exchange_state {
	EXCHANGE_RECEIVING,  /* begin() was called or is to be; body comes in */
	EXCHANGE_HANDLING,   /* request() was called, no answer yet */
	EXCHANGE_STREAMING,  /* an event stream is open */
	EXCHANGE_FINISHING,  /* the whole answer is in the queue */
	EXCHANGE_DISCARDING, /* answered; the rest of the body is dropped */
	EXCHANGE_LINGERING, /* answered and closed for writing; what comes is dropped */
};

struct connection { /* from its beginning to its end */
	TAILQ_ENTRY(connection) link;
	struct http *http; /* borrowed, like the next three */
	struct lws *wsi;
	struct peer *peer;
	struct exchange *exchange;    /* NULL between requests */
	struct ws *ws;                /* NULL as long as it speaks HTTP */
	int64_t idle_us;              /* since when; 0: it is not in http.idle */
	unsigned long long read_mark; /* pipeline_bytes_read() at the end of the last
					 request */
};

struct callback { /* somebody's function; fn NULL: nobody's */
	exchange_fn *fn;
	void *arg;
};

struct exchange {
	LIST_ENTRY(exchange) link;
	struct http *http; /* borrowed, like the next two */
	struct connection *connection;
	struct lws *wsi;
	enum exchange_state state;
	bool in_callback;          /* lws is below us: flush on the way out */
	bool body_due, chunked_in; /* more body is to come; in chunks */
	bool expects_continue;     /* it comes only once we have said "go on" */
	bool keep_alive, chunked_out;
	bool waiting; /* a send was refused: owe a drained() */
	const struct http_route *route;
	const char *method;
	char path[256];
	bool has_pass;
	struct pass pass;                         /* of the token it came with */
	unsigned long long body_left;             /* of Content-Length */
	unsigned long long head_round, head_mark; /* when the head came, and
						     pipeline_bytes_read() then */
	struct buf body;
	size_t body_bytes; /* of it that are counted: see peers.h */
	struct dechunk dechunk;
	struct sendq out;
	int64_t moved_us;        /* when the queue last moved or stopped being empty */
	int64_t body_due_us;     /* while RECEIVING; 0: no body was waited for */
	struct loop_timer timer; /* discarding, comments or linger, by state */
	struct callback gone, drained;
	void *data; /* the route's */
};

/* ws_admit.c: an upgrade; upgrade is "websocket", or what is never taken.  0, or -1 and
 * the reason was answered. */
int ws_on_upgrade(struct http *http, struct lws *wsi, const char *upgrade);

/* ws.c */
/* pass: NULL where nobody needs one. */
void ws_begin(struct http *http, struct lws *wsi, const struct http_route *route,
	      const struct pass *pass);
/* lws lets go of it.  NULL-safe. */
void ws_end(struct ws *self);
/* What lws reports; 0, or -1 to close. */
int ws_on_receive(struct ws *self, const void *in, size_t size);
int ws_on_writable(struct ws *self);
/* For each: cut off who stalls; tell that we stop; close those whose token is gone; end
 * all, and call nobody any more. */
void ws_sweep_all(struct http *http);
void ws_drain_all(struct http *http);
void ws_revoke_all(struct http *http, pass_fn *is_good, void *arg);
void ws_stop_all(struct http *http);

/* connection.c: what is kept beside and between requests. */
/* NULL before it has begun. */
struct connection *connection_of(struct lws *wsi);
void connection_begin(struct http *http, struct lws *wsi);
/* The exchange that is open on it, or NULL. */
struct exchange *connection_exchange(struct lws *wsi);
/* A request begins. */
struct connection *connection_busy(struct http *http, struct lws *wsi);
/* It has ended: from now on the connection is given idle_timeout_s. */
void connection_idle(struct connection *self);
/* lws lets go of it. */
void connection_end(struct lws *wsi);

/* exchange.c: what lws reports; 0, or -1 to close the connection. */
int exchange_on_headers(struct http *http, struct lws *wsi);
int exchange_on_body(struct exchange *self, void *data, size_t size);
int exchange_on_body_end(struct exchange *self);
int exchange_on_writable(struct exchange *self);
void exchange_on_closed(struct exchange *self);
void exchange_destroy(struct exchange **self);
/* Nobody reads it any more. */
void exchange_drop_body(struct exchange *self);
/* Tells the owner, once, that there will be no answer to give. */
void exchange_tell_gone(struct exchange *self);
void exchange_kill(struct exchange *self);
/* What bodies is to do. */
void exchange_refuse_late_bodies(void *http);

/* exchange_admit.c: the checks before a route sees anything. */
/* Reads how the body is framed.  False: refused, and the connection ends with it,
 * since whoever disagrees with us on framing must not send a second request. */
bool exchange_read_framing(struct exchange *self);
/* False: refused.  True: self->route is set. */
bool exchange_admit(struct exchange *self);
/* The status for what the gate says to these headers, 0 when it lets them in; text
 * gets the reason. */
int exchange_gate(struct http *http, struct lws *wsi, char *text, size_t size);
/* True if the request has a good token; out gets what it stands for. */
bool exchange_guard(struct http *http, struct lws *wsi, struct pass *out);
/* Why a request is not let in.  Not a word of the scheme, here or in a header: to
 * clients that would mean OAuth. */
const char *exchange_no_token(struct lws *wsi);

/* exchange_reply.c: the way out. */
/* Writes what is queued, or part of it; 0, or -1 to close the connection. */
int exchange_flush(struct exchange *self);
/* Queues without a head of its own: "100 Continue". */
void exchange_send_raw(struct exchange *self, const char *text);
const char *http_status_text(int status);
/* {"error": "<text>"}.  Caller frees. */
char *http_error_body(const char *text);

#endif

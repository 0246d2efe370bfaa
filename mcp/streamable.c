// SPDX-License-Identifier: MIT
#include "mcp/streamable.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>

#include "mcp/era.h"
#include "wire/header.h"
#include "wire/json.h"
#include "wire/mem.h"

enum {
	STREAM_AFTER_US = 250 * 1000,
	BATCH_MAX = 100, /* messages in one body; 2025-03-26 and older have batches */
	HEADERS_MAX = SESSION_ID_SIZE + 32,
};
#define JSON_TYPE "application/json"
#define EVENT_TYPE "text/event-stream"

struct streamable {
	struct loop *loop;
	struct server *server;
	struct sessions sessions;
	LIST_HEAD(, post) posts; /* post::link */
};

struct post { /* one POST with requests in it; lives until all are answered */
	LIST_ENTRY(post) link;
	struct streamable *owner;
	struct exchange *exchange; /* NULL once the client has left */
	char headers[HEADERS_MAX]; /* Mcp-Session-Id, after initialize */
	bool batch, takes_stream, streaming;
	bool stateless;  /* of 2026-07-28: to leave is to cancel */
	size_t open;     /* requests not answered yet */
	json_t *answers; /* owned: not sent yet */
	struct loop_timer timer;
};

struct streamable *streamable_create(struct loop *loop, struct server *server,
				     const unsigned char key[SESSION_KEY_SIZE])
{
	struct streamable *self = xcalloc(1, sizeof *self);

	self->loop = loop;
	self->server = server;
	memcpy(self->sessions.key, key, SESSION_KEY_SIZE);
	LIST_INIT(&self->posts);
	return self;
}

static void post_destroy(struct post *self)
{
	LIST_REMOVE(self, link);
	loop_timer_stop(&self->timer);
	json_decref(self->answers);
	free(self);
}

void streamable_destroy(struct streamable **self)
{
	struct streamable *dead = take(self);
	struct post *post;

	if (!dead)
		return;
	while ((post = LIST_FIRST(&dead->posts)))
		post_destroy(post);
	explicit_bzero(&dead->sessions.key, sizeof dead->sessions.key);
	free(dead);
}

/* ---- answering ---- */

static void reply_json(struct exchange *exchange, int status, const char *headers,
		       const json_t *message)
{
	char *text = json_dumps(message, JSON_COMPACT);

	http_reply(exchange, status, headers, JSON_TYPE, text, text ? strlen(text) : 0);
	free(text);
}

/* A refusal of the transport's: JSON-RPC error in an HTTP error. */
static void refuse(struct exchange *exchange, int status, int code, const char *fmt,
		   ...) __attribute__((format(printf, 4, 5)));
static void refuse(struct exchange *exchange, int status, int code, const char *fmt,
		   ...)
{
	char text[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	json_auto_t *message = rpc_error(NULL, code, "%s", text);
	reply_json(exchange, status, "", message);
}

static bool send_event(struct post *self, const json_t *message)
{
	owned(free_text) char *text = json_dumps(message, JSON_COMPACT);
	owned(free_text) char *event =
	    xasprintf("event: message\ndata: %s\n\n", text ? text : "{}");

	return http_stream_send(self->exchange, event, strlen(event));
}

/* Sends what is there; what the queue does not take waits for on_drained(). */
static void send_answers(struct post *self)
{
	while (json_array_size(self->answers) &&
	       send_event(self, json_array_get(self->answers, 0)))
		json_array_remove(self->answers, 0);
	if (self->open || json_array_size(self->answers))
		return;
	http_stream_end(self->exchange);
	post_destroy(self);
}

static void on_drained(struct exchange *exchange, void *arg)
{
	(void)exchange;
	send_answers(arg);
}

static void on_late(void *arg)
{
	struct post *self = arg;

	self->streaming = true;
	http_on_drained(self->exchange, on_drained, self);
	http_stream(self->exchange, self->headers);
	send_answers(self);
}

static void reply_all(struct post *self)
{
	loop_timer_stop(&self->timer);
	http_on_gone(self->exchange, NULL, NULL);
	reply_json(self->exchange, 200, self->headers,
		   self->batch ? self->answers : json_array_get(self->answers, 0));
	post_destroy(self);
}

static void on_answer(json_t *message, void *arg)
{
	struct post *self = arg;

	self->open--;
	json_array_append_new(self->answers, message);
	if (!self->exchange && !self->open)
		post_destroy(self);
	else if (self->exchange && self->streaming)
		send_answers(self);
	else if (self->exchange && !self->open)
		reply_all(self);
}

/* The client has left.  Up to 2025-11-25 what it asked for goes on and its answer is
 * dropped; since then, to leave is to cancel. */
static void on_gone(struct exchange *exchange, void *arg)
{
	struct post *self = arg;

	(void)exchange;
	self->exchange = NULL;
	loop_timer_stop(&self->timer);
	if (!self->open)
		post_destroy(self);
	else if (self->stateless)
		server_cancel(self->owner->server, self);
}

/* ---- sessions ---- */

/* The session that the request names; otherwise refuses it and returns -1. */
static int require_session(struct streamable *self, struct exchange *exchange,
			   struct session *out)
{
	char id[SESSION_ID_SIZE], version[32];
	int len = http_header(exchange, "mcp-session-id", id, sizeof id);

	if (len == HEADER_ABSENT) {
		refuse(exchange, 400, RPC_TRANSPORT_ERROR,
		       "Bad Request: Mcp-Session-Id header is required; send "
		       "initialize first and repeat the header it answers with");
		return -1;
	}
	if (len < 0 || session_find(&self->sessions, id, out) < 0) {
		refuse(exchange, 404, RPC_NO_SESSION,
		       "Session not found: send initialize again");
		return -1;
	}
	if (http_header(exchange, "mcp-protocol-version", version, sizeof version) !=
		HEADER_ABSENT &&
	    mcp_revision_find(version) < 0) {
		refuse(exchange, 400, RPC_TRANSPORT_ERROR,
		       "Bad Request: Unsupported protocol version: %s; this server "
		       "speaks %s to %s",
		       version, mcp_revision_name(0),
		       mcp_revision_name(MCP_REVISION_COUNT - 1));
		return -1;
	}
	return 0;
}

/* ---- POST ---- */

static struct post *post_create(struct streamable *self, struct exchange *exchange,
				bool batch)
{
	struct post *post = xcalloc(1, sizeof *post);

	*post = (struct post){.owner = self,
			      .exchange = exchange,
			      .batch = batch,
			      .takes_stream = http_accepts(exchange, EVENT_TYPE),
			      .answers = json_array()};
	LIST_INSERT_HEAD(&self->posts, post, link);
	http_on_gone(exchange, on_gone, post);
	return post;
}

/* One message of the body.  What is not even JSON-RPC is answered like a request. */
static void take_message(struct post *post, json_t *message,
			 const struct server_context *context)
{
	struct rpc rpc;
	struct err err;

	if (rpc_read(&rpc, message, &err) < 0)
		on_answer(rpc_error(rpc.id, err_rpc_code(err.kind),
				    "Invalid Request: %s", err.msg),
			  post);
	else if (rpc.kind == RPC_REQUEST)
		server_request(post->owner->server, &rpc, context, on_answer, post);
	else if (rpc.kind == RPC_NOTIFICATION)
		server_notification(post->owner->server, &rpc, context);
}

static bool needs_answer(json_t *message)
{
	struct rpc rpc;
	struct err err;

	return rpc_read(&rpc, message, &err) < 0 || rpc.kind == RPC_REQUEST;
}

/* messages: an array. */
static void take_messages(struct streamable *self, struct exchange *exchange,
			  const json_t *messages, bool batch,
			  const struct server_context *context, const char *headers)
{
	size_t count = json_array_size(messages), open = 0;

	for (size_t i = 0; i < count; i++)
		open += needs_answer(json_array_get(messages, i));
	struct post *post = post_create(self, exchange, batch);
	snprintf(post->headers, sizeof post->headers, "%s", headers);
	post->stateless = context->revision >= MCP_STATELESS;
	post->open = open + 1; /* ours, until all are under way */
	for (size_t i = 0; i < count; i++)
		take_message(post, json_array_get(messages, i), context);
	if (!open) {
		http_on_gone(exchange, NULL, NULL);
		http_reply(exchange, 202, "", NULL, "", 0);
		post_destroy(post);
		return;
	}
	if (--post->open == 0)
		reply_all(post);
	else if (post->takes_stream)
		loop_timer_start(self->loop, &post->timer, STREAM_AFTER_US, on_late,
				 post);
}

/* Each initialize begins a new session, whatever session it is sent in. */
static void take_initialize(struct streamable *self, struct exchange *exchange,
			    const struct rpc *rpc, const json_t *messages)
{
	char id[SESSION_ID_SIZE], headers[HEADERS_MAX];
	struct server_context context = {0};
	struct err err;

	if (server_negotiate(rpc, &context.revision, &err) < 0) {
		json_auto_t *message =
		    rpc_error(rpc->id, err_rpc_code(err.kind), "%s", err.msg);
		reply_json(exchange, 200, "", message);
		return;
	}
	session_begin(&self->sessions, context.revision, id);
	snprintf(headers, sizeof headers, "Mcp-Session-Id: %s\r\n", id);
	take_messages(self, exchange, messages, false, &context, headers);
}

static const char *header_or_null(struct exchange *exchange, const char *name,
				  char *out, size_t size)
{
	return http_header(exchange, name, out, size) >= 0 ? out : NULL;
}

/* A single message: of which era is it, and may it pass? */
static enum era decide(struct exchange *exchange, const struct rpc *rpc,
		       struct era_verdict *verdict)
{
	char version[64], method[256], name[1024];
	const struct era_headers headers = {
	    .version = header_or_null(exchange, "mcp-protocol-version", version,
				      sizeof version),
	    .method = header_or_null(exchange, "mcp-method", method, sizeof method),
	    .name = header_or_null(exchange, "mcp-name", name, sizeof name),
	};

	return era_decide(rpc, &headers, server_has_method, verdict);
}

static void take_one(struct streamable *self, struct exchange *exchange,
		     const struct rpc *rpc, const json_t *messages)
{
	struct session session;
	struct era_verdict verdict;

	switch (decide(exchange, rpc, &verdict)) {
	case ERA_STATELESS:
		take_messages(self, exchange, messages, false,
			      &(struct server_context){.revision = verdict.revision},
			      "");
		return;
	case ERA_DROPPED:
		http_reply(exchange, 202, "", NULL, "", 0);
		return;
	case ERA_REFUSED:
		reply_json(exchange, verdict.status, "", verdict.message);
		json_decref(verdict.message);
		return;
	case ERA_SESSIONS:
		break;
	}
	if (rpc->kind == RPC_REQUEST && strcmp(rpc->method, "initialize") == 0)
		take_initialize(self, exchange, rpc, messages);
	else if (require_session(self, exchange, &session) == 0)
		take_messages(
		    self, exchange, messages, false,
		    &(struct server_context){session.revision, session.serial}, "");
}

static bool claims_stateless(const json_t *batch)
{
	for (size_t i = 0; i < json_array_size(batch); i++)
		if (era_claims(json_array_get(batch, i)))
			return true;
	return false;
}

static void take_batch(struct streamable *self, struct exchange *exchange,
		       const json_t *batch)
{
	struct session session;
	size_t count = json_array_size(batch);

	if (claims_stateless(batch))
		refuse(exchange, 400, RPC_INVALID_REQUEST,
		       "Batches ended with revision %s; send one message per request",
		       mcp_revision_name(MCP_2025_03_26));
	else if (require_session(self, exchange, &session) < 0)
		return;
	else if (session.revision > MCP_2025_03_26)
		refuse(exchange, 400, RPC_INVALID_REQUEST,
		       "Batches ended with revision %s; send one message per request",
		       mcp_revision_name(MCP_2025_03_26));
	else if (!count || count > BATCH_MAX)
		refuse(exchange, 400, RPC_INVALID_REQUEST,
		       "A batch holds 1 to %d messages, not %zu", BATCH_MAX, count);
	else
		take_messages(
		    self, exchange, batch, true,
		    &(struct server_context){session.revision, session.serial}, "");
}

static void take_body(struct streamable *self, struct exchange *exchange, json_t *body)
{
	struct rpc rpc;
	struct err err;

	if (json_is_array(body)) {
		take_batch(self, exchange, body);
		return;
	}
	if (rpc_read(&rpc, body, &err) < 0) {
		json_auto_t *message = rpc_error(rpc.id, err_rpc_code(err.kind),
						 "Invalid Request: %s", err.msg);
		reply_json(exchange, 400, "", message);
		return;
	}
	json_auto_t *messages = json_pack("[O]", body);
	take_one(self, exchange, &rpc, messages);
}

static void on_post(struct streamable *self, struct exchange *exchange)
{
	size_t size;
	const char *text = http_body(exchange, &size);
	json_auto_t *body = NULL;
	struct err err;

	if (json_parse(&body, text, size, &err) < 0)
		refuse(exchange, 400, RPC_PARSE_ERROR, "Parse error: %s", err.msg);
	else
		take_body(self, exchange, body);
}

/* ---- GET and DELETE ---- */

static void on_get(struct streamable *self, struct exchange *exchange)
{
	struct session session;

	if (require_session(self, exchange, &session) == 0)
		http_stream(exchange, ""); /* open until either side ends it */
}

static void on_delete(struct streamable *self, struct exchange *exchange)
{
	struct session session;

	if (require_session(self, exchange, &session) < 0)
		return;
	session_end(&self->sessions, &session);
	http_reply(exchange, 200, "", NULL, "", 0);
}

/* ---- the route ---- */

static bool is_json_type(struct exchange *exchange)
{
	char type[128];

	if (http_header(exchange, "content-type", type, sizeof type) < 0)
		return false;
	type[strcspn(type, "; \t")] = '\0';
	return strcasecmp(type, JSON_TYPE) == 0;
}

/* Clients are to send Accept; those that do not get plain JSON. */
static bool takes_json(struct exchange *exchange)
{
	char any[2];

	return http_header(exchange, "accept", any, sizeof any) == HEADER_ABSENT ||
	       http_accepts(exchange, JSON_TYPE);
}

static void on_begin(struct exchange *exchange, void *arg)
{
	bool post = strcmp(http_method(exchange), "POST") == 0;
	bool get = strcmp(http_method(exchange), "GET") == 0;

	(void)arg;
	if (post && !is_json_type(exchange))
		refuse(exchange, 415, RPC_TRANSPORT_ERROR,
		       "Unsupported Media Type: Content-Type must be " JSON_TYPE);
	else if (post && !takes_json(exchange) && !http_accepts(exchange, EVENT_TYPE))
		refuse(exchange, 406, RPC_TRANSPORT_ERROR,
		       "Not Acceptable: Client must accept both " JSON_TYPE
		       " and " EVENT_TYPE);
	else if (get && !http_accepts(exchange, EVENT_TYPE))
		refuse(exchange, 406, RPC_TRANSPORT_ERROR,
		       "Not Acceptable: Client must accept " EVENT_TYPE);
}

static void on_request(struct exchange *exchange, void *arg)
{
	struct streamable *self = arg;
	const char *method = http_method(exchange);

	if (strcmp(method, "POST") == 0)
		on_post(self, exchange);
	else if (strcmp(method, "GET") == 0)
		on_get(self, exchange);
	else
		on_delete(self, exchange);
}

struct http_route streamable_route(struct streamable *self, const char *path)
{
	return (struct http_route){.path = path,
				   .methods = "GET, POST, DELETE",
				   .begin = on_begin,
				   .request = on_request,
				   .arg = self};
}

// SPDX-License-Identifier: MIT
#include "mcp/streamable.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>

#include "mcp/era.h"
#include "mcp/event_id.h"
#include "mcp/post.h"
#include "mcp/sse.h"
#include "mcp/who.h"
#include "wire/header.h"
#include "wire/json.h"
#include "wire/mem.h"

enum {
	BATCH_MAX = 100, /* messages in one body; 2025-03-26 and older have batches */
};
#define JSON_TYPE "application/json"
#define EVENT_TYPE "text/event-stream"

struct streamable {
	struct teller teller;
	struct who who;
	struct sessions *sessions; /* borrowed */
	struct sses sses;
	struct posts posts;
	struct streams streams;
};

static void tell(void *arg, uint64_t session, json_t *message)
{
	struct streamable *self = arg;

	streams_tell(&self->streams, session, message);
}

static void tell_all(void *arg, json_t *message)
{
	struct streamable *self = arg;

	streams_tell_all(&self->streams, message);
}

static void tell_unread(void *arg, const struct workspace *home, struct buf *out)
{
	struct streamable *self = arg;

	streams_tell_unread(&self->streams, home, out);
}

struct streamable *streamable_create(struct loop *loop, struct server *server,
				     struct workspaces *workspaces,
				     const struct config *config,
				     struct sessions *sessions,
				     struct channels *channels)
{
	struct streamable *self = xcalloc(1, sizeof *self);

	self->posts.loop = loop;
	self->posts.server = server;
	who_init(&self->who, workspaces, config);
	self->sses.channels = channels;
	self->sses.who = &self->who;
	LIST_INIT(&self->sses.all);
	self->sessions = sessions;
	LIST_INIT(&self->posts.all);
	self->posts.streams = &self->streams;
	self->posts.eager = config->conformance != 0; /* the suite looks at streams */
	streams_init(&self->streams);
	self->streams.loop = loop;
	self->streams.sessions = sessions;
	self->streams.keep_us = config->replay_keep_s * 1000000;
	self->streams.keep_max = (size_t)config->replay_max;
	self->teller = (struct teller){.tell = tell,
				       .tell_all = tell_all,
				       .tell_unread = tell_unread,
				       .arg = self};
	server_add_teller(server, &self->teller);
	return self;
}

void streamable_destroy(struct streamable **self)
{
	struct streamable *dead = take(self);

	if (!dead)
		return;
	posts_finish(&dead->posts);
	streams_finish(&dead->streams);
	free(dead);
}

/* A refusal of the transport's: JSON-RPC error in an HTTP error.  request: the id of
 * what is refused (borrowed), or NULL. */
static void refuse(struct exchange *exchange, json_t *request, int status, int code,
		   const char *fmt, ...) __attribute__((format(printf, 5, 6)));
static void refuse(struct exchange *exchange, json_t *request, int status, int code,
		   const char *fmt, ...)
{
	char text[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	json_auto_t *message = rpc_error(request, code, "%s", text);
	post_reply_json(exchange, status, "", message);
}

/* ---- sessions ---- */

struct version { /* MCP-Protocol-Version */
	int len; /* or HEADER_* */
	char text[64];
};

static void read_version(struct exchange *exchange, struct version *out)
{
	out->len =
	    http_header(exchange, "mcp-protocol-version", out->text, sizeof out->text);
}

/* The session that the request names; otherwise refuses it, by the id of the JSON-RPC
 * request if it is one, and returns -1. */
static int check_session(struct streamable *self, struct exchange *exchange,
			 const struct version *version, json_t *request,
			 struct session *out)
{
	char id[SESSION_ID_SIZE];
	int len = http_header(exchange, "mcp-session-id", id, sizeof id);

	if (len == HEADER_ABSENT) {
		refuse(exchange, request, 400, RPC_TRANSPORT_ERROR,
		       "Bad Request: Mcp-Session-Id header is required; send "
		       "initialize first and repeat the header it answers with");
		return -1;
	}
	if (len < 0 || session_find(self->sessions, id, out) < 0) {
		refuse(exchange, request, 404, RPC_NO_SESSION,
		       "Session not found: send initialize again");
		return -1;
	}
	if (version->len != HEADER_ABSENT && mcp_revision_find(version->text) < 0) {
		refuse(exchange, request, 400, RPC_TRANSPORT_ERROR,
		       "Bad Request: Unsupported protocol version: %s; this server "
		       "speaks %s to %s",
		       version->text, mcp_revision_name(0),
		       mcp_revision_name(MCP_REVISION_COUNT - 1));
		return -1;
	}
	return 0;
}

static int require_session(struct streamable *self, struct exchange *exchange,
			   struct session *out)
{
	struct version version;

	read_version(exchange, &version);
	return check_session(self, exchange, &version, NULL, out);
}

/* ---- POST ---- */

static void hand_on(struct streamable *self, struct exchange *exchange,
		    const json_t *messages, bool batch, const struct session *session,
		    const char *headers)
{
	struct server_context context = {.revision = session->revision,
					 .session = session->serial,
					 .lasts = session->serial != 0,
					 .client = session->client,
					 .workspaces = self->who.workspaces};

	who_find(&self->who, exchange, &context);
	post_take(&self->posts, exchange, messages, batch, session, &context, headers);
}

/* Each initialize begins a new session, whatever session it is sent in. */
static void take_initialize(struct streamable *self, struct exchange *exchange,
			    const struct rpc *rpc, const json_t *messages)
{
	char id[SESSION_ID_SIZE], headers[POST_HEADERS_MAX];
	struct session session = {0};
	struct err err;

	if (server_negotiate(rpc, &session.revision, &err) < 0) {
		json_auto_t *message =
		    rpc_error(rpc->id, err_rpc_code(err.kind), "%s", err.msg);
		post_reply_json(exchange, 200, "", message);
		return;
	}
	session_begin(self->sessions, session.revision,
		      client_bits(json_object_get(rpc->params, "capabilities"),
				  json_object_get(rpc->params, "clientInfo")),
		      id);
	snprintf(headers, sizeof headers, "Mcp-Session-Id: %s\r\n", id);
	hand_on(self, exchange, messages, false, &session, headers);
}

static const char *header_or_null(struct exchange *exchange, const char *name,
				  char *out, size_t size)
{
	return http_header(exchange, name, out, size) >= 0 ? out : NULL;
}

/* A single message: of which era is it, and may it pass? */
static enum era decide(struct exchange *exchange, const struct rpc *rpc, bool claims,
		       const struct version *version, struct era_verdict *verdict)
{
	char method[256], name[1024];
	struct era_headers headers = {.version =
					  version->len >= 0 ? version->text : NULL};

	if (claims) { /* only then they are looked at */
		headers.method =
		    header_or_null(exchange, "mcp-method", method, sizeof method);
		headers.name = header_or_null(exchange, "mcp-name", name, sizeof name);
	}
	return era_decide(rpc, &headers, server_has_method, verdict);
}

static bool read_header(void *arg, const char *name, struct buf *out)
{
	char value[8192];
	int len = http_header(arg, name, value, sizeof value);

	if (len >= 0)
		buf_add(out, value, (size_t)len);
	return len != HEADER_ABSENT;
}

static void take_stateless(struct streamable *self, struct exchange *exchange,
			   const struct rpc *rpc, const json_t *messages,
			   enum mcp_revision revision)
{
	const struct session session = {.revision = revision};
	json_auto_t *refusal =
	    server_check_headers(self->posts.server, rpc, read_header, exchange);

	if (refusal)
		post_reply_json(exchange, 400, "", refusal);
	else
		hand_on(self, exchange, messages, false, &session, "");
}

static void take_one(struct streamable *self, struct exchange *exchange,
		     const struct rpc *rpc, const json_t *messages)
{
	bool claims = era_claims(json_array_get(messages, 0));
	struct session session;
	struct version version;
	struct era_verdict verdict;

	read_version(exchange, &version);
	switch (decide(exchange, rpc, claims, &version, &verdict)) {
	case ERA_STATELESS:
		take_stateless(self, exchange, rpc, messages, verdict.revision);
		return;
	case ERA_DROPPED:
		http_reply(exchange, 202, "", NULL, "", 0);
		return;
	case ERA_REFUSED:
		post_reply_json(exchange, verdict.status, "", verdict.message);
		json_decref(verdict.message);
		return;
	case ERA_SESSIONS:
		break;
	}
	if (rpc->kind == RPC_REQUEST && strcmp(rpc->method, "initialize") == 0)
		take_initialize(self, exchange, rpc, messages);
	else if (check_session(self, exchange, &version, rpc->id, &session) == 0)
		hand_on(self, exchange, messages, false, &session, "");
}

static void refuse_batch(struct exchange *exchange)
{
	refuse(exchange, NULL, 400, RPC_INVALID_REQUEST,
	       "Batches ended with revision %s; send one message per request",
	       mcp_revision_name(MCP_2025_03_26));
}

static void take_batch(struct streamable *self, struct exchange *exchange,
		       const json_t *batch)
{
	struct session session;
	struct version version;
	size_t count = json_array_size(batch);

	read_version(exchange, &version);
	if (era_claimed_in(batch) ||
	    (version.len >= 0 && mcp_revision_find(version.text) > MCP_2025_03_26))
		refuse_batch(exchange);
	else if (check_session(self, exchange, &version, NULL, &session) < 0)
		return;
	else if (session.revision > MCP_2025_03_26)
		refuse_batch(exchange);
	else if (!count || count > BATCH_MAX)
		refuse(exchange, NULL, 400, RPC_INVALID_REQUEST,
		       "A batch holds 1 to %d messages, not %zu", BATCH_MAX, count);
	else
		hand_on(self, exchange, batch, true, &session, "");
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
		post_reply_json(exchange, 400, "", message);
		return;
	}
	json_auto_t *messages = json_array();
	json_array_append(messages, body);
	take_one(self, exchange, &rpc, messages);
}

static void on_post(struct streamable *self, struct exchange *exchange)
{
	size_t size;
	const char *text = http_body(exchange, &size);
	json_auto_t *body = NULL;
	struct err err;

	if (json_parse(&body, text, size, &err) < 0)
		refuse(exchange, NULL, 400, RPC_PARSE_ERROR, "Parse error: %s",
		       err.msg);
	else
		take_body(self, exchange, body);
}

/* ---- GET and DELETE ---- */

/* Since 2026-07-28 there are neither; revisions are dates, so later ones sort behind.
 */
static bool is_stateless(struct exchange *exchange)
{
	struct version version;

	read_version(exchange, &version);
	return version.len >= 0 &&
	       strcmp(version.text, mcp_revision_name(MCP_STATELESS)) >= 0;
}

static void refuse_method(struct exchange *exchange)
{
	http_error(exchange, 405, "Allow: POST\r\n",
		   "since revision %s there is only POST",
		   mcp_revision_name(MCP_STATELESS));
}

/* Nobody else asks for a stream before he has a session. */
static bool is_of_2024(struct exchange *exchange)
{
	char any[2];

	return http_header(exchange, "mcp-session-id", any, sizeof any) ==
		   HEADER_ABSENT &&
	       http_header(exchange, "mcp-protocol-version", any, sizeof any) ==
		   HEADER_ABSENT;
}

static void on_get(struct streamable *self, struct exchange *exchange)
{
	struct session session;
	char seen[EVENT_ID_SIZE];
	int len = http_header(exchange, "last-event-id", seen, sizeof seen);

	struct server_context context = {0};

	if (is_of_2024(exchange)) {
		sse_open(&self->sses, exchange);
		return;
	}
	if (require_session(self, exchange, &session) < 0)
		return;
	who_find(&self->who, exchange, &context);
	if (len == HEADER_ABSENT)
		streams_stand(&self->streams, exchange, &session, context.workspace);
	else if (len < 0 || streams_resume(&self->streams, exchange, &session,
					   context.workspace, seen) < 0)
		refuse(exchange, NULL, 400, RPC_TRANSPORT_ERROR,
		       "Bad Request: Last-Event-ID is none that this session was "
		       "given; repeat one as it came, or leave it out");
}

static void on_delete(struct streamable *self, struct exchange *exchange)
{
	struct session session;

	if (require_session(self, exchange, &session) < 0)
		return;
	session_end(self->sessions, &session);
	streams_forget(&self->streams, session.serial);
	server_left(self->posts.server, session.serial);
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
		refuse(exchange, NULL, 415, RPC_TRANSPORT_ERROR,
		       "Unsupported Media Type: Content-Type must be " JSON_TYPE);
	else if (post && !sse_is_named(exchange) && !takes_json(exchange) &&
		 !http_accepts(exchange, EVENT_TYPE))
		refuse(exchange, NULL, 406, RPC_TRANSPORT_ERROR,
		       "Not Acceptable: Client must accept both " JSON_TYPE
		       " and " EVENT_TYPE);
	else if (get && !http_accepts(exchange, EVENT_TYPE))
		refuse(exchange, NULL, 406, RPC_TRANSPORT_ERROR,
		       "Not Acceptable: Client must accept " EVENT_TYPE);
}

static void on_request(struct exchange *exchange, void *arg)
{
	struct streamable *self = arg;
	const char *method = http_method(exchange);

	if (strcmp(method, "POST") == 0 && sse_is_named(exchange))
		sse_post(&self->sses, exchange);
	else if (strcmp(method, "POST") == 0)
		on_post(self, exchange);
	else if (is_stateless(exchange))
		refuse_method(exchange);
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

// SPDX-License-Identifier: MIT
#include "mcp/post.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mcp/rpc.h"
#include "wire/json.h"
#include "wire/mem.h"

enum { STREAM_AFTER_US = 250 * 1000 };
#define EVENT_TYPE "text/event-stream"

struct post { /* one POST with requests in it; lives until all are answered */
	LIST_ENTRY(post) link;
	struct posts *owner;            /* borrowed */
	struct exchange *exchange;      /* NULL once the stream has it, or the client
					   has left */
	struct stream *stream;          /* NULL: none was begun */
	struct session session;         /* whose it is */
	const void *workspace;          /* the same */
	json_t *request;                /* owned: the id of the only one, or NULL */
	char *about;                    /* owned: what names the next answer, or NULL */
	char headers[POST_HEADERS_MAX]; /* Mcp-Session-Id, after initialize */
	bool batch, takes_stream;
	size_t open;     /* requests not answered yet */
	json_t *answers; /* owned: not sent yet */
	struct loop_timer timer;
};

void post_reply_json(struct exchange *exchange, int status, const char *headers,
		     json_t *message)
{
	owned(buf_finish) struct buf text = {0};

	json_write(&text, message);
	http_reply(exchange, status, headers, "application/json", text.data, text.size);
}

static void post_destroy(struct post *self)
{
	LIST_REMOVE(self, link);
	loop_timer_stop(&self->timer);
	json_decref(self->answers);
	json_decref(self->request);
	free_text(&self->about);
	stream_end(&self->stream);
	free(self);
}

void posts_finish(struct posts *self)
{
	struct post *post;

	while ((post = LIST_FIRST(&self->all)))
		post_destroy(post);
}

/* ---- streaming ---- */

/* The client has left and cannot come back.  Up to 2025-11-25 what it asked for goes
 * on, and what can be is kept for it; since then, to leave is to cancel. */
static void on_left(void *arg)
{
	struct post *self = arg;
	struct server *server = self->owner->server;

	if (self->session.revision >= MCP_STATELESS) {
		server_cancel(server, self);
		return;
	}
	self->open -= server_abandon(server, self);
	if (!self->open)
		post_destroy(self);
}

static void begin_stream(struct post *self)
{
	const struct stream_options options = {.session = &self->session,
					       .request = self->request,
					       .owner = self->workspace,
					       .headers = self->headers,
					       .left = on_left,
					       .arg = self};
	struct exchange *exchange = take(&self->exchange);

	loop_timer_stop(&self->timer);
	self->stream = stream_open(self->owner->streams, exchange, &options);
	for (size_t i = 0; i < json_array_size(self->answers); i++)
		stream_send(self->stream, json_array_get(self->answers, i), true);
	json_array_clear(self->answers);
}

static void on_late(void *arg)
{
	begin_stream(arg);
}

/* ---- what is said besides ---- */

static bool on_outlet(void *arg, json_t *message, bool must)
{
	struct post *self = arg;

	if (!self->stream && self->exchange && self->takes_stream)
		begin_stream(self);
	return self->stream && stream_send(self->stream, message, must);
}

static bool on_disconnect(void *arg)
{
	struct post *self = arg;

	if (!self->stream && self->exchange && self->takes_stream)
		begin_stream(self);
	return self->stream && stream_disconnect(self->stream);
}

static void on_about(void *arg, char *line)
{
	struct post *self = arg;

	free_text(&self->about);
	if (line[0])
		self->about = take(&line);
	free_text(&line);
}

/* ---- answering ---- */

static void reply_all(struct post *self)
{
	loop_timer_stop(&self->timer);
	http_on_gone(self->exchange, NULL, NULL);
	json_t *answer = self->batch ? self->answers : json_array_get(self->answers, 0);
	post_reply_json(
	    self->exchange,
	    self->session.revision >= MCP_STATELESS ? rpc_http_status(answer) : 200,
	    self->headers, answer);
	post_destroy(self);
}

static void on_answer(json_t *message, void *arg)
{
	struct post *self = arg;

	self->open--;
	if (self->stream) {
		stream_answer(self->stream, message, take(&self->about));
		json_decref(message);
	} else {
		json_array_append_new(self->answers, message);
	}
	if (self->open)
		return;
	if (self->exchange)
		reply_all(self);
	else
		post_destroy(self);
}

/* The client has left before anything was sent. */
static void on_gone(struct exchange *exchange, void *arg)
{
	struct post *self = arg;

	(void)exchange;
	self->exchange = NULL;
	loop_timer_stop(&self->timer);
	on_left(self);
}

/* ---- taking ---- */

static struct post *post_create(struct posts *self, struct exchange *exchange,
				bool batch)
{
	struct post *post = xcalloc(1, sizeof *post);

	*post = (struct post){.owner = self,
			      .exchange = exchange,
			      .batch = batch,
			      .takes_stream = http_accepts(exchange, EVENT_TYPE),
			      .answers = json_array()};
	LIST_INSERT_HEAD(&self->all, post, link);
	http_on_gone(exchange, on_gone, post);
	return post;
}

/* One message of the body; true if it is answered.  What is not even JSON-RPC is
 * answered like a request. */
static bool take_message(struct post *post, json_t *message,
			 const struct server_context *context)
{
	struct rpc rpc;
	struct err err;

	if (rpc_read(&rpc, message, &err) < 0) {
		post->open--;
		json_array_append_new(post->answers,
				      rpc_error(rpc.id, err_rpc_code(err.kind),
						"Invalid Request: %s", err.msg));
		return true;
	}
	if (rpc.kind == RPC_REQUEST) {
		server_request(post->owner->server, &rpc, context, on_answer, post);
		return true;
	}
	post->open--;
	if (rpc.kind == RPC_NOTIFICATION)
		server_notification(post->owner->server, &rpc, context);
	else
		server_response(post->owner->server, message, context->session);
	return false;
}

/* The id of the only request there is, or NULL. */
static json_t *only_request(const json_t *messages)
{
	const json_t *first = json_array_get(messages, 0);
	json_t *id = json_object_get(first, "id");
	bool is_request = json_is_string(json_object_get(first, "method"));

	return is_request && json_array_size(messages) == 1 ? id : NULL;
}

void post_take(struct posts *self, struct exchange *exchange, const json_t *messages,
	       bool batch, const struct session *session,
	       const struct server_context *asker, const char *headers)
{
	struct post *post = post_create(self, exchange, batch);
	struct server_context context = *asker;
	size_t count = json_array_size(messages);
	bool answered = false;

	snprintf(post->headers, sizeof post->headers, "%s", headers);
	post->session = *session;
	post->workspace = context.workspace;
	post->request = json_incref(only_request(messages));
	context.outlet = (struct outlet){.send = on_outlet,
					 .disconnect = on_disconnect,
					 .about = on_about,
					 .arg = post};
	if (self->eager && post->takes_stream && session->serial && post->request)
		begin_stream(post);
	post->open = count + 1; /* one is ours, until all are under way */
	for (size_t i = 0; i < count; i++)
		answered |= take_message(post, json_array_get(messages, i), &context);
	if (!answered) {
		http_on_gone(exchange, NULL, NULL);
		http_reply(exchange, 202, "", NULL, "", 0);
		post_destroy(post);
		return;
	}
	if (--post->open) {
		if (post->takes_stream && post->exchange)
			loop_timer_start(self->loop, &post->timer, STREAM_AFTER_US,
					 on_late, post);
	} else if (post->exchange) {
		reply_all(post);
	} else {
		post_destroy(post);
	}
}

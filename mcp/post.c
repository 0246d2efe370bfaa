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
	struct exchange *exchange;      /* NULL once the client has left */
	char headers[POST_HEADERS_MAX]; /* Mcp-Session-Id, after initialize */
	bool batch, takes_stream, streaming;
	bool stateless;  /* of 2026-07-28: to leave is to cancel */
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
	free(self);
}

void posts_finish(struct posts *self)
{
	struct post *post;

	while ((post = LIST_FIRST(&self->all)))
		post_destroy(post);
}

/* ---- answering ---- */

static bool send_event(struct post *self, json_t *message)
{
	owned(buf_finish) struct buf event = {0};

	buf_text(&event, "event: message\ndata: ");
	json_write(&event, message);
	buf_text(&event, "\n\n");
	return http_stream_send(self->exchange, event.data, event.size);
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
	json_t *answer = self->batch ? self->answers : json_array_get(self->answers, 0);
	post_reply_json(self->exchange, self->stateless ? rpc_http_status(answer) : 200,
			self->headers, answer);
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
	return false;
}

void post_take(struct posts *self, struct exchange *exchange, const json_t *messages,
	       bool batch, const struct server_context *context, const char *headers)
{
	struct post *post = post_create(self, exchange, batch);
	size_t count = json_array_size(messages);
	bool answered = false;

	snprintf(post->headers, sizeof post->headers, "%s", headers);
	post->stateless = context->revision >= MCP_STATELESS;
	post->open = count + 1; /* one is ours, until all are under way */
	for (size_t i = 0; i < count; i++)
		answered |= take_message(post, json_array_get(messages, i), context);
	if (!answered) {
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

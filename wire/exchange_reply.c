/*
 * exchange_reply - the answer's way out.  Answers are queued from anywhere, but bytes
 * leave only in exchange_flush(), called by lws callbacks.
 *
 * SPDX-License-Identifier: MIT
 */
#include "wire/http_impl.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "wire/json.h"
#include "wire/mem.h"
#include "wire/pipeline.h"

enum {
	DISCARD_MAX = 8 * 1024 * 1024, /* unread body worth keeping a connection for */
	LINGER_S = 1,    /* else: time for the client to read the refusal */
	HEAD_ROOM = 256, /* enough for most */
	ERROR_MAX = 500,
};

const char *http_status_text(int status)
{
	static const struct {
		int status;
		const char *text;
	} texts[] = {{200, "OK"},
		     {201, "Created"},
		     {202, "Accepted"},
		     {204, "No Content"},
		     {400, "Bad Request"},
		     {401, "Unauthorized"},
		     {403, "Forbidden"},
		     {404, "Not Found"},
		     {405, "Method Not Allowed"},
		     {406, "Not Acceptable"},
		     {408, "Request Timeout"},
		     {409, "Conflict"},
		     {411, "Length Required"},
		     {413, "Content Too Large"},
		     {415, "Unsupported Media Type"},
		     {426, "Upgrade Required"},
		     {500, "Internal Server Error"},
		     {501, "Not Implemented"},
		     {503, "Service Unavailable"}};

	for (size_t i = 0; i < COUNT_OF(texts); i++)
		if (texts[i].status == status)
			return texts[i].text;
	return "Status";
}

/* ---- bytes ---- */

static void on_linger_over(void *arg)
{
	exchange_kill(arg);
}

/* Closing with unread input sends a reset, which can eat the answer (lws closes right
 * after its shutdown(), its own lingering never runs): say "no more from us", drop
 * what still comes, close soon. */
static int linger(struct exchange *self)
{
	self->state = EXCHANGE_LINGERING;
	if (self->http->tls)
		tls_say_end(lws_get_ssl(self->wsi));
	shutdown(lws_get_socket_fd(self->wsi), SHUT_WR);
	loop_timer_start(self->http->loop, &self->timer, LINGER_S * LWS_USEC_PER_SEC,
			 on_linger_over, self);
	return 0;
}

/* The answer is out; the rest of the body is not in.  Not lws's LRS_DISCARD_BODY: we
 * must be there when it ends, for the mark. */
static int discard(struct exchange *self)
{
	self->state = EXCHANGE_DISCARDING;
	loop_timer_start(self->http->loop, &self->timer,
			 self->http->config.body_timeout_s * LWS_USEC_PER_SEC,
			 on_linger_over, self);
	return 0;
}

/* Nothing was read since the head if the answer goes out in the head's own round; of
 * TLS that is not sure. */
static unsigned long long read_so_far(const struct exchange *self, int fd)
{
	if (self->http->tls || self->head_round != loop_round(self->http->loop))
		return pipeline_bytes_read(fd);
	assert(!pipeline_has_read(self->head_mark, pipeline_bytes_read(fd)));
	return self->head_mark;
}

static int complete(struct exchange *self)
{
	struct connection *connection = self->connection;
	bool keep_alive = self->keep_alive;

	if (self->body_due)
		return keep_alive ? discard(self) : linger(self);
	connection->read_mark = read_so_far(self, lws_get_socket_fd(self->wsi));
	exchange_destroy(&self);
	if (!keep_alive || lws_http_transaction_completed(connection->wsi))
		return -1;
	connection_idle(connection);
	return 0;
}

static void tell_drained(struct exchange *self)
{
	self->waiting = false;
	if (!self->drained.fn)
		return;
	self->in_callback = true;
	self->drained.fn(self, self->drained.arg);
	self->in_callback = false;
	if (self->out.size || self->state == EXCHANGE_FINISHING)
		lws_callback_on_writable(self->wsi);
}

int exchange_flush(struct exchange *self)
{
	struct piece piece;

	if (sendq_peek(&self->out, &piece)) {
		if (lws_write(self->wsi, piece.data, piece.size, LWS_WRITE_HTTP) < 0)
			return -1;
		sendq_drop(&self->out, piece.size);
		self->moved_us = loop_now_us();
	}
	if (self->out.size || lws_partial_buffered(self->wsi)) {
		if (self->state == EXCHANGE_FINISHING)
			/* our sweep decides how slow is too slow, not lws's 5 s */
			lws_set_timeout(self->wsi, NO_PENDING_TIMEOUT, 0);
		lws_callback_on_writable(self->wsi);
		return 0;
	}
	if (self->state == EXCHANGE_FINISHING || self->state == EXCHANGE_DISCARDING)
		return complete(self);
	if (self->state == EXCHANGE_STREAMING && self->waiting)
		tell_drained(self);
	return 0;
}

static void queue(struct exchange *self, const void *const *parts, const size_t *sizes,
		  int count)
{
	if (!self->out.size)
		self->moved_us = loop_now_us();
	sendq_add(&self->out, parts, sizes, count);
	if (!self->in_callback)
		lws_callback_on_writable(self->wsi);
}

void exchange_send_raw(struct exchange *self, const char *text)
{
	queue(self, (const void *[]){text}, (size_t[]){strlen(text)}, 1);
}

/* ---- replies ---- */

/* Decides once, before the head is built, whether the connection lives on. */
static void settle_keep_alive(struct exchange *self)
{
	if (self->chunked_in || self->http->draining ||
	    (self->body_due &&
	     (self->body_left > DISCARD_MAX || self->expects_continue)))
		self->keep_alive = false;
}

static void finish(struct exchange *self)
{
	loop_timer_stop(&self->timer);
	self->gone = self->drained = (struct callback){0};
	self->state = EXCHANGE_FINISHING;
}

static void begin_head(struct buf *head, int status, const char *type)
{
	buf_reserve(head, HEAD_ROOM);
	buf_text(head, "HTTP/1.1 ");
	buf_number(head, status);
	buf_text(head, " ");
	buf_text(head, http_status_text(status));
	if (type) {
		buf_text(head, "\r\nContent-Type: ");
		buf_text(head, type);
	}
	buf_text(head, "\r\n");
}

static void end_head(struct buf *head, const char *headers, bool keep_alive)
{
	buf_text(head, headers);
	buf_text(head, keep_alive ? "\r\n" : "Connection: close\r\n\r\n");
}

void http_reply(struct exchange *self, int status, const char *headers,
		const char *type, const void *body, size_t size)
{
	owned(buf_finish) struct buf head = {0};

	settle_keep_alive(self);
	begin_head(&head, status, type);
	if (status != 204) { /* has no body by definition */
		buf_text(&head, "Content-Length: ");
		buf_number(&head, (long long)size);
		buf_text(&head, "\r\n");
	}
	end_head(&head, headers, self->keep_alive);
	if (strcmp(self->method, "HEAD") == 0)
		size = 0;
	finish(self);
	queue(self, (const void *[]){head.data, body}, (size_t[]){head.size, size}, 2);
	exchange_drop_body(self);
}

/* Controls and what is not ASCII come out escaped, so that the answer can be
 * put on a terminal as it is. */
char *http_error_body(const char *text)
{
	json_t *body =
	    json_pack("{s:o}", "error", json_string_lossy(text, strlen(text)));
	char *out = json_dumps(body, JSON_COMPACT | JSON_ENSURE_ASCII);

	json_decref(body);
	return out ? out : xstrdup("{}");
}

void http_error(struct exchange *self, int status, const char *headers, const char *fmt,
		...)
{
	char text[ERROR_MAX + 1];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	owned(free_text) char *body = http_error_body(text);
	http_reply(self, status, headers, "application/json", body, strlen(body));
}

/* ---- event streams ---- */

static void send_event_bytes(struct exchange *self, const void *text, size_t size)
{
	char head[20] = "";
	int len = self->chunked_out ? snprintf(head, sizeof head, "%zx\r\n", size) : 0;

	queue(self, (const void *[]){head, text, "\r\n"},
	      (size_t[]){(size_t)len, size, self->chunked_out ? 2 : 0}, 3);
}

static void keep_up(struct exchange *self);

static void comment(void *arg)
{
	struct exchange *self = arg;

	if (!self->out.size) /* a stalled client gets no more of them */
		send_event_bytes(self, ":\n\n", 3);
	keep_up(self);
}

static void keep_up(struct exchange *self)
{
	loop_timer_start(self->http->loop, &self->timer,
			 self->http->config.comment_s * LWS_USEC_PER_SEC, comment,
			 self);
}

void http_stream(struct exchange *self, const char *headers)
{
	owned(buf_finish) struct buf head = {0};

	settle_keep_alive(self);
	if (strcmp(self->method, "GET") == 0) /* ended early: not kept for nothing */
		self->keep_alive = false;
	begin_head(&head, 200, "text/event-stream");
	buf_text(&head, "Cache-Control: no-store\r\nX-Accel-Buffering: no\r\n");
	if (self->chunked_out)
		buf_text(&head, "Transfer-Encoding: chunked\r\n");
	end_head(&head, headers, self->keep_alive);
	self->state = EXCHANGE_STREAMING;
	queue(self, (const void *[]){head.data}, (size_t[]){head.size}, 1);
	exchange_drop_body(self);
	/* not lws_http_mark_sse(): on HTTP/1 it leaves lws's 5 s deadline armed */
	lws_http_headers_detach(self->wsi);
	lws_set_timeout(self->wsi, NO_PENDING_TIMEOUT, 0);
	send_event_bytes(self, ":\n\n", 3); /* the first byte, at once */
	keep_up(self);
}

bool http_stream_send(struct exchange *self, const void *text, size_t size)
{
	if (sendq_full(&self->out, size, self->http->config.queue_max)) {
		self->waiting = true;
		return false;
	}
	send_event_bytes(self, text, size);
	return true;
}

void http_on_drained(struct exchange *self, exchange_fn *fn, void *arg)
{
	self->drained = (struct callback){fn, arg};
}

void http_stream_end(struct exchange *self)
{
	finish(self);
	if (!self->chunked_out)
		self->keep_alive = false;
	queue(self, (const void *[]){"0\r\n\r\n"},
	      (size_t[]){self->chunked_out ? 5 : 0}, 1);
}

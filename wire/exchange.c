/*
 * exchange - one request on one connection: its life and its way in.  The way out is
 * in exchange_reply.c.
 *
 * SPDX-License-Identifier: MIT
 */
#include "wire/http_impl.h"

#include <stdlib.h>
#include <string.h>

#include "wire/mem.h"
#include "wire/pipeline.h"

static const char *const methods[] = {"GET",   "POST",   "OPTIONS", "PUT",
				      "PATCH", "DELETE", "CONNECT", "HEAD"};

static struct exchange *exchange_create(struct http *http, struct lws *wsi)
{
	struct exchange *self = xcalloc(1, sizeof *self);
	char *uri;
	int uri_len, method = lws_http_get_uri_and_method(wsi, &uri, &uri_len);

	self->http = http;
	self->connection = connection_busy(http, wsi);
	self->connection->exchange = self;
	self->wsi = wsi;
	self->method =
	    method >= 0 && method < (int)COUNT_OF(methods) ? methods[method] : "?";
	if (method >= 0)
		lws_strnncpy(self->path, uri, uri_len, sizeof self->path);
	LIST_INSERT_HEAD(&http->exchanges, self, link);
	http->busy++;
	return self;
}

void exchange_destroy(struct exchange **self)
{
	struct exchange *dead = take(self);

	loop_timer_stop(&dead->timer);
	exchange_drop_body(dead);
	dead->connection->exchange = NULL;
	LIST_REMOVE(dead, link);
	dead->http->busy--;
	sendq_finish(&dead->out);
	free(dead);
}

void exchange_drop_body(struct exchange *self)
{
	peers_give_body(&self->http->peers, self->connection->peer, self->body_bytes);
	self->body_bytes = 0;
	buf_finish(&self->body);
}

void exchange_tell_gone(struct exchange *self)
{
	struct callback gone = self->gone;

	self->gone = self->drained = (struct callback){0};
	if (gone.fn)
		gone.fn(self, gone.arg);
}

/* The only way to close a connection from outside its own callback. */
void exchange_kill(struct exchange *self)
{
	lws_set_timeout(self->wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC);
}

/* From here to the answer it may take minutes, and lws expects it in 5 s.  The table
 * of headers, 9 KB, is given back. */
static void wait_for_answer(struct exchange *self)
{
	lws_http_headers_detach(self->wsi);
	lws_set_timeout(self->wsi, NO_PENDING_TIMEOUT, 0);
}

static int leave_callback(struct exchange *self)
{
	if (self->state == EXCHANGE_HANDLING)
		wait_for_answer(self);
	self->in_callback = false;
	return exchange_flush(self);
}

static void await_bodies(struct http *http, int64_t usec)
{
	http->bodies_wait = true;
	loop_timer_start(http->loop, &http->bodies, usec, exchange_refuse_late_bodies,
			 http);
}

static void body_is_late(struct exchange *self)
{
	self->keep_alive = false;
	http_error(self, 408, "", "the body was not complete after %d s; send it again",
		   self->http->config.body_timeout_s);
}

/* One timer for all, as all wait equally long, and most bodies come with the head. */
void exchange_refuse_late_bodies(void *arg)
{
	struct http *http = arg;
	struct exchange *exchange;
	int64_t now = loop_now_us(), next = 0;

	LIST_FOREACH(exchange, &http->exchanges, link)
	{
		if (exchange->state != EXCHANGE_RECEIVING)
			continue;
		if (exchange->body_due_us <= now)
			body_is_late(exchange);
		else if (!next || exchange->body_due_us < next)
			next = exchange->body_due_us;
	}
	http->bodies_wait = false;
	if (next)
		await_bodies(http, next - now);
}

/* A deadline for the whole: each piece that comes re-arms the one of lws. */
static void expect_body(struct exchange *self)
{
	if (self->expects_continue) /* lws never says it */
		exchange_send_raw(self, "HTTP/1.1 100 Continue\r\n\r\n");
	const int64_t usec = self->http->config.body_timeout_s * LWS_USEC_PER_SEC;
	self->body_due_us = loop_now_us() + usec;
	if (!self->http->bodies_wait)
		await_bodies(self->http, usec);
}

static void handle(struct exchange *self)
{
	self->state = EXCHANGE_HANDLING;
	self->route->request(self, self->route->arg);
}

int exchange_on_headers(struct http *http, struct lws *wsi)
{
	if (http->stopped || connection_exchange(wsi))
		return -1; /* a request behind an open GET stream: that is over */

	struct exchange *self = exchange_create(http, wsi);
	int fd = lws_get_socket_fd(wsi);

	self->in_callback = true;
	bool framed = exchange_read_framing(self);
	if (self->body_due) {
		self->head_round = loop_round(http->loop);
		self->head_mark = pipeline_bytes_read(fd);
		if (!pipeline_has_read(self->connection->read_mark, self->head_mark))
			return -1; /* pipelined: see pipeline.h; on_closed() follows */
	}
	if (framed && exchange_admit(self) && self->route->begin)
		self->route->begin(self, self->route->arg);
	if (self->state == EXCHANGE_RECEIVING && self->body_due)
		expect_body(self);
	else if (self->state == EXCHANGE_RECEIVING)
		handle(self);
	return leave_callback(self);
}

static int append(struct exchange *self, const void *data, size_t size)
{
	const struct http_config *config = &self->http->config;

	if (self->body.size + size > config->body_max) {
		http_error(self, 413, "",
			   "the body is over the limit of %zu bytes; send less in one "
			   "request",
			   config->body_max);
		return -1;
	}
	if (!peers_take_body(&self->http->peers, self->connection->peer, size,
			     config->bodies_max)) {
		http_error(self, 503, "Retry-After: 1\r\n",
			   "too many large requests at once; send it again later");
		return -1;
	}
	self->body_bytes += size;
	buf_add(&self->body, data, size);
	return 0;
}

static int feed_chunked(struct exchange *self, void *data, size_t size)
{
	long out = dechunk_feed(&self->dechunk, data, size);

	if (out < 0) {
		http_error(self, 400, "",
			   "the chunked body is malformed; send a Content-Length "
			   "instead");
	} else if (append(self, data, (size_t)out) == 0 &&
		   self->dechunk.state == DECHUNK_DONE) {
		self->body_due = false;
		self->keep_alive = false; /* lws cannot find the next request */
		handle(self);
	}
	return leave_callback(self);
}

int exchange_on_body(struct exchange *self, void *data, size_t size)
{
	if (!self)
		return 0;
	if (self->body_left)
		self->body_left -= size < self->body_left ? size : self->body_left;
	if (!self->chunked_in && !self->body_left)
		self->body_due = false;
	if (self->state != EXCHANGE_RECEIVING || !size)
		return 0; /* already answered, or lingering: drop */
	self->in_callback = true;
	if (self->chunked_in)
		return feed_chunked(self, data, size);
	append(self, data, size);
	return leave_callback(self);
}

int exchange_on_body_end(struct exchange *self)
{
	if (!self)
		return 0;
	if (self->state == EXCHANGE_LINGERING)
		return -1;
	if (self->state == EXCHANGE_DISCARDING)
		return exchange_flush(self);
	if (self->state != EXCHANGE_RECEIVING)
		return -1; /* pipelined input: lws would repeat this, busily, till then;
			      lws_rx_flow_control() would stop our writes as well */
	self->in_callback = true;
	handle(self);
	return leave_callback(self);
}

int exchange_on_writable(struct exchange *self)
{
	return self && self->state < EXCHANGE_DISCARDING ? exchange_flush(self) : 0;
}

void exchange_on_closed(struct exchange *self)
{
	if (!self)
		return;
	exchange_tell_gone(self);
	exchange_destroy(&self);
}

/* ---- what a route may ask ---- */

const char *http_method(const struct exchange *self)
{
	return self->method;
}

const char *http_path(const struct exchange *self)
{
	return self->path;
}

const char *http_user(const struct exchange *self)
{
	return self->pass.user;
}

bool http_is_trusted(const struct exchange *self)
{
	return self->has_pass || !self->http->config.guard;
}

int http_header(struct exchange *self, const char *name, char *out, size_t size)
{
	return header_copy(self->wsi, name, out, size);
}

bool http_query(struct exchange *self, const char *name, char *out, size_t size)
{
	char start[64], room[512];

	snprintf(start, sizeof start, "%s=", name);
	const char *value = lws_get_urlarg_by_name(self->wsi, start, room, sizeof room);
	size_t len = value ? strlen(value) : size;
	if (len >= size)
		return false;
	memcpy(out, value, len + 1);
	return true;
}

/* True if one item of Accept is the type or a wildcard that covers it. */
static bool covers(const char *range, const char *type)
{
	size_t len = strcspn(range, "; \t"), family = strcspn(type, "/") + 1;

	if (len == strlen(type) && strncasecmp(range, type, len) == 0)
		return true;
	if (len == family + 1 && range[family] == '*')
		return strncasecmp(range, type, family) == 0;
	return len == 3 && strncmp(range, "*/*", 3) == 0;
}

bool http_accepts(struct exchange *self, const char *type)
{
	char value[512], *rest = value, *range;

	if (header_copy(self->wsi, "accept", value, sizeof value) < 0)
		return false;
	while ((range = strsep(&rest, ",")))
		if (covers(range + strspn(range, " \t"), type))
			return true;
	return false;
}

const char *http_body(const struct exchange *self, size_t *size)
{
	*size = self->body.size;
	return buf_str(&self->body);
}

void http_set_data(struct exchange *self, void *data)
{
	self->data = data;
}

void *http_data(const struct exchange *self)
{
	return self->data;
}

void http_on_gone(struct exchange *self, exchange_fn *fn, void *arg)
{
	self->gone = (struct callback){fn, arg};
}

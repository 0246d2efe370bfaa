// SPDX-License-Identifier: MIT
#include "wire/ws.h"

#include <stdlib.h>
#include <string.h>

#include "wire/http_impl.h"
#include "wire/mem.h"
#include "wire/utf8.h"
#include "wire/ws_mask.h"

enum { WAITING_MAX = 1 << 20 /* bytes that wait while input is read */ };

struct ws {
	LIST_ENTRY(ws) link;
	struct http *http; /* borrowed, like the next two */
	struct connection *connection;
	const struct http_route *route;
	bool has_pass;
	struct pass pass;
	void *data;       /* the handler's */
	bool told;        /* gone() was called, or is not to be */
	struct buf text;  /* of the message that is coming in */
	int64_t begun_us; /* when it began; 0: none is */
	struct sendq out;
	int64_t moved_us; /* when the queue last moved or stopped being empty */
	bool paused;      /* nothing is read */
	bool closing, hurried /* without what is queued */;
	enum ws_close code;
	const char *reason;
};

/* ---- the way in ---- */

void ws_begin(struct http *http, struct lws *wsi, const struct http_route *route,
	      const struct pass *pass)
{
	struct ws *self = xcalloc(1, sizeof *self);

	*self = (struct ws){.http = http,
			    .connection = connection_busy(http, wsi),
			    .route = route,
			    .has_pass = pass != NULL};
	if (pass)
		self->pass = *pass;
	self->connection->ws = self;
	LIST_INSERT_HEAD(&http->sockets, self, link);
	http->socket_count++;
	route->ws->open(self, route->ws_arg);
}

void ws_set_data(struct ws *self, void *data)
{
	self->data = data;
}

const char *ws_user(const struct ws *self)
{
	return self->has_pass ? self->pass.user : "";
}

int ws_header(struct ws *self, const char *name, char *out, size_t size)
{
	return header_copy(self->connection->wsi, name, out, size);
}

static void drop_text(struct ws *self)
{
	peers_give_body(&self->http->peers, self->connection->peer, self->text.size);
	buf_finish(&self->text);
	self->begun_us = 0;
}

static void tell_gone(struct ws *self)
{
	if (self->told)
		return;
	self->told = true;
	self->route->ws->gone(self, self->data);
}

void ws_end(struct ws *self)
{
	if (!self)
		return;
	tell_gone(self);
	drop_text(self);
	sendq_finish(&self->out);
	self->connection->ws = NULL;
	self->http->socket_count--;
	LIST_REMOVE(self, link);
	free(self);
}

/* For inside a callback of lws: what it returns makes lws close. */
static int fail(struct ws *self, enum ws_close code, const char *reason)
{
	self->closing = true;
	lws_close_reason(self->connection->wsi, (enum lws_close_status)code,
			 (unsigned char *)(uintptr_t)reason, strlen(reason));
	return -1;
}

static void settle(struct ws *self)
{
	bool pause = self->out.size > WAITING_MAX;

	if (pause == self->paused)
		return;
	self->paused = pause;
	lws_rx_flow_control(self->connection->wsi, !pause);
}

/* One frame, or a part of one that is large. */
int ws_on_receive(struct ws *self, const void *in, size_t size)
{
	struct lws *wsi = self->connection->wsi;
	size_t coming = lws_remaining_packet_payload(wsi);

	if (self->closing)
		return 0;
	if (ws_mask_is_missing(wsi))
		return fail(self, WS_PROTOCOL, "a client masks its frames");
	if (lws_frame_is_binary(wsi))
		return fail(self, WS_NO_TEXT, "messages are text");
	if (self->text.size + size + coming > self->http->config.body_max)
		return fail(self, WS_TOO_BIG, "a message is over the limit");
	if (!peers_take_body(&self->http->peers, self->connection->peer, size,
			     self->http->config.bodies_max))
		return fail(self, WS_OVERLOAD, "too many large messages at once");
	if (!self->begun_us)
		self->begun_us = loop_now_us();
	buf_add(&self->text, in, size);
	if (!lws_is_final_fragment(wsi) || coming)
		return 0;
	if (utf8_valid_up_to(buf_str(&self->text), self->text.size) < self->text.size)
		return fail(self, WS_NO_UTF8, "text is UTF-8");
	if (!self->told)
		self->route->ws->message(self, buf_str(&self->text), self->text.size,
					 self->data);
	drop_text(self);
	return 0;
}

/* ---- the way out ---- */

bool ws_send(struct ws *self, const char *text, size_t size, bool must)
{
	if (self->closing)
		return true; /* nobody is there to miss it */
	if (!must && sendq_full(&self->out, size, WS_OUT_MAX))
		return false;
	if (!self->out.size)
		self->moved_us = loop_now_us();
	sendq_add(&self->out, (const void *[]){text}, (size_t[]){size}, 1);
	settle(self);
	lws_callback_on_writable(self->connection->wsi);
	return true;
}

size_t ws_waiting(const struct ws *self)
{
	return self->out.size;
}

void ws_close(struct ws *self, enum ws_close code, const char *reason)
{
	if (self->closing)
		return;
	self->closing = true;
	self->code = code;
	self->reason = reason;
	lws_callback_on_writable(self->connection->wsi);
}

static int send_piece(struct ws *self)
{
	struct lws *wsi = self->connection->wsi;
	bool is_long = self->out.size > SENDQ_PIECE;
	struct piece piece;

	if (!sendq_peek(&self->out, &piece))
		return 0;
	int flags = lws_write_ws_flags(LWS_WRITE_TEXT, piece.first, piece.last);
	if (lws_write(wsi, piece.data, piece.size, (enum lws_write_protocol)flags) < 0)
		return -1;
	sendq_drop(&self->out, piece.size);
	self->moved_us = loop_now_us();
	if (is_long) /* the pong may stand behind much: who takes it is alive */
		lws_validity_confirmed(wsi);
	return 0;
}

int ws_on_writable(struct ws *self)
{
	if (self->closing && !self->code)
		return 0; /* lws is at it */
	if (!self->hurried && send_piece(self) < 0)
		return -1;
	settle(self);
	if (self->out.size && !self->hurried)
		lws_callback_on_writable(self->connection->wsi);
	else if (self->closing)
		return fail(self, self->code, self->reason);
	return 0;
}

/* ---- all of them ---- */

static void kill_it(struct ws *self)
{
	lws_set_timeout(self->connection->wsi, PENDING_TIMEOUT_USER_OK,
			LWS_TO_KILL_ASYNC);
}

void ws_sweep_all(struct http *http)
{
	int64_t now = loop_now_us();
	int64_t stall_us = http->config.stall_timeout_s * LWS_USEC_PER_SEC;
	int64_t body_us = http->config.body_timeout_s * LWS_USEC_PER_SEC;
	struct ws *self;

	LIST_FOREACH(self, &http->sockets, link)
	{
		bool waits =
		    self->out.size || lws_partial_buffered(self->connection->wsi);

		if (waits && now - self->moved_us >= stall_us)
			kill_it(self);
		else if (self->begun_us && now - self->begun_us >= body_us)
			ws_close(self, WS_POLICY, "a message took too long");
	}
}

void ws_drain_all(struct http *http)
{
	struct ws *self;

	LIST_FOREACH(self, &http->sockets, link)
	{
		if (!self->told)
			self->route->ws->drain(self, self->data);
	}
}

void ws_revoke_all(struct http *http, pass_fn *is_good, void *arg)
{
	struct ws *self;

	LIST_FOREACH(self, &http->sockets, link)
	{
		if (!self->has_pass || is_good(arg, &self->pass))
			continue;
		self->hurried = true;
		tell_gone(self);
		ws_close(self, WS_POLICY, "the token is not good any more");
	}
}

void ws_stop_all(struct http *http)
{
	struct ws *self;

	LIST_FOREACH(self, &http->sockets, link)
	{
		tell_gone(self);
		kill_it(self);
	}
}

/*
 * connection - what is kept of a connection beside its requests, and how long.  lws
 * has a timer for this as well, but sorts it in behind those of all other connections
 * after each request: with a thousand connections that takes longer than all else.
 *
 * SPDX-License-Identifier: MIT
 */
#include "wire/http_impl.h"

#include <stdlib.h>

#include "wire/mem.h"

struct connection *connection_of(struct lws *wsi)
{
	return lws_get_opaque_user_data(wsi);
}

struct exchange *connection_exchange(struct lws *wsi)
{
	struct connection *self = connection_of(wsi);

	return self ? self->exchange : NULL;
}

static void leave_idle(struct connection *self)
{
	if (!self->idle_us)
		return;
	self->idle_us = 0;
	TAILQ_REMOVE(&self->http->idle, self, link);
}

void connection_begin(struct http *http, struct lws *wsi)
{
	struct connection *self = xcalloc(1, sizeof *self);

	self->http = http;
	self->wsi = wsi;
	self->peer = peers_enter(&http->peers, lws_get_socket_fd(wsi));
	lws_set_opaque_user_data(wsi, self);
}

struct connection *connection_busy(struct http *http, struct lws *wsi)
{
	if (!connection_of(wsi))
		connection_begin(http, wsi);
	leave_idle(connection_of(wsi));
	return connection_of(wsi);
}

static int64_t patience_us(const struct http *http)
{
	return http->config.idle_timeout_s * LWS_USEC_PER_SEC;
}

static void close_idle(void *arg)
{
	struct http *http = arg;
	struct connection *first;
	int64_t now = loop_now_us();

	while ((first = TAILQ_FIRST(&http->idle)) &&
	       first->idle_us + patience_us(http) <= now) {
		leave_idle(first);
		lws_set_timeout(first->wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC);
	}
	if (first)
		loop_timer_start(http->loop, &http->idling,
				 first->idle_us + patience_us(http) - now, close_idle,
				 http);
}

void connection_idle(struct connection *self)
{
	struct http *http = self->http;

	if (self->exchange || http->stopped)
		return; /* the next request is there already */
	lws_set_timeout(self->wsi, NO_PENDING_TIMEOUT, 0);
	if (TAILQ_EMPTY(&http->idle))
		loop_timer_start(http->loop, &http->idling, patience_us(http),
				 close_idle, http);
	self->idle_us = loop_now_us();
	TAILQ_INSERT_TAIL(&http->idle, self, link);
}

void connection_end(struct lws *wsi)
{
	struct connection *self = connection_of(wsi);

	if (!self)
		return;
	ws_end(self->ws);
	exchange_on_closed(self->exchange); /* in case lws skipped CLOSED_HTTP */
	leave_idle(self);
	peers_leave(&self->http->peers, &self->peer);
	lws_set_opaque_user_data(wsi, NULL);
	free(self);
}

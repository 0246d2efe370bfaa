/*
 * http - the listening side: lws's callbacks, limits on connections, and the end.
 *
 * SPDX-License-Identifier: MIT
 */
#include "wire/http.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wire/address.h"
#include "wire/http_impl.h"
#include "wire/log.h"
#include "wire/mem.h"

enum {
	SWEEPS_PER_STALL = 4,
	WS_READ_SIZE = 4096, /* lws allocates this much for each WebSocket */
};

static const char subject[] = "http";

static struct http *http_of(struct lws *wsi)
{
	return lws_get_vhost_user(lws_get_vhost(wsi));
}

static int filter_connection(struct http *self, int fd)
{
	if (self->draining || fd < 0 || fd >= LOOP_FD_MAX)
		return -1;
	return peers_have_room(&self->peers, fd, self->config.connections_max) ? 0 : -1;
}

/*
 * 0 for good WebSockets only: it is the only gate against h2c (without it lws answers
 * 101), and it stops lws 4.1.6 after it has answered an unknown Upgrade by itself: by
 * then "in" points into a freed header table, so it is not looked at (CVE-2025-11677),
 * and returning 0 would make lws look at it.  The headers are still there for the two
 * names that lws knows; only then an answer of ours is possible.
 */
static int confirm_upgrade(struct lws *wsi)
{
	static const char *const known[] = {"websocket", "h2c"};
	char upgrade[16];

	if (header_copy(wsi, "upgrade", upgrade, sizeof upgrade) > 0)
		for (size_t i = 0; i < COUNT_OF(known); i++)
			if (strcasecmp(upgrade, known[i]) == 0)
				return ws_on_upgrade(http_of(wsi), wsi, known[i]);
	return -1;
}

static struct ws *socket_of(struct lws *wsi)
{
	return connection_of(wsi) ? connection_of(wsi)->ws : NULL;
}

static int on_ws(struct lws *wsi, enum lws_callback_reasons reason, void *in,
		 size_t len)
{
	struct ws *ws = socket_of(wsi);

	if (!ws) /* every upgrade has passed confirm_upgrade() */
		return reason == LWS_CALLBACK_CLOSED ? 0 : -1;
	if (reason == LWS_CALLBACK_RECEIVE)
		return ws_on_receive(ws, in, len);
	if (reason == LWS_CALLBACK_SERVER_WRITEABLE)
		return ws_on_writable(ws);
	if (reason == LWS_CALLBACK_CLOSED)
		ws_end(ws);
	return 0;
}

static int on_http(struct lws *wsi, enum lws_callback_reasons reason, void *user,
		   void *in, size_t len)
{
	switch ((int)reason) {
	case LWS_CALLBACK_OPENSSL_LOAD_EXTRA_SERVER_VERIFY_CERTS:
		tls_attach(http_of(wsi)->tls, user); /* shown here and nowhere else */
		return 0;
	case LWS_CALLBACK_FILTER_NETWORK_CONNECTION:
		return filter_connection(http_of(wsi), (int)(intptr_t)in);
	case LWS_CALLBACK_HTTP_CONFIRM_UPGRADE:
		return confirm_upgrade(wsi);
	case LWS_CALLBACK_SERVER_NEW_CLIENT_INSTANTIATED: /* it has its socket now */
		connection_begin(http_of(wsi), wsi);
		return 0;
	case LWS_CALLBACK_WSI_DESTROY:
		connection_end(wsi);
		return 0;
	case LWS_CALLBACK_RAW_ADOPT: /* what lws makes of CONNECT */
	case LWS_CALLBACK_RAW_CONNECTED:
	case LWS_CALLBACK_RAW_RX:
		return -1;
	case LWS_CALLBACK_HTTP:
		return exchange_on_headers(http_of(wsi), wsi);
	case LWS_CALLBACK_HTTP_BODY:
		return exchange_on_body(connection_exchange(wsi), in, len);
	case LWS_CALLBACK_HTTP_BODY_COMPLETION:
		return exchange_on_body_end(connection_exchange(wsi));
	case LWS_CALLBACK_HTTP_WRITEABLE:
		return exchange_on_writable(connection_exchange(wsi));
	case LWS_CALLBACK_FILTER_PROTOCOL_CONNECTION:
	case LWS_CALLBACK_ESTABLISHED:
	case LWS_CALLBACK_RECEIVE:
	case LWS_CALLBACK_SERVER_WRITEABLE:
	case LWS_CALLBACK_CLOSED:
		return on_ws(wsi, reason, in, len);
	case LWS_CALLBACK_CLOSED_HTTP:
		exchange_on_closed(connection_exchange(wsi));
		return 0;
	default:
		return 0; /* never lws_callback_http_dummy(): it answers by itself */
	}
}

/* One timer for all: a connection whose queue does not move is cut off, since TCP
 * itself would keep a client that takes nothing for ever. */
static void sweep(void *arg)
{
	struct http *self = arg;
	int64_t stall_us = self->config.stall_timeout_s * LWS_USEC_PER_SEC;
	int64_t now = loop_now_us();
	struct exchange *exchange;

	LIST_FOREACH(exchange, &self->exchanges, link)
	{
		if (!exchange->out.size && !lws_partial_buffered(exchange->wsi))
			continue;
		if (now - exchange->moved_us < stall_us)
			continue;
		log_info(subject, "%s %s: the client took nothing for %d s, closing",
			 exchange->method, exchange->path,
			 self->config.stall_timeout_s);
		exchange_kill(exchange);
	}
	ws_sweep_all(self);
	loop_timer_start(self->loop, &self->sweep, stall_us / SWEEPS_PER_STALL, sweep,
			 self);
}

static void set_default(int *value, int fallback)
{
	*value = *value > 0 ? *value : fallback;
}

static void set_defaults(struct http_config *config)
{
	if (!config->body_max)
		config->body_max = 4 << 20;
	if (!config->queue_max)
		config->queue_max = 1 << 20;
	if (!config->bodies_max)
		config->bodies_max = 256 << 20;
	set_default(&config->connections_max, 1024);
	set_default(&config->body_timeout_s, 30);
	set_default(&config->idle_timeout_s, 75);
	set_default(&config->stall_timeout_s, 60);
	set_default(&config->comment_s, 15);
	set_default(&config->ping_s, 25);
	if (strcmp(config->address, "localhost") == 0)
		config->address = "127.0.0.1";
}

/* lws says only that it could not, so ask the system again for the reason. */
static int explain(const struct http_config *config, struct err *err)
{
	if (address_try(config->address, config->port, err) < 0)
		return -1;
	return err_set(err, ERR_LIMIT, "listen on %s:%d failed; try again",
		       config->address, config->port);
}

static void fill_subprotocols(struct http *self)
{
	const char *const *names = self->config.subprotocols;

	for (size_t i = 0; names && names[i] && i < SUBPROTOCOLS_MAX; i++)
		self->protocols[i + 1] =
		    (struct lws_protocols){.name = names[i],
					   .callback = on_http,
					   .rx_buffer_size = WS_READ_SIZE,
					   .tx_packet_size = SENDQ_PIECE};
}

static void fill_tables(struct http *self)
{
	fill_subprotocols(self);
	self->pings.secs_since_valid_ping = (uint16_t)self->config.ping_s;
	self->pings.secs_since_valid_hangup = (uint16_t)(self->config.ping_s * 2);
	self->protocols[0] = (struct lws_protocols){
	    .name = "none", .callback = on_http, .tx_packet_size = SENDQ_PIECE};
	/* A callback mount, not "no mount": without one lws parks a GET in a state in
	 * which it no longer reads, misses the client's close and spins. */
	self->mount = (struct lws_http_mount){.mountpoint = "/",
					      .mountpoint_len = 1,
					      .origin = "none",
					      .origin_protocol = LWSMPRO_CALLBACK};
}

static bool has_tls(const struct http_config *config)
{
	return config->tls.cert && config->tls.cert[0];
}

static int listen_now(struct http *self, struct err *err)
{
	const bool is_v6 = strchr(self->config.address, ':') != NULL;
	struct lws_context_creation_info info = {
	    .vhost_name = "http",
	    .iface = self->config.address,
	    .port = self->config.port,
	    .protocols = self->protocols,
	    .mounts = &self->mount,
	    .user = self,
	    .timeout_secs_ah_idle = 5,
	    .retry_and_idle_policy = &self->pings,
	    .options = LWS_SERVER_OPTION_FAIL_UPON_UNABLE_TO_BIND |
		       (is_v6 ? LWS_SERVER_OPTION_IPV6_V6ONLY_MODIFY |
				    LWS_SERVER_OPTION_IPV6_V6ONLY_VALUE
			      : LWS_SERVER_OPTION_DISABLE_IPV6),
	};

	if (self->tls) {
		info.ssl_cert_filepath = self->config.tls.cert;
		info.ssl_private_key_filepath = self->config.tls.key;
		info.alpn = "http/1.1";
		info.options |= LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT;
	}
	self->vhost = lws_create_vhost(loop_lws(self->loop), &info);
	return self->vhost ? 0 : explain(&self->config, err);
}

int http_create(struct http **out, struct loop *loop, const struct http_config *config,
		const struct http_route *routes, size_t route_count, struct err *err)
{
	owned(http_destroy) struct http *self = xcalloc(1, sizeof *self);

	TAILQ_INIT(&self->idle);
	self->loop = loop;
	self->config = *config;
	self->routes = routes;
	self->route_count = route_count;
	set_defaults(&self->config);
	self->gate = (struct gate){.address = self->config.address,
				   .allowed = self->config.allowed_hosts};
	fill_tables(self);
	if (has_tls(&self->config) && tls_open(&self->tls, &self->config.tls, err) < 0)
		return -1;
	if (listen_now(self, err) < 0)
		return -1;
	sweep(self);
	*out = take(&self);
	return 0;
}

int http_port(const struct http *self)
{
	return lws_get_vhost_listen_port(self->vhost);
}

int http_reload_tls(struct http *self, struct err *err)
{
	return tls_reload(self->tls, err);
}

int http_busy(const struct http *self)
{
	return self->busy + self->socket_count;
}

/* No exchange is destroyed in here: that happens only in callbacks of lws. */
void http_drain(struct http *self)
{
	struct exchange *exchange;

	self->draining = true;
	LIST_FOREACH(exchange, &self->exchanges, link)
	{
		if (exchange->state != EXCHANGE_STREAMING ||
		    strcmp(exchange->method, "GET") != 0)
			continue;
		exchange->keep_alive = false;
		exchange_tell_gone(exchange);
		http_stream_end(exchange);
	}
	ws_drain_all(self);
}

void http_revoke(struct http *self, pass_fn *is_good, void *arg)
{
	struct exchange *exchange;

	LIST_FOREACH(exchange, &self->exchanges, link)
	{
		if (!exchange->has_pass || is_good(arg, &exchange->pass))
			continue;
		exchange_tell_gone(exchange);
		exchange_kill(exchange);
	}
	ws_revoke_all(self, is_good, arg);
}

void http_stop(struct http *self)
{
	struct exchange *exchange;

	self->draining = self->stopped = true;
	loop_timer_stop(&self->sweep);
	loop_timer_stop(&self->bodies);
	loop_timer_stop(&self->idling);
	LIST_FOREACH(exchange, &self->exchanges, link)
	{
		exchange_tell_gone(exchange);
		exchange_kill(exchange);
	}
	ws_stop_all(self);
}

void http_destroy(struct http **self)
{
	struct http *dead = take(self);

	if (!dead)
		return;
	tls_close(&dead->tls);
	free(dead);
}

/*
 * served - the doors of a daemon without workspaces, for drivers that feed a connection
 * with bytes: all of HTTP and of MCP is real, only nobody may run anything.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_FUZZ_SERVED_H
#define TESTS_FUZZ_SERVED_H

#include <netinet/in.h>
#include <signal.h>
#include <sodium.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "mcp/session.h"
#include "mcp/streamable.h"
#include "mcp/websocket.h"
#include "wire/buf.h"
#include "wire/http_impl.h"
#include "wire/ws_mask.h"

enum {
	SERVED_READ = 16 * 1024,
	SERVED_LIMIT_US = 30 * 1000 * 1000,
	SERVED_FROM = 0x7F010000, /* 127.1.0.0 */
	SERVED_TURNS = 8,         /* to accept, read a head and a body, and answer */
};

struct served {
	struct config config;
	struct loop *loop;
	struct server *server;
	struct workspace_place place;
	struct workspaces *workspaces;
	struct sessions sessions;
	struct channels channels;
	struct streamable *streamable;
	struct websockets websockets;
	struct http_route routes[3];
	struct http *http;
	struct loop_timer turn, limit;
	struct loop_watch *other; /* end of the connection, or NULL */
	int fd;                   /* that end's */
	struct buf answer;        /* all that came there */
	unsigned connections;     /* so far */
};

static inline void served_open_routes(struct served *self)
{
	self->streamable =
	    streamable_create(self->loop, self->server, self->workspaces, &self->config,
			      &self->sessions, &self->channels);
	self->websockets = (struct websockets){&self->channels, &self->config};
	self->routes[0] = streamable_route(self->streamable, "/mcp");
	websocket_add(&self->websockets, &self->routes[0]);
	self->routes[1] = websocket_route(&self->websockets, "/ws");
	self->routes[2] = streamable_route(self->streamable, "/sse");
}

static inline void served_open(struct served *self)
{
	const struct http_config http = {.address = "127.0.0.1",
					 .subprotocols = websocket_subprotocols()};
	struct err err;

	signal(SIGPIPE, SIG_IGN);
	MUST(sodium_init() >= 0);
	/* A secret that no input can hold keeps everybody from having a workspace. */
	self->config = (struct config){.tools = "run_python,write_file",
				       .persist = 1,
				       .user_header = "X-User",
				       .replay_keep_s = 60,
				       .replay_max = 1 << 16};
	randombytes_buf(self->config.proxy_secret, 32);
	for (int i = 0; i < 32; i++)
		self->config.proxy_secret[i] |= (char)0x80;
	MUST(loop_create(&self->loop, SERVED_READ, &err) == 0);
	MUST(ws_mask_check(self->loop, &err) == 0);
	self->server = server_create(&self->config, self->loop);
	self->place.config = &self->config;
	self->workspaces = workspaces_create(&self->place);
	self->channels.server = self->server;
	self->channels.workspaces = self->workspaces;
	channels_listen(&self->channels);
	served_open_routes(self);
	MUST(http_create(&self->http, self->loop, &http, self->routes,
			 COUNT_OF(self->routes), &err) == 0);
}

static inline struct served *served(void)
{
	static struct served self;

	if (!self.loop)
		served_open(&self);
	return &self;
}

static inline void served_stop(void *arg)
{
	struct served *self = arg;

	loop_stop(self->loop);
}

static inline void served_too_long(void *arg)
{
	const bool connection_ends_with_its_input = !arg;

	MUST(connection_ends_with_its_input);
}

static inline void served_on_readable(void *arg)
{
	struct served *self = arg;
	char text[SERVED_READ];
	ssize_t size = recv(self->fd, text, sizeof text, MSG_DONTWAIT);

	if (size > 0) {
		buf_add(&self->answer, text, (size_t)size);
		return;
	}
	loop_unwatch(&self->other);
	loop_stop(self->loop);
}

/* Begins a connection: by TCP, whose counters pipeline.c reads. */
static inline void served_connect(struct served *self)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				 .sin_port = htons((uint16_t)http_port(self->http))};
	/* An address of its own: one has no ports for so many in a minute. */
	struct sockaddr_in from = {
	    .sin_family = AF_INET,
	    .sin_addr.s_addr = htonl(SERVED_FROM + self->connections++ % 65536)};
	struct err err;

	buf_finish(&self->answer);
	self->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	MUST(self->fd >= 0);
	MUST(bind(self->fd, (struct sockaddr *)&from, sizeof from) == 0);
	MUST(connect(self->fd, (struct sockaddr *)&to, sizeof to) == 0);
	MUST(loop_watch(self->loop, self->fd, served_on_readable, self, &self->other,
			&err) == 0);
}

/* Sends a piece and lets it be read. */
static inline void served_send(struct served *self, const void *data, size_t size)
{
	if (!self->other)
		return; /* it was closed */
	send(self->fd, data, size, MSG_NOSIGNAL);
	for (int i = 0; i < SERVED_TURNS; i++) {
		loop_timer_start(self->loop, &self->turn, 1, served_stop, self);
		loop_run(self->loop);
	}
}

/* Sends no more, and waits until the server has closed the connection, too. */
static inline void served_end(struct served *self)
{
	if (self->other) {
		shutdown(self->fd, SHUT_WR);
		loop_timer_start(self->loop, &self->limit, SERVED_LIMIT_US,
				 served_too_long, self);
		while (self->other)
			loop_run(self->loop);
		loop_timer_stop(&self->limit);
	}
	MUST(http_busy(self->http) == 0);
}

#endif

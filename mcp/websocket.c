// SPDX-License-Identifier: MIT
#include "mcp/websocket.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/header.h"
#include "wire/mem.h"
#include "wire/ws.h"

enum { PROTOCOL_NAME_SIZE = 32 };

struct header { /* as it came with the upgrade */
	int len;
	char text[512];
};

struct socket {
	struct websockets *owner; /* borrowed */
	struct ws *ws;            /* borrowed */
	struct channel *channel;
	bool draining;
	struct header user, secret;
};

const char *const *websocket_subprotocols(void)
{
	static char versions[MCP_REVISION_COUNT][PROTOCOL_NAME_SIZE];
	static const char *names[MCP_REVISION_COUNT + 2] = {"mcp"};

	for (int i = 0; i < MCP_REVISION_COUNT; i++) {
		snprintf(versions[i], sizeof versions[i], "mcp.version.%s",
			 mcp_revision_name((enum mcp_revision)i));
		names[i + 1] = versions[i];
	}
	return names;
}

/* ---- who ---- */

static struct claim claim_of(const struct header *header)
{
	return (struct claim){.state = header->len >= 0 ? CLAIM_ONE
				       : header->len == HEADER_ABSENT
					   ? CLAIM_ABSENT
					   : CLAIM_UNREADABLE,
			      .value = header->len >= 0 ? header->text : NULL};
}

static void who(void *arg, struct server_context *context)
{
	const struct socket *self = arg;
	const struct claim user = claim_of(&self->user);
	const struct claim secret = claim_of(&self->secret);

	if (workspaces_principal(context->workspaces, ws_user(self->ws), &user, &secret,
				 &context->workspace, &context->refusal) < 0)
		context->workspace = NULL;
}

static void read_header(struct ws *ws, const char *name, struct header *out)
{
	char lower[sizeof((struct config *)0)->user_header];

	out->len = HEADER_ABSENT;
	snprintf(lower, sizeof lower, "%s", name);
	for (char *at = lower; *at; at++)
		*at = (char)tolower((unsigned char)*at);
	if (lower[0])
		out->len = ws_header(ws, lower, out->text, sizeof out->text);
}

/* ---- the conversation ---- */

static bool send_message(void *arg, const char *text, size_t size, bool must)
{
	struct socket *self = arg;

	return ws_send(self->ws, text, size, must);
}

static size_t waiting(void *arg)
{
	const struct socket *self = arg;

	return ws_waiting(self->ws);
}

static void close_for_restart(struct socket *self)
{
	ws_close(self->ws, WS_RESTART, "Vivarium is stopping");
}

static void on_idle(void *arg)
{
	struct socket *self = arg;

	if (self->draining)
		close_for_restart(self);
}

static void on_open(struct ws *ws, void *arg)
{
	struct socket *self = xcalloc(1, sizeof *self);

	self->owner = arg;
	self->ws = ws;
	read_header(ws, self->owner->config->user_header, &self->user);
	/* who has no name needs none to vouch for it */
	read_header(ws,
		    self->owner->config->user_header[0] ? PRINCIPAL_SECRET_HEADER : "",
		    &self->secret);
	self->channel = channel_create(self->owner->channels,
				       &(struct channel_link){.send = send_message,
							      .waiting = waiting,
							      .who = who,
							      .idle = on_idle,
							      .arg = self});
	ws_set_data(ws, self);
}

static void on_message(struct ws *ws, const char *text, size_t size, void *data)
{
	struct socket *self = data;

	(void)ws;
	channel_take(self->channel, text, size);
}

static void on_drain(struct ws *ws, void *data)
{
	struct socket *self = data;

	(void)ws;
	self->draining = true;
	if (!channel_open(self->channel))
		close_for_restart(self);
}

static void on_gone(struct ws *ws, void *data)
{
	struct socket *self = data;

	(void)ws;
	channel_destroy(&self->channel);
	explicit_bzero(&self->secret, sizeof self->secret);
	free(self);
}

/* ---- routes ---- */

void websocket_add(struct websockets *self, struct http_route *route)
{
	static const struct ws_handler handler = {
	    .open = on_open, .message = on_message, .drain = on_drain, .gone = on_gone};

	route->ws = &handler;
	route->ws_arg = self;
}

static void on_plain_request(struct exchange *exchange, void *arg)
{
	(void)arg;
	http_error(exchange, 426, "Upgrade: websocket\r\n",
		   "only WebSockets are spoken here; plain HTTP is at /mcp");
}

struct http_route websocket_route(struct websockets *self, const char *path)
{
	struct http_route route = {
	    .path = path, .methods = "GET", .request = on_plain_request, .arg = self};

	websocket_add(self, &route);
	return route;
}

/*
 * websocket - MCP over WebSockets: one JSON-RPC message a text message, at the path of
 * streamable HTTP and at one of its own.  Who asks is what the upgrade said, looked at
 * anew for every message.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MCP_WEBSOCKET_H
#define MCP_WEBSOCKET_H

#include "kernelmgr/config.h"
#include "mcp/channel.h"
#include "wire/http.h"

struct websockets {                /* embed it */
	struct channels *channels; /* borrowed, like the next one */
	const struct config *config;
};

/* For http_config: what may be offered besides, and where browsers put their token. */
const char *const *websocket_subprotocols(void);
#define WEBSOCKET_TOKEN "mcp.auth."

/* Lets the route take WebSockets too. */
void websocket_add(struct websockets *self, struct http_route *route);
/* A route for them alone. */
struct http_route websocket_route(struct websockets *self, const char *path);

#endif

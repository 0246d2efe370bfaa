/*
 * streamable - MCP over HTTP at one path ("Streamable HTTP"): POST for messages, GET
 * for a stream of the server's own, DELETE to end a session.  A POST is answered as
 * JSON when all its results are there within 250 ms, else as an event stream, if the
 * client takes one.  When the client leaves, what it started goes on.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MCP_STREAMABLE_H
#define MCP_STREAMABLE_H

#include "kernelmgr/workspaces.h"
#include "mcp/channel.h"
#include "mcp/server.h"
#include "wire/http.h"
#include "wire/loop.h"

struct streamable;

/* Borrows everything until destroyed. */
struct streamable *streamable_create(struct loop *loop, struct server *server,
				     struct workspaces *workspaces,
				     const struct config *config,
				     struct sessions *sessions,
				     struct channels *channels);
/* After http_stop() and server_destroy(): nobody answers any more. */
void streamable_destroy(struct streamable **self);
/* The route to give to http_create(). */
struct http_route streamable_route(struct streamable *self, const char *path);

#endif

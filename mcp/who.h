/*
 * who - whose workspace an HTTP request belongs to, by its token and headers: looked at
 * anew for every request.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MCP_WHO_H
#define MCP_WHO_H

#include "kernelmgr/config.h"
#include "mcp/server.h"
#include "wire/http.h"

struct who {                                                       /* embed it */
	struct workspaces *workspaces;                             /* borrowed */
	char user_header[sizeof((struct config *)0)->user_header]; /* lower case */
};

void who_init(struct who *self, struct workspaces *workspaces,
	      const struct config *config);
/* Inside begin() and request() only.  Sets workspace, or else NULL and refusal. */
void who_find(const struct who *self, struct exchange *exchange,
	      struct server_context *out);

#endif

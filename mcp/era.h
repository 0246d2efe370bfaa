/*
 * era - which of MCP's two eras a request belongs to, decided by its body: one that
 * claims a revision in params._meta is stateless (2026-07-28 and later) and passes the
 * ladder of checks of that revision; any other is of the older kind.
 * (2026-07-28, basic/versioning and basic/transports; the order of the checks is that
 * of the official SDKs.)
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MCP_ERA_H
#define MCP_ERA_H

#include <jansson.h>
#include <stdbool.h>

#include "mcp/rpc.h"
#include "mcp/session.h"
#include "wire/buf.h"

#define ERA_META "io.modelcontextprotocol/"

/* The headers that the checks compare with the body; NULL where a request has none. */
struct era_headers {
	const char *version, *method, *name;
};

enum era { ERA_SESSIONS, ERA_STATELESS, ERA_REFUSED, ERA_DROPPED /* 202 */ };

struct era_verdict {
	enum mcp_revision revision; /* of ERA_STATELESS */
	int status;                 /* HTTP, of ERA_REFUSED */
	json_t *message;            /* JSON-RPC error, of ERA_REFUSED; caller owns */
};

/* headers: NULL where messages come without any (stdio, WebSocket).
 * has_method: whether the server knows a method in a revision. */
enum era era_decide(const struct rpc *rpc, const struct era_headers *headers,
		    bool (*has_method)(const char *method, enum mcp_revision revision),
		    struct era_verdict *out);
/* Appends the value of a header that may come as =?base64?...?= (what HTTP cannot carry
 * plain).  False for a broken one. */
bool era_decode(struct buf *out, const char *value);
/* True if the message claims a revision in its body. */
bool era_claims(const json_t *message);
/* The same of any message of a batch. */
bool era_claimed_in(const json_t *batch);

#endif

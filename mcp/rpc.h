/*
 * rpc - JSON-RPC 2.0 messages as MCP uses them.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MCP_RPC_H
#define MCP_RPC_H

#include <jansson.h>
#include <stdbool.h>

#include "wire/err.h"

enum rpc_kind { RPC_REQUEST, RPC_NOTIFICATION, RPC_RESPONSE };

/* Codes of JSON-RPC 2.0 section 5.1, and the one that MCP's SDKs use for sessions. */
enum {
	RPC_PARSE_ERROR = -32700,
	RPC_INVALID_REQUEST = -32600,
	RPC_METHOD_NOT_FOUND = -32601,
	RPC_INVALID_PARAMS = -32602,
	RPC_INTERNAL_ERROR = -32603,
	RPC_TRANSPORT_ERROR = -32000,
	RPC_NO_SESSION = -32001,
	RPC_NO_RESOURCE = -32002, /* until 2025-11-25 */
	/* of 2026-07-28 */
	RPC_HEADER_MISMATCH = -32020,
	RPC_CAPABILITY_MISSING = -32021,
	RPC_VERSION_UNSUPPORTED = -32022,
};

struct rpc { /* all of it is borrowed from the message */
	enum rpc_kind kind;
	json_t *id;         /* string or integer; NULL unless a request */
	const char *method; /* NULL in a response */
	json_t *params;     /* object; NULL when absent */
};

struct rpc_refusal { /* an error that is on its way to become an answer */
	int code;
	struct err err;
	json_t *data; /* caller owns; or NULL */
};

/* Takes a message apart.  Fails with ERR_REQUEST and what is wrong; out->id is set if
 * one could be read, so that the answer can carry it. */
int rpc_read(struct rpc *out, json_t *message, struct err *err) must_check;

/* Caller owns what is returned.  id is borrowed (NULL: null); result is consumed. */
json_t *rpc_result(json_t *id, json_t *result);
json_t *rpc_error(json_t *id, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The answer that it becomes; takes its data. */
json_t *rpc_refuse(json_t *id, struct rpc_refusal *refusal);
/* The HTTP status of an answer in 2026-07-28. */
int rpc_http_status(const json_t *message);

#endif

// SPDX-License-Identifier: MIT
/*
 * A client's POST.  Input: three lines, the headers MCP-Protocol-Version, Mcp-Method
 * and Mcp-Name (an empty line: not sent), then the body.
 */
#include "mcp/rpc.h"

#include "fuzz.h"
#include "mcp/era.h"
#include "wire/json.h"

static bool has_method(const char *method, enum mcp_revision revision)
{
	MUST(method && revision < MCP_REVISION_COUNT);
	return strcmp(method, "tools/call") == 0;
}

static const char *or_null(const char *header)
{
	return *header ? header : NULL;
}

/* It could be sent. */
static void check_message(json_t *message)
{
	MUST(message);
	owned(free_text) char *text = json_dumps(message, JSON_COMPACT);
	MUST(text);
	json_decref(message);
}

static void check_read(const struct rpc *rpc)
{
	MUST((rpc->kind == RPC_RESPONSE) == !rpc->method);
	MUST(rpc->kind != RPC_REQUEST || rpc->id);
	MUST(rpc->kind != RPC_NOTIFICATION || !rpc->id);
	MUST(!rpc->params || json_is_object(rpc->params));
}

static void check_era(const struct rpc *rpc, const struct era_headers *headers,
		      json_t *body)
{
	struct era_verdict verdict;
	enum era era = era_decide(rpc, headers, has_method, &verdict);

	MUST((era == ERA_REFUSED) == (verdict.message != NULL));
	if (era == ERA_REFUSED) {
		MUST(verdict.status >= 400 && verdict.status < 500);
		check_message(verdict.message);
	}
	if (era == ERA_STATELESS) {
		MUST(rpc->kind == RPC_REQUEST && era_claims(body));
		MUST(verdict.revision >= MCP_STATELESS);
		MUST(strcmp(rpc->method, "tools/call") == 0);
		MUST(headers->version && headers->method);
		MUST(strcmp(headers->method, rpc->method) == 0 ||
		     strncmp(headers->method, "=?base64?", 9) == 0);
	}
	if (era == ERA_DROPPED)
		MUST(rpc->kind == RPC_NOTIFICATION);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	owned(free_text) char *version = input_line(&input);
	owned(free_text) char *method = input_line(&input);
	owned(free_text) char *name = input_line(&input);
	size_t body_size = input.left;
	owned(free_text) char *body = input_copy(&input, body_size, false);
	const struct era_headers headers = {or_null(version), or_null(method),
					    or_null(name)};
	json_t *message;
	struct rpc rpc;
	struct err err;

	if (json_parse(&message, body, body_size, &err) < 0)
		return 0;
	if (rpc_read(&rpc, message, &err) == 0) {
		check_read(&rpc);
		check_era(&rpc, &headers, message);
	} else {
		check_message(rpc_error(rpc.id, err_rpc_code(err.kind), "%s", err.msg));
	}
	json_decref(message);
	return 0;
}

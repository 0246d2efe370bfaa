// SPDX-License-Identifier: MIT
#include "mcp/era.h"

#include <sodium.h>
#include <string.h>

#include "wire/json.h"
#include "wire/mem.h"

static const json_t *claim_of(const json_t *params)
{
	return json_object_get(json_object_get(params, "_meta"),
			       ERA_META "protocolVersion");
}

bool era_claims(const json_t *message)
{
	return claim_of(json_object_get(message, "params")) != NULL;
}

bool era_claimed_in(const json_t *batch)
{
	for (size_t i = 0; i < json_array_size(batch); i++)
		if (era_claims(json_array_get(batch, i)))
			return true;
	return false;
}

static enum era refuse(struct era_verdict *out, int status, json_t *message)
{
	out->status = status;
	out->message = message;
	return ERA_REFUSED;
}

bool era_decode(struct buf *out, const char *value)
{
	static const char start[] = "=?base64?", end[] = "?=";
	size_t len = strlen(value), fixed = strlen(start) + strlen(end), size;

	if (len < fixed || strncmp(value, start, strlen(start)) != 0 ||
	    strcmp(value + len - strlen(end), end) != 0) {
		buf_add(out, value, len);
		return true;
	}
	char *room = buf_reserve(out, len);
	if (sodium_base642bin((unsigned char *)room, len, value + strlen(start),
			      len - fixed, NULL, &size, NULL,
			      sodium_base64_VARIANT_ORIGINAL) < 0)
		return false;
	out->size += size;
	out->data[out->size] = '\0';
	return true;
}

static bool same(const char *header, const char *wanted)
{
	owned(buf_finish) struct buf value = {0};

	return header && wanted && era_decode(&value, header) &&
	       value.size == strlen(wanted) &&
	       memcmp(buf_str(&value), wanted, value.size) == 0;
}

/* The parameter that Mcp-Name repeats for this method; NULL when none. */
static const char *named_by(const char *method)
{
	static const struct {
		const char *method, *param;
	} rows[] = {{"tools/call", "name"},     {"prompts/get", "name"},
		    {"resources/read", "uri"},  {"tasks/get", "taskId"},
		    {"tasks/update", "taskId"}, {"tasks/cancel", "taskId"}};

	for (size_t i = 0; i < COUNT_OF(rows); i++)
		if (strcmp(rows[i].method, method) == 0)
			return rows[i].param;
	return NULL;
}

/* The reason why headers and body disagree, or NULL. */
static const char *mismatch(const struct rpc *rpc, const struct era_headers *headers)
{
	const char *param = named_by(rpc->method);
	const char *name = param ? json_text(rpc->params, param, NULL) : NULL;

	if (!same(headers->method, rpc->method))
		return "Mcp-Method";
	if (name && !same(headers->name, name))
		return "Mcp-Name";
	return NULL;
}

static json_t *unsupported(const struct rpc *rpc, const json_t *claim)
{
	json_t *message =
	    rpc_error(rpc->id, RPC_VERSION_UNSUPPORTED,
		      "Unsupported protocol version; this server speaks %s",
		      mcp_revision_name(MCP_2026_07_28));

	json_object_set_new(json_object_get(message, "error"), "data",
			    json_pack("{s[s] sO}", "supported",
				      mcp_revision_name(MCP_2026_07_28), "requested",
				      claim));
	return message;
}

static enum era check(const struct rpc *rpc, const struct era_headers *headers,
		      bool (*has_method)(const char *, enum mcp_revision),
		      const json_t *claim, struct era_verdict *out)
{
	const json_t *meta = json_object_get(rpc->params, "_meta");
	const char *version = json_string_value(claim);

	if (headers &&
	    (!version || !headers->version || strcmp(headers->version, version) != 0))
		return refuse(out, 400,
			      rpc_error(rpc->id, RPC_HEADER_MISMATCH,
					"Header mismatch: MCP-Protocol-Version is not "
					"the protocolVersion of params._meta"));
	if (!version)
		return refuse(out, 400,
			      rpc_error(rpc->id, RPC_INVALID_PARAMS,
					"the protocolVersion of params._meta is no "
					"string"));
	int revision = mcp_revision_find(version);
	if (revision < MCP_STATELESS)
		return refuse(out, 400, unsupported(rpc, claim));
	out->revision = (enum mcp_revision)revision;
	if (rpc->kind == RPC_NOTIFICATION)
		return ERA_DROPPED;
	const char *header = headers ? mismatch(rpc, headers) : NULL;
	if (header)
		return refuse(out, 400,
			      rpc_error(rpc->id, RPC_HEADER_MISMATCH,
					"Header mismatch: %s is missing or not what "
					"the body says",
					header));
	if (!json_is_object(json_object_get(meta, ERA_META "clientCapabilities")))
		return refuse(out, 400,
			      rpc_error(rpc->id, RPC_INVALID_PARAMS,
					"params._meta needs the object " ERA_META
					"clientCapabilities"));
	if (!has_method(rpc->method, out->revision))
		return refuse(out, 404,
			      rpc_error(rpc->id, RPC_METHOD_NOT_FOUND,
					"Method not found: %.100s", rpc->method));
	return ERA_STATELESS;
}

enum era era_decide(const struct rpc *rpc, const struct era_headers *headers,
		    bool (*has_method)(const char *, enum mcp_revision),
		    struct era_verdict *out)
{
	const json_t *claim = claim_of(rpc->params);

	*out = (struct era_verdict){0};
	if (rpc->kind == RPC_RESPONSE)
		return ERA_SESSIONS;
	if (claim)
		return check(rpc, headers, has_method, claim, out);
	/* Revisions are dates, so later ones sort behind. */
	if (!headers || !headers->version ||
	    strcmp(headers->version, mcp_revision_name(MCP_STATELESS)) < 0)
		return ERA_SESSIONS;
	if (rpc->kind == RPC_NOTIFICATION)
		return ERA_DROPPED;
	return refuse(out, 400,
		      rpc_error(rpc->id, RPC_INVALID_PARAMS,
				"params._meta needs " ERA_META
				"protocolVersion, as the "
				"header MCP-Protocol-Version says that this is %.20s",
				headers->version));
}

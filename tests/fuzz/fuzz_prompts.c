// SPDX-License-Identifier: MIT
/*
 * Prompts and completions of who has no workspace.  Input: a line with the params of
 * both.
 */
#include "mcp/completion.h"

#include "texts.h"

static void check(json_t *result, struct rpc_refusal *refusal, const char *member)
{
	MUST(result || (refusal->code < 0 && refusal->err.msg[0]));
	MUST(!result || json_object_get(result, member) ||
	     json_object_get(result, "inputRequests"));
	json_decref(result);
	json_decref(refusal->data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct config config = {.conformance = 1};
	static const struct asks_key key = {.bytes = "a key"};
	struct input input = {data, size};
	json_auto_t *params = input_object(&input);
	struct err err;

	if (!params)
		return 0;
	struct asks asks = {.revision = MCP_STATELESS,
			    .client = CLIENT_ELICITS,
			    .key = &key,
			    .method = "prompts/get",
			    .workspace = "",
			    .params = json_incref(params)};
	const struct prompts_ask ask = {.config = &config,
					.params = params,
					.revision = MCP_STATELESS,
					.asks = &asks};
	struct rpc_refusal refusals[3] = {{0}};

	if (asks_read(&asks, &err) == 0)
		check(prompts_get(&ask, &refusals[0]), &refusals[0], "messages");
	check(completion_complete(&ask, &refusals[1]), &refusals[1], "completion");
	check(prompts_list(&ask, &refusals[2]), &refusals[2], "prompts");
	asks_finish(&asks);
	return 0;
}

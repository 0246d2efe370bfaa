// SPDX-License-Identifier: MIT
/* The methods that read: resources, prompts, completions. */
#include "mcp/completion.h"
#include "mcp/prompts.h"
#include "mcp/resources.h"
#include "mcp/server_impl.h"

static struct resources_ask resources_ask(const struct ask *ask)
{
	return (struct resources_ask){.config = ask->server->config,
				      .workspaces = ask->context->workspaces,
				      .workspace = ask->context->workspace,
				      .branches =
					  tools_have_branches(ask->server->config),
				      .params = ask->rpc->params,
				      .revision = ask->context->revision};
}

/* Files change at any time, and are a user's own.  Nobody has none. */
void server_on_resources_list(const struct ask *ask)
{
	const struct resources_ask resources = resources_ask(ask);
	struct rpc_refusal error = {0};
	json_t *result = resources.workspace ? resources_list(&resources, &error)
					     : json_pack("{s[]}", "resources");

	if (resources.workspace && ask->context->session)
		wishes_listed(&ask->server->audience.wishes, ask->context);

	ask_answer_or_refuse(
	    ask,
	    result ? server_cached(result, resources.revision, 0, "private") : NULL,
	    &error);
}

void server_on_resources_read(const struct ask *ask)
{
	const struct resources_ask resources = resources_ask(ask);
	struct rpc_refusal error = {.code = RPC_INVALID_PARAMS,
				    .err = ask->context->refusal};
	json_t *result =
	    resources.workspace ? resources_read(&resources, &error) : NULL;

	ask_answer_or_refuse(
	    ask,
	    result ? server_cached(result, resources.revision, 0, "private") : NULL,
	    &error);
}

void server_on_resource_templates(const struct ask *ask)
{
	const struct resources_ask resources = resources_ask(ask);
	struct rpc_refusal error = {0};
	json_t *result = resources_templates(&resources, &error);

	ask_answer_or_refuse(
	    ask, result ? server_cacheable(result, resources.revision) : NULL, &error);
}

/* ---- prompts ---- */

static struct prompts_ask prompts_ask(const struct ask *ask, struct asks *asks)
{
	return (struct prompts_ask){.config = ask->server->config,
				    .workspace = ask->context->workspace,
				    .params = ask->rpc->params,
				    .revision = ask->context->revision,
				    .asks = asks};
}

void server_on_prompts_list(const struct ask *ask)
{
	const struct prompts_ask prompts = prompts_ask(ask, NULL);
	struct rpc_refusal refusal = {0};
	json_t *result = prompts_list(&prompts, &refusal);

	ask_answer_or_refuse(
	    ask, result ? server_cacheable(result, prompts.revision) : NULL, &refusal);
}

void server_on_prompts_get(const struct ask *ask)
{
	owned(asks_finish) struct asks asks;
	const struct prompts_ask prompts = prompts_ask(ask, &asks);
	struct rpc_refusal refusal = {.code = RPC_INVALID_PARAMS};
	json_t *result = ask_begin_asks(ask, "prompts/get", &asks, &refusal.err) < 0
			     ? NULL
			     : prompts_get(&prompts, &refusal);

	ask_answer_or_refuse(ask, result, &refusal);
}

void server_on_complete(const struct ask *ask)
{
	const struct prompts_ask prompts = prompts_ask(ask, NULL);
	struct rpc_refusal refusal = {0};
	json_t *result = completion_complete(&prompts, &refusal);

	ask_answer_or_refuse(ask, result, &refusal);
}

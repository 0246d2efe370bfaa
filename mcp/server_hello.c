// SPDX-License-Identifier: MIT
/* Who we are and what we can: initialize, server/discover. */
#include "mcp/era.h"
#include "mcp/icons.h"
#include "mcp/instructions.h"
#include "mcp/server_impl.h"

/* On every result of 2026-07-28: short. */
json_t *server_name(enum mcp_revision revision)
{
	json_t *info =
	    json_pack("{ss ss}", "name", "vivarium", "version", VIVARIUM_VERSION);

	if (revision >= MCP_2025_06_18)
		json_object_set_new(info, "title", json_string("Vivarium"));
	return info;
}

static json_t *server_info(enum mcp_revision revision)
{
	json_t *info = server_name(revision);

	if (revision >= MCP_2025_11_25) {
		json_object_set_new(
		    info, "description",
		    json_string("Live IPython kernels that keep their state."));
		json_object_set_new(info, "icons", icons_json(ICON_SNAKE));
	}
	return info;
}

/* Only fixtures say that the lists of tools and prompts have changed. */
static json_t *capabilities(const struct config *config, enum mcp_revision revision)
{
	bool changes = config->conformance != 0;
	json_t *all = json_pack("{s{sb} s{sb} s{sb} s{}}", "tools", "listChanged",
				changes, "resources", "listChanged", 1, "prompts",
				"listChanged", changes, "logging");

	if (revision < MCP_STATELESS) /* by subscriptions/listen since then */
		json_object_set_new(json_object_get(all, "resources"), "subscribe",
				    json_true());
	if (revision >= MCP_STATELESS && config->soft_deadline_s)
		json_object_set_new(all, "extensions",
				    json_pack("{s{}}", SESSION_TASKS));
	if (revision >= MCP_2025_03_26)
		json_object_set_new(all, "completions", json_object());
	return all;
}

void server_on_initialize(const struct ask *ask)
{
	enum mcp_revision revision = ask->context->revision;

	ask_answer(ask, json_pack("{ss so so so}", "protocolVersion",
				  mcp_revision_name(revision), "capabilities",
				  capabilities(ask->server->config, revision),
				  "serverInfo", server_info(revision), "instructions",
				  instructions_json(ask->server->config)));
}

void server_on_discover(const struct ask *ask)
{
	enum mcp_revision revision = ask->context->revision;

	ask_answer(ask,
		   server_cacheable(
		       json_pack("{s[s] so so s{so}}", "supportedVersions",
				 mcp_revision_name(MCP_2026_07_28), "capabilities",
				 capabilities(ask->server->config, revision),
				 "instructions", instructions_json(ask->server->config),
				 "_meta", ERA_META "serverInfo", server_info(revision)),
		       revision));
}

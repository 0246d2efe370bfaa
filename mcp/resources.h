/*
 * resources - the files of a workspace as MCP resources: workspace:///PATH.  Listed are
 * those that list_files sees, by path; read can be any that read_text_file could open,
 * and where there are branches, theirs: workspace://BRANCH/PATH.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MCP_RESOURCES_H
#define MCP_RESOURCES_H

#include <jansson.h>

#include "kernelmgr/workspaces.h"
#include "mcp/rpc.h"
#include "mcp/session.h"

struct resources_ask { /* borrowed */
	const struct config *config;
	struct workspaces *workspaces;
	struct workspace *workspace;
	bool branches; /* can be made, and read */
	const json_t *params;
	enum mcp_revision revision;
};

/* Results of the three methods; caller owns.  NULL: error says why. */
json_t *resources_list(const struct resources_ask *ask, struct rpc_refusal *error);
json_t *resources_read(const struct resources_ask *ask, struct rpc_refusal *error);
json_t *resources_templates(const struct resources_ask *ask, struct rpc_refusal *error);

#endif

// SPDX-License-Identifier: MIT
#include "api/health.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static void on_request(struct exchange *exchange, void *arg)
{
	const struct workspace *workspace = arg;
	json_auto_t *health =
	    json_pack("{ss ss s[{ss ss sI}]}", "status", "healthy", "version",
		      VIVARIUM_VERSION, "workspaces", "name", workspace_name(workspace),
		      "kernel", workspace_kernel_state(workspace), "calls",
		      (json_int_t)workspace_calls(workspace));
	char *text = json_dumps(health, 0);

	http_reply(exchange, 200, "Cache-Control: no-store\r\n", "application/json",
		   text, text ? strlen(text) : 0);
	free(text);
}

struct http_route health_route(struct workspace *workspace)
{
	return (struct http_route){.path = "/health",
				   .methods = "GET",
				   .request = on_request,
				   .arg = workspace};
}

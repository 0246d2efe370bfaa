// SPDX-License-Identifier: MIT
#include "api/health.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* For whoever may come in; a stranger learns that the server is up, and no more. */
static void add_details(json_t *health, const struct workspaces *workspaces)
{
	struct workspaces_count count = workspaces_count(workspaces);
	const struct walls *walls = workspaces_walls(workspaces);
	json_auto_t *details =
	    json_pack("{ss s{ss ss} sI sI sI}", "version", VIVARIUM_VERSION, "walls",
		      "tier", (const char[]){walls->tier, '\0'}, "lower", walls->lower,
		      "workspaces", (json_int_t)count.workspaces, "kernels",
		      (json_int_t)count.kernels, "calls", (json_int_t)count.calls);

	json_object_update(health, details);
}

static void on_request(struct exchange *exchange, void *arg)
{
	json_auto_t *health = json_pack("{ss}", "status", "healthy");

	if (http_is_trusted(exchange))
		add_details(health, arg);
	char *text = json_dumps(health, 0);

	http_reply(exchange, 200, "Cache-Control: no-store\r\n", "application/json",
		   text, text ? strlen(text) : 0);
	free(text);
}

struct http_route health_route(struct workspaces *workspaces)
{
	return (struct http_route){.path = "/health",
				   .methods = "GET",
				   .request = on_request,
				   .arg = workspaces,
				   .open = true};
}

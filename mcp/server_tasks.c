// SPDX-License-Identifier: MIT
/* The tasks extension of 2026-07-28: calls that answered before they were over, by
 * their ticket.  Who makes one, and when, is in jobs.c. */
#include "mcp/server_impl.h"

#include "wire/json.h"

/* The task that the request names, or NULL and it was refused. */
static struct job *find_task(const struct ask *ask)
{
	const char *id = json_text(ask->rpc->params, "taskId", "");
	struct job *job;

	if (!(ask->context->client & CLIENT_TASKS)) {
		json_t *message =
		    rpc_error(ask->rpc->id, RPC_CAPABILITY_MISSING,
			      "Missing required client capability: tasks");
		json_object_set_new(json_object_get(message, "error"), "data",
				    json_pack("{s{s{s{}}}}", "requiredCapabilities",
					      "extensions", SESSION_TASKS));
		ask_refuse(ask, message);
		return NULL;
	}
	job = ask->context->workspace
		  ? job_find(&ask->server->jobs, ask->context->workspace, id)
		  : NULL;
	if (!job)
		ask_refuse(
		    ask, rpc_error(ask->rpc->id, RPC_INVALID_PARAMS,
				   "there is no task '%.40s'; results are kept "
				   "for %lld s after their task has ended",
				   id, (long long)ask->server->config->replay_keep_s));
	return job;
}

void server_on_tasks_get(const struct ask *ask)
{
	const struct job *job = find_task(ask);

	if (job)
		ask_answer(ask, job_task(job, true, ask->context->structure));
}

/* No task of ours asks its client for anything: what it is told is ignored. */
void server_on_tasks_update(const struct ask *ask)
{
	if (find_task(ask))
		ask_answer(ask, json_object());
}

void server_on_tasks_cancel(const struct ask *ask)
{
	struct job *job = find_task(ask);

	if (!job)
		return;
	job_cancel(job);
	ask_answer(ask, json_object());
}

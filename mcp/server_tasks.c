// SPDX-License-Identifier: MIT
/* The tasks extension of 2026-07-28: calls that answered before they were over, by
 * their ticket.  Who makes one, and when, is in jobs.c; who listens, in audience.c. */
#include "mcp/server_impl.h"

#include "wire/json.h"

bool server_check_tasks(const struct ask *ask)
{
	struct rpc_refusal refusal = {0};

	if (ask->context->client & CLIENT_TASKS)
		return true;
	jobs_refuse(&refusal);
	ask_refuse(ask, rpc_refuse(ask->rpc->id, &refusal));
	return false;
}

/* The task that the request names, or NULL and it was refused. */
static struct job *find_task(const struct ask *ask)
{
	const char *id = json_text(ask->rpc->params, "taskId", "");
	struct job *job;

	if (!server_check_tasks(ask))
		return NULL;
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
		ask_answer(ask, job_task(job, true));
}

void server_on_tasks_update(const struct ask *ask)
{
	json_t *responses = json_object_get(ask->rpc->params, "inputResponses");
	struct job *job = find_task(ask);

	if (!job)
		return;
	if (!json_is_object(responses)) {
		ask_refuse(ask, rpc_error(ask->rpc->id, RPC_INVALID_PARAMS,
					  "params.inputResponses is not an object"));
		return;
	}
	job_answer(job, responses);
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

/* ---- who listens ---- */

bool server_take_tasks(const struct ask *ask, json_t **out)
{
	const json_t *ids = json_object_get(
	    json_object_get(ask->rpc->params, "notifications"), "taskIds");

	*out = NULL;
	if (!ids)
		return true;
	if (!server_check_tasks(ask))
		return false;
	if (!json_is_array(ids) || json_array_size(ids) > WISHES_URIS_MAX) {
		ask_refuse(ask, rpc_error(ask->rpc->id, RPC_INVALID_PARAMS,
					  "taskIds is no array, or one of more than %d",
					  WISHES_URIS_MAX));
		return false;
	}
	*out = json_array();
	for (size_t i = 0; i < json_array_size(ids); i++) {
		json_t *id = json_array_get(ids, i);

		if (json_is_string(id) && !json_array_has(*out, id) &&
		    job_find(&ask->server->jobs, ask->context->workspace,
			     json_string_value(id)))
			json_array_append(*out, id);
	}
	return true;
}

void server_task_changed(const struct job *job, void *arg)
{
	struct server *self = arg;

	audience_task(&self->audience, job_home(job), job_task(job, true), NULL);
}

void server_tell_tasks(const struct ask *ask, const json_t *ids)
{
	for (size_t i = 0; i < json_array_size(ids); i++) {
		const struct job *job =
		    job_find(&ask->server->jobs, ask->context->workspace,
			     json_string_value(json_array_get(ids, i)));

		if (job && job_has_news(job))
			audience_task(&ask->server->audience, job_home(job),
				      job_task(job, true), ask->arg);
	}
}

// SPDX-License-Identifier: MIT
/* What others see of a job: its members, and as a task of the extension. */
#include "mcp/jobs_impl.h"

#include "wire/json.h"

enum { POLL_MS = 1000 };

const char *job_ticket(const struct job *self)
{
	return self->ticket;
}

bool job_is_over(const struct job *self)
{
	return self->over;
}

int64_t job_begun_us(const struct job *self)
{
	return self->begun_us;
}

struct call *job_call(const struct job *self)
{
	return self->tool.call;
}

static json_t *time_json(time_t when)
{
	char text[32];
	struct tm utc;

	gmtime_r(&when, &utc);
	strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
	return json_string(text);
}

static const char *status_of(const struct job *self)
{
	if (!self->over)
		return self->tool.outstanding ? "input_required" : "working";
	return self->error ? "failed" : self->cancelled ? "cancelled" : "completed";
}

static const char *status_message(const struct job *self)
{
	if (self->error)
		return json_text(self->error, "message", "");
	if (self->tool.outstanding)
		return "It waits for answers.";
	if (!self->tool.call)
		return NULL;
	return call_state(self->tool.call) <= CALL_STARTING ? "It waits for its kernel."
							    : "The cell is running.";
}

/* null while it is not known. */
static json_t *ttl_json(const struct job *self)
{
	time_t lived = self->updated - self->created;

	return self->over
		   ? json_integer(
			 (json_int_t)(lived + self->jobs->config->replay_keep_s) * 1000)
		   : json_null();
}

json_t *job_task(const struct job *self, bool whole)
{
	const char *message = status_message(self);
	json_t *task = json_pack("{ss ss ss* so so so si}", "taskId", self->ticket,
				 "status", status_of(self), "statusMessage", message,
				 "createdAt", time_json(self->created), "lastUpdatedAt",
				 time_json(self->updated), "ttlMs", ttl_json(self),
				 "pollIntervalMs", POLL_MS);

	if (!whole)
		return task;
	if (self->tool.outstanding)
		json_object_set_new(task, "inputRequests",
				    json_copy(self->tool.outstanding));
	if (self->error)
		json_object_set(task, "error", self->error);
	else if (self->over && !self->cancelled)
		json_object_set_new(
		    task, "result",
		    self->jobs->dress(job_result(self, self->context.structure),
				      MCP_STATELESS));
	return task;
}

json_t *job_questions(const struct job *self)
{
	return self->tool.outstanding;
}

bool job_has_news(const struct job *self)
{
	return self->over || self->tool.outstanding;
}

const struct workspace *job_home(const struct job *self)
{
	return self->home;
}

void job_answer(struct job *self, json_t *responses)
{
	if (!self->over)
		tool_answer(&self->tool, responses);
}

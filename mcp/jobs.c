// SPDX-License-Identifier: MIT
#include "mcp/jobs_impl.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/json.h"
#include "wire/mem.h"

void jobs_init(struct jobs *self, struct loop *loop, const struct config *config,
	       json_t *(*dress)(json_t *result, enum mcp_revision revision))
{
	*self = (struct jobs){.loop = loop, .config = config, .dress = dress};
	TAILQ_INIT(&self->all);
}

static void job_destroy(struct job *self)
{
	struct job_waiter *waiter;

	while ((waiter = TAILQ_FIRST(&self->waiters)))
		job_unwait(waiter);
	TAILQ_REMOVE(&self->jobs->all, self, link);
	kept_remove(&self->jobs->kept, &self->kept);
	loop_timer_stop(&self->timer);
	live_stop(&self->live);
	json_decref(self->id);
	json_decref(self->context.progress_token);
	json_decref(self->result);
	json_decref(self->error);
	tool_drop(&self->tool);
	free(self);
}

void jobs_finish(struct jobs *self)
{
	struct job *job;

	while ((job = TAILQ_FIRST(&self->all)))
		job_destroy(job);
}

/* ---- waiting ---- */

static void wake(struct job_waiter *waiter)
{
	struct job *job = waiter->job;

	job_unwait(waiter);
	waiter->woken(job, waiter->arg);
}

/* Once each: they may wait again. */
static void wake_all(struct job *self)
{
	const struct job_waiter *waiter;
	size_t count = 0;

	TAILQ_FOREACH(waiter, &self->waiters, link)
	count++;
	while (count-- && !TAILQ_EMPTY(&self->waiters))
		wake(TAILQ_FIRST(&self->waiters));
}

static void on_waited_enough(void *arg)
{
	wake(arg);
}

void job_wait(struct job *self, struct job_waiter *waiter, int64_t seconds)
{
	waiter->job = self;
	TAILQ_INSERT_TAIL(&self->waiters, waiter, link);
	loop_timer_start(self->jobs->loop, &waiter->timer, seconds * 1000000 + 1,
			 on_waited_enough, waiter);
}

void job_unwait(struct job_waiter *waiter)
{
	if (!waiter->job)
		return;
	TAILQ_REMOVE(&waiter->job->waiters, waiter, link);
	waiter->job = NULL;
	loop_timer_stop(&waiter->timer);
}

/* ---- what is known of a task ---- */

static void tell(struct job *self)
{
	struct jobs *jobs = self->jobs;

	self->updated = time(NULL);
	if (self->ticket[0] && jobs->changed)
		jobs->changed(self, jobs->changed_arg);
}

static void on_unanswered(void *arg)
{
	struct job *self = arg;
	struct err err;

	err_set(&err, ERR_ARGUMENT, "nobody answered what was asked within %d s",
		ASKS_STATE_S);
	tool_fail(&self->tool, &err);
}

static void on_input_changed(void *arg)
{
	struct job *self = arg;

	if (self->tool.outstanding &&
	    !self->tool.call) /* cells have a time of theirs */
		loop_timer_start(self->jobs->loop, &self->timer,
				 (int64_t)ASKS_STATE_S * 1000000, on_unanswered, self);
	else
		loop_timer_stop(&self->timer);
	tell(self);
	if (self->tool.outstanding)
		wake_all(self);
}

/* ---- results that are kept ---- */

static void on_kept_enough(void *arg)
{
	job_destroy(arg);
}

/* It is over: kept for a while, and not too many.  May end it. */
static void keep(struct job *self)
{
	struct jobs *jobs = self->jobs;
	const struct workspace *home = self->home;
	struct job *oldest;

	self->over = true;
	kept_add(&jobs->kept, &self->kept, home,
		 json_dumpb(self->result ? self->result : self->error, NULL, 0,
			    JSON_COMPACT),
		 self);
	loop_timer_start(jobs->loop, &self->timer,
			 jobs->config->replay_keep_s * 1000000, on_kept_enough, self);
	tell(self);
	wake_all(self);
	if (kept_count(&jobs->kept, home) > JOBS_KEPT_MAX)
		job_destroy(kept_oldest_of(&jobs->kept, home));
	while (jobs->kept.bytes > (size_t)jobs->config->replay_max &&
	       (oldest = kept_oldest_of_most(&jobs->kept)))
		job_destroy(oldest);
}

/* From now on it has a ticket, and its request is no concern of it. */
static void part(struct job *self)
{
	unsigned char bytes[12];

	loop_timer_stop(&self->timer);
	randombytes_buf(bytes, sizeof bytes);
	sodium_bin2base64(self->ticket, sizeof self->ticket, bytes, sizeof bytes,
			  sodium_base64_VARIANT_URLSAFE_NO_PADDING);
	for (char *c = self->ticket; *c; c++) /* easily repeated by a model */
		*c = *c == '-' || *c == '_' ? 'x' : *c;
	live_stop(&self->live);
	tool_leave_request(&self->tool, on_input_changed);
	self->context.outlet = (struct outlet){0};
	self->answer = NULL;
	self->arg = NULL;
	/* Whoever fetches it may want all that there is. */
	self->tool.structure = true;
}

/* ---- answers ---- */

static void on_done(json_t *result, void *arg)
{
	struct job *self = arg;

	if (!self->answer) {
		self->result = result;
		keep(self);
		return;
	}
	result = self->jobs->dress(result, self->context.revision);
	self->answer(rpc_result(self->id, result), self->arg);
	job_destroy(self);
}

static void on_refused(struct rpc_refusal *refusal, void *arg)
{
	struct job *self = arg;
	json_t *message = rpc_refuse(self->id, refusal);

	if (!self->answer) {
		self->error = json_incref(json_object_get(message, "error"));
		json_decref(message);
		keep(self);
		return;
	}
	self->answer(message, self->arg);
	job_destroy(self);
}

static bool knows_tasks(const struct job *self)
{
	return self->context.revision >= MCP_STATELESS &&
	       self->context.client & CLIENT_TASKS;
}

/* Answers with what there is. */
static void answer_early(struct job *self)
{
	server_answer_fn *answer = self->answer;
	void *asker = self->arg;
	enum mcp_revision revision = self->context.revision;
	struct outlet outlet = self->context.outlet;
	bool task = knows_tasks(self);

	part(self);
	outlet_about(&outlet,
		     "The first part of the answer of a cell did not reach its client: "
		     "wait(call=\"%s\") returns all of it.\n",
		     self->ticket);
	json_t *result =
	    task ? job_task(self, false) : job_result(self, self->context.structure);
	self->is_task = task;
	if (task)
		json_object_set_new(result, "resultType", json_string("task"));
	answer(rpc_result(self->id, self->jobs->dress(result, revision)), asker);
}

static void on_patience_over(void *arg)
{
	struct job *self = arg;

	if (self->tool.call) /* else its answer is on its way */
		answer_early(self);
}

void job_ask(struct tool_call *call)
{
	struct job *self = call->arg;
	server_answer_fn *answer = self->answer;
	void *asker = self->arg;

	part(self);
	tool_put_up(call);
	call->asks.wanted = json_copy(call->outstanding);
	json_t *result =
	    asks_result(&call->asks, json_pack("{ss}", "call", self->ticket));
	answer(rpc_result(self->id, self->jobs->dress(result, self->context.revision)),
	       asker);
}

void jobs_stop_asking(struct jobs *self, const struct workspace *workspace)
{
	struct job *job, *next;

	for (job = TAILQ_FIRST(&self->all); job; job = next) {
		next = TAILQ_NEXT(job, link);
		if (job->tool.workspace == workspace && job->tool.outstanding &&
		    job->tool.call && !job->is_task && TAILQ_EMPTY(&job->waiters))
			tool_give_up(&job->tool, NULL);
	}
}

static size_t tasks_of(const struct jobs *self, const struct workspace *home)
{
	const struct job *job;
	size_t count = 0;

	TAILQ_FOREACH(job, &self->all, link)
	count += job->is_task && !job->over && job->home == home;
	return count;
}

bool job_defer(struct tool_call *call)
{
	struct job *self = call->arg;

	if (call->input_changed)
		return true;
	if (!self->answer || !self->home || !knows_tasks(self) ||
	    tasks_of(self->jobs, self->home) >= JOBS_TASKS_MAX)
		return false;
	answer_early(self);
	return true;
}

void jobs_refuse(struct rpc_refusal *refusal)
{
	refusal->code = RPC_CAPABILITY_MISSING;
	refusal->data = json_pack("{s{s{s{}}}}", "requiredCapabilities", "extensions",
				  SESSION_TASKS);
	err_set(&refusal->err, ERR_REQUEST,
		"this needs a client with the extension " SESSION_TASKS);
}

/* Whether somebody could ask for the rest. */
static bool can_wait(const struct job *self)
{
	return self->tool.tool->partial && self->home &&
	       (config_offers_tool(self->jobs->config, "wait") ||
		self->context.client & CLIENT_TASKS);
}

void job_start(struct jobs *self, const struct job_start *start, json_t *arguments)
{
	struct job *job = xcalloc(1, sizeof *job);
	const struct server_context *context = start->context;
	int64_t patience_s = self->config->soft_deadline_s;

	*job = (struct job){.jobs = self,
			    .context = *context,
			    .id = json_incref(start->id),
			    .answer = start->answer,
			    .arg = start->arg,
			    .home = context->workspace,
			    .begun_us = loop_now_us(),
			    .created = time(NULL),
			    .tool = {.tool = start->tool,
				     .config = self->config,
				     .workspaces = context->workspaces,
				     .workspace = context->workspace,
				     .home = context->workspace,
				     .revision = context->revision,
				     .structure = context->structure,
				     .context = &job->context,
				     .questions = start->questions,
				     .live = &job->live,
				     .jobs = self,
				     .done = on_done,
				     .refused = on_refused,
				     .asks = start->asks,
				     .arg = job}};
	job->updated = job->created;
	json_incref(job->context.progress_token);
	TAILQ_INIT(&job->waiters);
	TAILQ_INSERT_TAIL(&self->all, job, link);
	live_start(&job->live, self->loop, &job->context);
	if (patience_s && can_wait(job))
		loop_timer_start(self->loop, &job->timer, patience_s * 1000000,
				 on_patience_over, job);
	if (job->home)
		tool_start(&job->tool, arguments);
	else
		tool_fail(&job->tool, &context->refusal);
}

/* ---- leaving and cancelling ---- */

void job_cancel(struct job *self)
{
	if (self->over)
		return;
	self->cancelled = true;
	tool_cancel(&self->tool);
}

void jobs_cancel(struct jobs *self, const void *arg)
{
	struct job *job, *next;

	for (job = TAILQ_FIRST(&self->all); job; job = next) {
		next = TAILQ_NEXT(job, link);
		if (job->answer && job->arg == arg)
			job_cancel(job);
	}
}

void jobs_cancel_request(struct jobs *self, uint64_t session, const json_t *id)
{
	struct job *job;

	TAILQ_FOREACH(job, &self->all, link)
	if (job->answer && job->context.session == session && json_equal(job->id, id)) {
		job_cancel(job);
		return; /* unknown ids are ignored: it may just have ended */
	}
}

size_t jobs_abandon(struct jobs *self, const void *arg)
{
	struct job *job;
	size_t count = 0;

	TAILQ_FOREACH(job, &self->all, link)
	{
		if (!job->answer || job->arg != arg || !can_wait(job) ||
		    !job->tool.call)
			continue;
		if (job->tool.question) /* who was asked has left */
			tool_give_up(&job->tool, NULL);
		part(job);
		job->lost = !job->cancelled; /* else nobody misses it */
		count++;
	}
	return count;
}

void jobs_tell_lost(struct jobs *self, const struct workspace *home, struct buf *out)
{
	struct job *job;
	owned(buf_finish) struct buf tickets = {0};
	size_t count = 0;

	TAILQ_FOREACH(job, &self->all, link)
	{
		if (!job->lost || job->home != home)
			continue;
		buf_printf(&tickets, "%s%s", count++ ? ", " : "", job->ticket);
		job->lost = false;
	}
	if (count == 1)
		buf_printf(out,
			   "The answer of an earlier call did not reach its client: "
			   "wait(call=\"%s\") returns it.\n",
			   buf_str(&tickets));
	else if (count)
		buf_printf(out,
			   "The answers of %zu earlier calls did not reach their "
			   "clients: wait returns each by its call, of %s.\n",
			   count, buf_str(&tickets));
}

/* ---- by ticket ---- */

struct job *job_find(const struct jobs *self, const struct workspace *home,
		     const char *ticket)
{
	struct job *job;

	TAILQ_FOREACH(job, &self->all, link)
	if (job->ticket[0] && job->home == home && strcmp(job->ticket, ticket) == 0)
		return job;
	return NULL;
}

static void describe(const struct job *self, struct buf *out)
{
	long long seconds = (long long)(loop_now_us() - self->begun_us) / 1000000;
	enum call_state state =
	    self->tool.call ? call_state(self->tool.call) : CALL_DONE;

	if (self->tool.outstanding)
		buf_printf(out,
			   "Waiting for an answer of the user since its input() asked "
			   "for one; its output so far is below. ");
	else if (state == CALL_QUEUED || state == CALL_STARTING)
		buf_printf(out, "Not begun after %lld s: %s. ", seconds,
			   state == CALL_QUEUED ? "it waits for the calls before it"
						: "its kernel is starting");
	else
		buf_printf(out,
			   "Still running after %lld s; its output so far is below. ",
			   seconds);
	buf_printf(
	    out,
	    "wait(call=\"%s\") returns the rest; a new cell waits until this one "
	    "has ended.\n",
	    self->ticket);
}

json_t *job_result(const struct job *self, bool structure)
{
	owned(buf_finish) struct buf words = {0};
	json_t *result;

	if (self->error)
		return json_pack("{s[{ss ss}] sb}", "content", "type", "text", "text",
				 json_text(self->error, "message", ""), "isError", 1);
	if (self->result) {
		result = json_copy(self->result);
	} else if (self->tool.call && self->tool.tool->partial) {
		describe(self, &words);
		result = self->tool.tool->partial(&self->tool, buf_str(&words));
	} else {
		describe(self, &words);
		result = tool_result(&self->tool, words.data, words.size, NULL);
	}
	if (!structure)
		json_object_del(result, "structuredContent");
	return result;
}

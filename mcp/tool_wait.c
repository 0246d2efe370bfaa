// SPDX-License-Identifier: MIT
/* wait - the rest of a call that answered before it was over. */
#include <math.h>
#include <string.h>

#include "mcp/icons.h"
#include "mcp/jobs.h"
#include "mcp/tools.h"
#include "wire/json.h"

enum { CALL, TIMEOUT };

static void go_on(struct tool_call *self, struct job *job, double seconds);

static void on_woken(struct job *job, void *arg)
{
	struct tool_call *self = arg;

	tool_withdraw(self); /* another one has answered, or it asks something else */
	live_follow(self->live, NULL);
	go_on(self, job, 0);
}

static void wait_for(struct tool_call *self, struct job *job, int64_t seconds)
{
	self->waiter.woken = on_woken;
	self->waiter.arg = self;
	job_wait(job, &self->waiter, seconds);
}

/* What it asks, the client of this call is asked, by the same names. */
static void ask(struct tool_call *self, struct job *job)
{
	json_decref(self->asks.wanted);
	self->asks.wanted = json_copy(job_questions(job));
	self->asks.rounds = 0;
	if (self->revision < MCP_STATELESS)
		wait_for(self, job, ASKS_STATE_S);
	tool_ask(self, json_pack("{ss}", "call", job_ticket(job)));
}

static void go_on(struct tool_call *self, struct job *job, double seconds)
{
	int64_t most = self->config->soft_deadline_s ? self->config->soft_deadline_s
						     : self->config->max_timeout_s;

	if (job_questions(job) && tool_can_ask(self)) {
		ask(self, job);
	} else if (job_is_over(job) || job_questions(job) || seconds <= 0) {
		tool_finish(self, job_result(job, self->structure));
	} else {
		live_follow(self->live, job_call(job));
		self->live->began_us = job_begun_us(job);
		wait_for(self, job,
			 seconds < (double)most ? (int64_t)ceil(seconds) : most);
	}
}

void tool_attend(struct tool_call *self, const char *ticket, double seconds)
{
	struct job *job = job_find(self->jobs, self->home, ticket);
	struct err err;

	job_unwait(&self->waiter); /* what it was asked, it has answered */
	if (job && job_questions(job) && self->asks.answers) {
		job_answer(job, self->asks.answers);
		job = job_find(self->jobs, self->home, ticket); /* it may be gone */
	}
	if (job) {
		go_on(self, job, seconds);
		return;
	}
	err_set(&err, ERR_ARGUMENT,
		"there is no call '%.40s'; results are kept for %lld s after their "
		"call has ended, and not beyond a restart",
		ticket, (long long)self->config->replay_keep_s);
	tool_fail(self, &err);
}

static void run(struct tool_call *self, const struct arg_value *args)
{
	tool_attend(self, args[CALL].text, args[TIMEOUT].number);
}

const struct tool tool_wait = {
    .name = "wait",
    .title = "Wait for a call",
    .icon = ICON_CLOCK,
    .description = "Get the rest of a call that was still running when it answered.\n"
		   "Returns its whole result, or, if it still runs after "
		   "timeout_seconds, its output so far.",
    .read_only = true,
    .idempotent = true,
    .args = {[CALL] = {"call", ARG_TEXT, true, 0, 0, "The id that the answer named."},
	     [TIMEOUT] = {"timeout_seconds", ARG_NUMBER, false, 50, 0,
			  "Seconds to wait at most."}},
    /* short: each is paid for in every request */
    .output_schema =
	"{\"type\":\"object\",\"description\":\"as run_python's; end is running "
	"while it is\"}",
    .run = run,
};

// SPDX-License-Identifier: MIT
/* wait - the rest of a call that answered before it was over. */
#include <math.h>
#include <string.h>

#include "mcp/icons.h"
#include "mcp/jobs.h"
#include "mcp/tools.h"

enum { CALL, TIMEOUT };

static void finish(struct tool_call *self, struct job *job)
{
	live_follow(self->live, NULL);
	tool_finish(self, job_result(job, self->structure));
}

static void on_woken(struct job *job, void *arg)
{
	finish(arg, job);
}

static void run(struct tool_call *self, const struct arg_value *args)
{
	struct job *job = job_find(self->jobs, self->home, args[CALL].text);
	double seconds = args[TIMEOUT].number;
	int64_t most = self->config->soft_deadline_s ? self->config->soft_deadline_s
						     : self->config->max_timeout_s;
	struct err err;

	if (!job) {
		err_set(&err, ERR_ARGUMENT,
			"there is no call '%.40s'; results are kept for %lld s after "
			"their call has ended",
			args[CALL].text, (long long)self->config->replay_keep_s);
		tool_fail(self, &err);
		return;
	}
	if (job_is_over(job) || seconds <= 0) {
		finish(self, job);
		return;
	}
	live_follow(self->live, job_call(job));
	self->live->began_us = job_begun_us(job);
	self->waiter.woken = on_woken;
	self->waiter.arg = self;
	job_wait(job, &self->waiter,
		 seconds < (double)most ? (int64_t)ceil(seconds) : most);
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

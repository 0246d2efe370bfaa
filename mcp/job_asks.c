// SPDX-License-Identifier: MIT
/* Cells that ask what nobody is going to answer: they must not keep others waiting. */
#include "mcp/jobs_impl.h"

enum { LOOK_EVERY_US = 1000 * 1000 };

static bool is_asking(const struct job *self)
{
	return self->tool.call && (self->tool.question || self->tool.outstanding);
}

/* Somebody has what it asks before him, or will look. */
static bool is_seen(const struct job *self)
{
	const struct job_waiter *waiter;

	if (self->tool.question)
		return outlet_is_heard(self->tool.question);
	LIST_FOREACH(waiter, &self->waiters, link)
	if (waiter->asker && waiter->asker->question &&
	    outlet_is_heard(waiter->asker->question))
		return true;
	return !self->passed_over || job_knows_tasks(self);
}

/* While cells wait: clients leave without a word. */
static void look(void *arg)
{
	struct jobs *self = arg;
	struct job *job, *next;
	bool again = false;

	for (job = TAILQ_FIRST(&self->all); job; job = next) {
		next = TAILQ_NEXT(job, link);
		if (!job->tool.call || workspace_calls(job->tool.workspace) < 2)
			continue;
		again = true;
		if (is_asking(job) && !is_seen(job))
			tool_give_up(&job->tool, NULL);
	}
	if (again)
		loop_timer_start(self->loop, &self->look, LOOK_EVERY_US, look, self);
}

void jobs_stop_asking(struct jobs *self, const struct workspace *workspace)
{
	struct job *job, *next;
	bool busy = false;

	for (job = TAILQ_FIRST(&self->all); job; job = next) {
		next = TAILQ_NEXT(job, link);
		if (job->tool.workspace != workspace || !job->tool.call)
			continue;
		busy = true;
		if (!job->answer)
			job->passed_over = true;
		if (is_asking(job) && !is_seen(job))
			tool_give_up(&job->tool, NULL);
	}
	if (busy)
		loop_timer_start(self->loop, &self->look, LOOK_EVERY_US, look, self);
}

void job_attended(struct job *self)
{
	self->passed_over = false;
}

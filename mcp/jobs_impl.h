/* jobs_impl - what jobs.c and job_task.c share.  Nobody else includes it.
 * SPDX-License-Identifier: MIT */
#ifndef MCP_JOBS_IMPL_H
#define MCP_JOBS_IMPL_H

#include <time.h>

#include "mcp/jobs.h"

struct job {
	TAILQ_ENTRY(job) link;
	struct jobs *jobs; /* borrowed */
	struct server_context context;
	json_t *id; /* owned */
	struct tool_call tool;
	struct live live;
	server_answer_fn *answer; /* NULL: it has been given, or nobody wants it */
	void *arg;
	const struct workspace *home; /* of its user, whatever branch it works in */
	char ticket[JOB_TICKET_SIZE]; /* "": none */
	bool over, cancelled, lost, is_task;
	json_t *result, *error; /* owned: one of them when it is over */
	struct kept_item kept;  /* that */
	int64_t begun_us;
	time_t created, updated;
	struct loop_timer timer;          /* until it answers late, or is forgotten */
	TAILQ_HEAD(, job_waiter) waiters; /* job_waiter::link */
};

#endif

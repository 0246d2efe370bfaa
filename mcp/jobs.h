/*
 * jobs - calls of tools under way, and the results that nobody has fetched yet.  A job
 * that takes longer than clients wait answers its request with what there is and a
 * ticket; by that its user gets the rest, from any session of his, also after the
 * client that asked has left.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MCP_JOBS_H
#define MCP_JOBS_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/queue.h>

#include "mcp/kept.h"
#include "mcp/live.h"
#include "mcp/server.h"
#include "mcp/tools.h"

enum {
	JOBS_KEPT_MAX = 16,  /* results of one user that are kept */
	JOBS_TASKS_MAX = 16, /* tasks of one user under way, that were begun as such */
	JOB_TICKET_SIZE = 24,
};

struct job;

struct jobs {              /* embed it; jobs_init() first */
	struct loop *loop; /* borrowed, like the next */
	const struct config *config;
	/* What is put on a result before it goes out.  Consumes and returns it. */
	json_t *(*dress)(json_t *result, enum mcp_revision revision);
	/* What is known of a task is another.  Or NULL. */
	void (*changed)(const struct job *job, void *arg);
	void *changed_arg;
	TAILQ_HEAD(job_list, job) all; /* job::link, the oldest first */
	struct kept kept;              /* results */
};

void jobs_init(struct jobs *self, struct loop *loop, const struct config *config,
	       json_t *(*dress)(json_t *result, enum mcp_revision revision));
/* Unanswered. */
void jobs_finish(struct jobs *self);

struct job_start {
	const struct server_context *context; /* borrowed */
	json_t *id;                           /* borrowed */
	const struct tool *tool;
	struct questions *questions;
	struct asks asks; /* consumed */
	server_answer_fn *answer;
	void *arg;
};
/* Runs the tool; the answer comes once, perhaps before this returns. */
void job_start(struct jobs *self, const struct job_start *start, json_t *arguments);

/* Asks what answers this arg, or this request of a session, to stop. */
void jobs_cancel(struct jobs *self, const void *arg);
void jobs_cancel_request(struct jobs *self, uint64_t session, const json_t *id);
/* Who waits for this arg has left.  Results worth keeping are kept; how many answers
 * will not come. */
size_t jobs_abandon(struct jobs *self, const void *arg);

/* A job of this user that has a ticket, or NULL. */
struct job *job_find(const struct jobs *self, const struct workspace *home,
		     const char *ticket);
const char *job_ticket(const struct job *self);
bool job_is_over(const struct job *self);
int64_t job_begun_us(const struct job *self);
/* Its result, or what there is so far, as a CallToolResult.  Caller owns. */
json_t *job_result(const struct job *self, bool structure);
/* As a task of the extension: whole, as tasks/get shows it, or as it is made.  Caller
 * owns. */
json_t *job_task(const struct job *self, bool whole);
/* What it asks, by keys: requests; borrowed; NULL: nothing. */
json_t *job_questions(const struct job *self);
/* Whether its client should look, if he has not done so yet: it is over, or asks. */
bool job_has_news(const struct job *self);
/* Whose it is. */
const struct workspace *job_home(const struct job *self);
/* Its client answers what it asks. */
void job_answer(struct job *self, json_t *responses);
/* Asks it to stop. */
void job_cancel(struct job *self);
/* What it waits for in its kernel, or NULL. */
struct call *job_call(const struct job *self);
/* woken() comes once, when it is over or after that time, unless job_unwait() comes
 * first. */
void job_wait(struct job *self, struct job_waiter *waiter, int64_t seconds);

/* For a call whose request waits, and whose cell asks, in 2026-07-28: answers with an
 * input_required that leads back to it. */
void job_ask(struct tool_call *call);
/* A new cell is to run: those before it whose questions nobody is going to see get no
 * answer. */
void jobs_stop_asking(struct jobs *self, const struct workspace *workspace);
/* For a tool that takes long or asks while it runs: answers its request with a task, if
 * the client knows those and has not too many under way.  False: it is none. */
bool job_defer(struct tool_call *call);
/* That the client does not know tasks: -32021. */
void jobs_refuse(struct rpc_refusal *refusal);

/* Appends whole lines that name the results that did not reach their client. */
void jobs_tell_lost(struct jobs *self, const struct workspace *home, struct buf *out);

#endif

/*
 * tools - the table of tools: one row each, from which tools/list, the README's table
 * and the checking of arguments are made.  One tool_*.c a tool.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MCP_TOOLS_H
#define MCP_TOOLS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "kernelmgr/call.h"
#include "kernelmgr/config.h"
#include "kernelmgr/viewer.h"
#include "kernelmgr/workspaces.h"
#include "mcp/asks.h"
#include "mcp/rpc.h"
#include "mcp/session.h"
#include "wire/err.h"

enum { TOOL_ARGS_MAX = 8 };

enum arg_type {
	ARG_TEXT,
	ARG_PATH, /* of a file in the workspace; as code sees it, if it is absolute */
	ARG_NUMBER,
	ARG_INTEGER,
	ARG_FLAG,
	ARG_ENCODING, /* "utf-8" (when not given) or "base64" */
};

struct tool_arg { /* a row without a name ends the list */
	const char *name;
	enum arg_type type;
	bool required;
	double fallback; /* of a number or flag that is not given */
	double min;      /* of a number */
	const char *help;
};

struct arg_value {
	const char *text; /* borrowed from the request; may hold NULs */
	size_t size;
	double number; /* also a flag: 0 or 1 */
};

struct server_context;
struct questions;
struct question;
struct live;
/* A call of a tool that is being answered. */
struct tool_call;
/* The tool's result (a CallToolResult, consumed). */
typedef void tool_done_fn(json_t *result, void *arg);
/* Instead: a JSON-RPC error (its data is taken). */
typedef void tool_refused_fn(struct rpc_refusal *refusal, void *arg);

/* Who waits for a job: see jobs.h. */
struct job;
struct jobs;
struct job_waiter { /* embed it; zero: it waits for nothing */
	TAILQ_ENTRY(job_waiter) link;
	struct job *job; /* NULL: it is not waiting */
	struct loop_timer timer;
	void (*woken)(struct job *job, void *arg);
	void *arg;
};
/* NULL-safe in its job. */
void job_unwait(struct job_waiter *waiter);

struct tool {
	const char *name, *title, *description; /* its first line is in the README */
	/* Instead of it: as things are set up here.  NULL: always the same. */
	void (*describe)(struct buf *out, const struct config *config);
	bool read_only, destructive, idempotent, open_world; /* annotations */
	bool needs_states; /* not listed where none are saved */
	struct tool_arg args[TOOL_ARGS_MAX];
	/* Of each argument: it is mirrored in Mcp-Param-<this>, since 2026-07-28. */
	const char *headers[TOOL_ARGS_MAX];
	const char *input_schema;  /* JSON, instead of one made from args; or NULL */
	const char *output_schema; /* JSON; NULL: no structure comes */
	const char *icon;          /* ICON_ of icons.h */
	/* Answers by tool_finish(), now or later.  Runs again after tool_ask(). */
	void (*run)(struct tool_call *call, const struct arg_value *args);
	/* The result so far of one that may take long, behind these whole lines; NULL:
	 * it is always waited for.  Caller owns. */
	json_t *(*partial)(const struct tool_call *call, const char *words);
};

struct tool_call { /* embed it; filled in by who starts it */
	const struct tool *tool;
	const struct config *config;
	struct workspaces *workspaces;
	struct workspace *workspace;  /* a branch of it, once the arguments are read */
	const struct workspace *home; /* the user's own */
	enum mcp_revision revision;
	bool structure;                       /* the result is to have one */
	const struct server_context *context; /* borrowed, like the next: outlet.h */
	struct questions *questions;
	struct live *live;
	struct jobs *jobs;
	tool_done_fn *done;
	tool_refused_fn *refused;
	void *arg;
	struct asks asks;
	json_t *arguments; /* owned: to run again */
	struct call *call; /* what it waits for, if anything */
	bool asking;       /* an answer of the workspace's store */
	struct viewer *viewer;
	struct job_waiter waiter;  /* another call */
	bool passes_cancel;        /* to that one */
	struct question *question; /* an answer of the client's */
	char *question_name;       /* owned */
	/* One whose request was answered puts its questions up, for who looks: owned,
	 * by keys that it never uses twice; NULL: it waits for no answer. */
	json_t *outstanding;
	void (*input_changed)(
	    void *arg);     /* those are others; NULL: its request waits */
	json_t *kept;       /* owned: what it needs of its arguments then, or NULL */
	struct buf preface; /* whole lines to put before the result's text */
};

/* Fails if VIVARIUM_TOOLS names a tool that is none. */
int tools_check(const struct config *config, struct err *err) must_check;
/* NULL when none of that name is offered. */
const struct tool *tool_find(const struct config *config, const char *name);
/* True where workspaces have branches. */
bool tools_have_branches(const struct config *config);
/* The tools array of tools/list.  structure: their results have one.  Caller owns. */
json_t *tools_list(const struct config *config, enum mcp_revision revision,
		   bool structure);
/* The header that a call of 2026-07-28 lacks, or that differs from the argument that it
 * has to repeat; NULL: none.  header() appends the value of one and is false if there
 * is none. */
const char *tools_header_mismatch(const struct config *config, const json_t *params,
				  bool (*header)(void *arg, const char *name,
						 struct buf *out),
				  void *arg);
/* The README's table of tools: all that can be offered. */
void tools_markdown(FILE *to);

/* Checks the arguments and runs the tool; done comes once, perhaps before this
 * returns.  A wrong argument is the tool's own error (SEP-1303): done gets an isError
 * result, so that the model can correct itself. */
void tool_start(struct tool_call *self, json_t *arguments);
/* Asks what it runs to stop; the result still comes. */
void tool_cancel(struct tool_call *self);
/* Frees what it holds, not itself, without an answer. */
void tool_drop(struct tool_call *self);

/* For tools_ask.c: runs it again, with the arguments that it has. */
void tool_run(struct tool_call *self);
/* For the tools: answers, which ends the call; self may be gone after it.  result is
 * consumed. */
void tool_finish(struct tool_call *self, json_t *result);
/* For those whose call moves the workspace to another state: true if it did, else the
 * call is answered with the reason. */
bool tool_check_moved(struct tool_call *self, const struct outcome *outcome) must_check;
/* call_create() in its workspace, with itself as done's arg.  What waits there for an
 * answer that nobody is going to give ends first. */
int tool_call_kernel(struct tool_call *self, const struct arg_value *code,
		     const struct call_options *options, call_done_fn *done,
		     struct err *err) must_check;
/* Answers "Error: ..." with isError. */
void tool_fail(struct tool_call *self, const struct err *err);
/* Answers with a JSON-RPC error; takes its data. */
void tool_refuse(struct tool_call *self, struct rpc_refusal *refusal);
/* Whether the user can be asked, and VIVARIUM_CONFIRM wants it. */
bool tool_can_ask(const struct tool_call *self);
/* Asks the user whether to go on, where the client can and VIVARIUM_CONFIRM wants it.
 * True: go on.  False: the call waits, or was answered; self may be gone.  state
 * (consumed; or NULL): an agreement counts only as long as this is the same. */
bool tool_confirm(struct tool_call *self, const char *message,
		  json_t *state) must_check;
/* For jobs.c, of one whose request was answered: puts up what is wanted. */
void tool_put_up(struct tool_call *self);
/* Its request is about to be answered without it: what its client was asked is put up
 * instead, now and from now on.  self stays, if a cell runs. */
void tool_leave_request(struct tool_call *self, void (*input_changed)(void *arg));
/* What its client was asked is not wanted any more. */
void tool_withdraw(struct tool_call *self);
/* There will be no answer: it fails with this, but for a cell that runs, which is told
 * so. */
void tool_give_up(struct tool_call *self, const struct err *err);
/* Its client answers: an object of responses by their keys.  What is not
 * outstanding is ignored; self may be gone after it. */
void tool_answer(struct tool_call *self, json_t *responses);
/* Puts the questions wanted in self->asks to the client; once it has answered, the tool
 * runs again with state (consumed; or NULL) in there.  self may be gone after it. */
void tool_ask(struct tool_call *self, json_t *state);
/* A CallToolResult of one text and, where it is to have one, a structure (which is
 * consumed).  Caller owns. */
json_t *tool_result(const struct tool_call *self, const char *text, size_t size,
		    json_t *structure);

/* tool_wait.c: answers with the result of a job of the user's, or, after a time in
 * seconds, what there is of it.  What the job asks, the client of this call is asked.
 */
void tool_attend(struct tool_call *self, const char *ticket, double seconds);

extern const struct tool tool_run_python, tool_wait, tool_undo, tool_restore,
    tool_history, tool_diff, tool_branch, tool_list_files, tool_read_text_file,
    tool_write_file;

#endif

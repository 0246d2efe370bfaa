/*
 * server_impl - what the server*.c share.  Nobody else includes it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MCP_SERVER_IMPL_H
#define MCP_SERVER_IMPL_H

#include "mcp/asks.h"
#include "mcp/audience.h"
#include "mcp/jobs.h"
#include "mcp/server.h"

struct server {
	const struct config *config;
	struct asks_key key;
	/* owned: made once, since they stay the same; without and with structures */
	json_t *tools[MCP_REVISION_COUNT][2];
	struct jobs jobs;
	struct questions questions;
	struct audience audience;
};

struct ask { /* one request on its way through a method */
	struct server *server;
	const struct rpc *rpc;
	const struct server_context *context;
	server_answer_fn *answer;
	void *arg;
};

/* Consumes the error, a whole message. */
void ask_refuse(const struct ask *ask, json_t *error);
/* Consumes the result. */
void ask_answer(const struct ask *ask, json_t *result);
/* Takes both: refuses where there is no result. */
void ask_answer_or_refuse(const struct ask *ask, json_t *result,
			  struct rpc_refusal *refusal);
/* What may be asked of the client, and what it has answered already.  out is to be
 * finished in any case. */
int ask_begin_asks(const struct ask *ask, const char *method, struct asks *out,
		   struct err *err) must_check;

/* These consume and return the result.  What 2026-07-28 wants on every one: */
json_t *server_dress(json_t *result, enum mcp_revision revision);
/* How long, and by whom, it may be kept. */
json_t *server_cached(json_t *result, enum mcp_revision revision, int ms,
		      const char *scope);
/* What never changes while the server runs. */
json_t *server_cacheable(json_t *result, enum mcp_revision revision);

/* server_hello.c: who we are. */
json_t *server_name(enum mcp_revision revision);
void server_on_initialize(const struct ask *ask);
void server_on_discover(const struct ask *ask);

/* server_watch.c */
void server_on_subscribe(const struct ask *ask);
void server_on_unsubscribe(const struct ask *ask);
void server_on_listen(const struct ask *ask);

/* server_tasks.c */
void server_on_tasks_get(const struct ask *ask);
void server_on_tasks_update(const struct ask *ask);
void server_on_tasks_cancel(const struct ask *ask);
/* False: the client does not know tasks, and was told so. */
bool server_check_tasks(const struct ask *ask);
/* Of a subscriptions/listen: those of the tasks named there that its user has.  NULL:
 * none are named; else the caller owns it.  False: it was refused. */
bool server_take_tasks(const struct ask *ask, json_t **out) must_check;
/* What happened to those before somebody listened. */
void server_tell_tasks(const struct ask *ask, const json_t *ids);
/* For jobs: arg is the server. */
void server_task_changed(const struct job *job, void *arg);

/* server_read.c: resources, prompts, completions. */
void server_on_resources_list(const struct ask *ask);
void server_on_resources_read(const struct ask *ask);
void server_on_resource_templates(const struct ask *ask);
void server_on_prompts_list(const struct ask *ask);
void server_on_prompts_get(const struct ask *ask);
void server_on_complete(const struct ask *ask);

#endif

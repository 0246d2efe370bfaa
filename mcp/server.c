// SPDX-License-Identifier: MIT
#include "mcp/server_impl.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "mcp/era.h"
#include "mcp/tools.h"
#include "wire/json.h"
#include "wire/log.h"
#include "wire/mem.h"

enum { CACHE_MS = 300 * 1000 };

int server_negotiate(const struct rpc *rpc, enum mcp_revision *out, struct err *err)
{
	const char *wanted = json_text(rpc->params, "protocolVersion", NULL);

	if (!wanted)
		return err_set(
		    err, ERR_ARGUMENT,
		    "initialize needs params.protocolVersion, such as \"%s\"",
		    mcp_revision_name(MCP_STATELESS - 1));
	int found = mcp_revision_find(wanted);
	*out = found < 0 || found >= MCP_STATELESS ? MCP_STATELESS - 1
						   : (enum mcp_revision)found;
	return 0;
}

/* ---- methods ---- */

/* What 2026-07-28 wants on every result. */
json_t *server_dress(json_t *result, enum mcp_revision revision)
{
	if (revision < MCP_STATELESS)
		return result;
	if (!json_object_get(result, "resultType"))
		json_object_set_new(result, "resultType", json_string("complete"));
	if (!json_object_get(result, "_meta"))
		json_object_set_new(result, "_meta", json_object());
	json_t *meta = json_object_get(result, "_meta");
	if (!json_object_get(meta, ERA_META "serverInfo"))
		json_object_set_new(meta, ERA_META "serverInfo", server_name(revision));
	return result;
}

struct server *server_create(const struct config *config, struct loop *loop)
{
	struct server *self = xcalloc(1, sizeof *self);

	self->config = config;
	randombytes_buf(self->key.bytes, sizeof self->key.bytes);
	jobs_init(&self->jobs, loop, config, server_dress);
	self->jobs.changed = server_task_changed;
	self->jobs.changed_arg = self;
	self->questions.loop = loop;
	audience_init(&self->audience);
	return self;
}

void server_use_key(struct server *self, const unsigned char *secret)
{
	static const unsigned char purpose[] = "vivarium requestState";

	crypto_generichash(self->key.bytes, sizeof self->key.bytes, purpose,
			   sizeof purpose, secret, ASKS_KEY_SIZE);
}

int server_remember(struct server *self, const char *dir, struct err *err)
{
	return wishes_open(&self->audience.wishes, dir, err);
}

void server_destroy(struct server **self)
{
	struct server *dead = take(self);

	if (!dead)
		return;
	jobs_finish(&dead->jobs);
	for (size_t i = 0; i < COUNT_OF(dead->tools); i++)
		for (size_t j = 0; j < COUNT_OF(dead->tools[i]); j++)
			json_decref(dead->tools[i][j]);
	explicit_bzero(&dead->key, sizeof dead->key);
	questions_finish(&dead->questions);
	audience_finish(&dead->audience);
	free(dead);
}

/* How long, and by whom, a result may be kept. */
json_t *server_cached(json_t *result, enum mcp_revision revision, int ms,
		      const char *scope)
{
	if (revision < MCP_STATELESS)
		return result;
	json_object_set_new(result, "ttlMs", json_integer(ms));
	json_object_set_new(result, "cacheScope", json_string(scope));
	return result;
}

/* What never changes while the server runs. */
json_t *server_cacheable(json_t *result, enum mcp_revision revision)
{
	return server_cached(result, revision, CACHE_MS, "public");
}

void ask_refuse(const struct ask *ask, json_t *error)
{
	ask->answer(error, ask->arg);
}

void ask_answer(const struct ask *ask, json_t *result)
{
	ask->answer(
	    rpc_result(ask->rpc->id, server_dress(result, ask->context->revision)),
	    ask->arg);
}

static void on_ping(const struct ask *ask)
{
	ask_answer(ask, json_object());
}

static void on_tools_list(const struct ask *ask)
{
	enum mcp_revision revision = ask->context->revision;
	bool structure = ask->context->structure;
	json_t **tools = &ask->server->tools[revision][structure];

	/* All tools fit one page, so nobody can have a cursor from us. */
	if (json_object_get(ask->rpc->params, "cursor")) {
		ask_refuse(ask, rpc_error(ask->rpc->id, RPC_INVALID_PARAMS,
					  "unknown cursor: tools/list has one page"));
		return;
	}
	if (!*tools)
		*tools = tools_list(ask->server->config, revision, structure);
	/* not for other clients, which may be given other schemas */
	ask_answer(ask, server_cached(json_pack("{sO}", "tools", *tools), revision,
				      CACHE_MS, "private"));
}

/* Takes both. */
void ask_answer_or_refuse(const struct ask *ask, json_t *result,
			  struct rpc_refusal *error)
{
	if (result) {
		ask_answer(ask, result);
		return;
	}
	ask_refuse(ask, rpc_refuse(ask->rpc->id, error));
}

/* What may be asked of the client, and what it has answered already. */
int ask_begin_asks(const struct ask *ask, const char *method, struct asks *out,
		   struct err *err)
{
	const struct workspace *workspace = ask->context->workspace;

	*out = (struct asks){.revision = ask->context->revision,
			     .client = ask->context->client,
			     .key = &ask->server->key,
			     .method = method,
			     .workspace = workspace ? workspace_name(workspace) : "",
			     .params = json_incref(ask->rpc->params)};
	return out->revision < MCP_STATELESS ? 0 : asks_read(out, err);
}

/* ---- tools/call ---- */

static void on_tools_call(const struct ask *ask)
{
	const char *name = json_text(ask->rpc->params, "name", NULL);
	const struct tool *tool = name ? tool_find(ask->server->config, name) : NULL;
	json_t *arguments = json_object_get(ask->rpc->params, "arguments");
	struct asks asks;
	struct err err;

	if (!tool) {
		ask_refuse(ask,
			   rpc_error(ask->rpc->id, RPC_INVALID_PARAMS,
				     "Unknown tool: %.100s; tools/list names them all",
				     name ? name : "(no params.name)"));
		return;
	}
	if (arguments && !json_is_object(arguments) && !json_is_null(arguments)) {
		ask_refuse(ask, rpc_error(ask->rpc->id, RPC_INVALID_PARAMS,
					  "params.arguments is not an object"));
		return;
	}
	if (ask_begin_asks(ask, "tools/call", &asks, &err) < 0) {
		asks_finish(&asks);
		ask_refuse(ask, rpc_error(ask->rpc->id, err_rpc_code(err.kind), "%s",
					  err.msg));
		return;
	}
	const struct job_start start = {.context = ask->context,
					.id = ask->rpc->id,
					.tool = tool,
					.questions = &ask->server->questions,
					.asks = asks,
					.answer = ask->answer,
					.arg = ask->arg};
	job_start(&ask->server->jobs, &start, arguments);
}

static void on_set_level(const struct ask *ask)
{
	int level = outlet_level(json_text(ask->rpc->params, "level", ""));

	if (level == LOG_NONE) {
		ask_refuse(ask,
			   rpc_error(ask->rpc->id, RPC_INVALID_PARAMS,
				     "params.level is none of debug, info, notice, "
				     "warning, error, critical, alert, emergency"));
		return;
	}
	wishes_set_level(&ask->server->audience.wishes, ask->context, level);
	ask_answer(ask, json_object());
}

/* ---- all methods ---- */

static const struct {
	const char *name;
	enum mcp_revision first, last;
	void (*run)(const struct ask *ask);
} methods[] = {
    {"initialize", MCP_2024_11_05, MCP_2025_11_25, server_on_initialize},
    {"ping", MCP_2024_11_05, MCP_2025_11_25, on_ping},
    {"server/discover", MCP_2026_07_28, MCP_2026_07_28, server_on_discover},
    {"logging/setLevel", MCP_2024_11_05, MCP_2025_11_25, on_set_level},
    {"tools/list", MCP_2024_11_05, MCP_2026_07_28, on_tools_list},
    {"tools/call", MCP_2024_11_05, MCP_2026_07_28, on_tools_call},
    {"resources/list", MCP_2024_11_05, MCP_2026_07_28, server_on_resources_list},
    {"resources/read", MCP_2024_11_05, MCP_2026_07_28, server_on_resources_read},
    {"prompts/list", MCP_2024_11_05, MCP_2026_07_28, server_on_prompts_list},
    {"prompts/get", MCP_2024_11_05, MCP_2026_07_28, server_on_prompts_get},
    {"completion/complete", MCP_2024_11_05, MCP_2026_07_28, server_on_complete},
    {"resources/templates/list", MCP_2024_11_05, MCP_2026_07_28,
     server_on_resource_templates},
    {"resources/subscribe", MCP_2024_11_05, MCP_2025_11_25, server_on_subscribe},
    {"resources/unsubscribe", MCP_2024_11_05, MCP_2025_11_25, server_on_unsubscribe},
    {"subscriptions/listen", MCP_2026_07_28, MCP_2026_07_28, server_on_listen},
    {"tasks/get", MCP_2026_07_28, MCP_2026_07_28, server_on_tasks_get},
    {"tasks/update", MCP_2026_07_28, MCP_2026_07_28, server_on_tasks_update},
    {"tasks/cancel", MCP_2026_07_28, MCP_2026_07_28, server_on_tasks_cancel},
};

/* Row of the method, or -1. */
static int find_method(const char *name, enum mcp_revision revision)
{
	for (int i = 0; i < (int)COUNT_OF(methods); i++)
		if (strcmp(methods[i].name, name) == 0 &&
		    revision >= methods[i].first && revision <= methods[i].last)
			return i;
	return -1;
}

bool server_has_method(const char *method, enum mcp_revision revision)
{
	return find_method(method, revision) >= 0;
}

json_t *server_check_headers(const struct server *self, const struct rpc *rpc,
			     bool (*header)(void *arg, const char *name,
					    struct buf *out),
			     void *arg)
{
	const char *wrong =
	    strcmp(rpc->method, "tools/call") == 0
		? tools_header_mismatch(self->config, rpc->params, header, arg)
		: NULL;

	return wrong ? rpc_error(rpc->id, RPC_HEADER_MISMATCH,
				 "Header mismatch: Mcp-Param-%s is missing or not what "
				 "the arguments say",
				 wrong)
		     : NULL;
}

bool server_needs_workspace(const char *method)
{
	static const char *const without[] = {"initialize",      "ping",
					      "server/discover", "tools/list",
					      "prompts/list",    "logging/setLevel"};

	for (size_t i = 0; i < COUNT_OF(without); i++)
		if (strcmp(without[i], method) == 0)
			return false;
	return true;
}

/* Not where only the structure would reach the model: it has no pictures, and strings
 * for tables.  Then tools do not announce one either, as SDKs insist on it. */
static bool gives_structure(const struct config *config,
			    const struct server_context *context)
{
	return context->revision >= MCP_2025_06_18 &&
	       (config->structure == STRUCTURE_ALWAYS ||
		(config->structure == STRUCTURE_AUTO &&
		 !(context->client & CLIENT_HIDES_TEXT)));
}

/* What the request itself says of who asks, and what is remembered of him. */
static void complete(struct server *self, const struct rpc *rpc,
		     struct server_context *context)
{
	const json_t *meta = json_object_get(rpc->params, "_meta");
	json_t *token = json_object_get(meta, "progressToken");

	context->server = self;
	if (json_is_string(token) || json_is_integer(token))
		context->progress_token = token;
	if (context->revision < MCP_STATELESS) {
		context->log_level =
		    wishes_level(&self->audience.wishes, context->session);
	} else {
		context->log_level =
		    outlet_level(json_text(meta, ERA_META "logLevel", ""));
		context->client =
		    client_bits(json_object_get(meta, ERA_META "clientCapabilities"),
				json_object_get(meta, ERA_META "clientInfo"));
	}
	context->structure = gives_structure(self->config, context);
}

void server_request(struct server *self, const struct rpc *rpc,
		    const struct server_context *asker, server_answer_fn *answer_fn,
		    void *arg)
{
	struct server_context context = *asker;
	const struct ask ask = {self, rpc, &context, answer_fn, arg};

	complete(self, rpc, &context);
	int method = find_method(rpc->method, context.revision);
	if (method >= 0)
		methods[method].run(&ask);
	else
		ask_refuse(&ask, rpc_error(rpc->id, RPC_METHOD_NOT_FOUND,
					   "Method not found: %.100s", rpc->method));
}

void server_response(struct server *self, const json_t *message, uint64_t session)
{
	questions_take(&self->questions, message, session);
}

void server_left(struct server *self, uint64_t session)
{
	questions_left(&self->questions, session);
	wishes_forget(&self->audience.wishes, session);
}

void server_cancel(struct server *self, const void *arg)
{
	jobs_cancel(&self->jobs, arg);
	audience_hang_up(&self->audience, arg);
}

size_t server_abandon(struct server *self, const void *arg)
{
	return jobs_abandon(&self->jobs, arg);
}

void server_notification(struct server *self, const struct rpc *rpc,
			 const struct server_context *context)
{
	if (strcmp(rpc->method, "notifications/cancelled") == 0)
		jobs_cancel_request(&self->jobs, context->session,
				    json_object_get(rpc->params, "requestId"));
	else
		log_debug("mcp", "notification %s", rpc->method);
}

// SPDX-License-Identifier: MIT
/* Subscriptions, and what happens that somebody may want to know. */
#include "mcp/server_impl.h"

#include "mcp/uri.h"
#include "wire/json.h"

static bool refuse_nobody(const struct ask *ask)
{
	if (!ask->context->workspace)
		ask_refuse(ask, rpc_error(ask->rpc->id, RPC_INVALID_PARAMS, "%s",
					  ask->context->refusal.msg));
	return !ask->context->workspace;
}

void server_on_subscribe(const struct ask *ask)
{
	struct err err;

	if (refuse_nobody(ask))
		return;
	if (wishes_subscribe(&ask->server->audience.wishes, ask->context,
			     json_object_get(ask->rpc->params, "uri"), &err) < 0)
		ask_refuse(ask, rpc_error(ask->rpc->id, err_rpc_code(err.kind), "%s",
					  err.msg));
	else
		ask_answer(ask, json_object());
}

void server_on_unsubscribe(const struct ask *ask)
{
	wishes_unsubscribe(&ask->server->audience.wishes, ask->context->session,
			   json_object_get(ask->rpc->params, "uri"));
	ask_answer(ask, json_object());
}

void server_on_listen(const struct ask *ask)
{
	json_auto_t *tasks = NULL;

	if (refuse_nobody(ask) || !server_take_tasks(ask, &tasks))
		return;
	const struct listen_start start = {
	    .context = ask->context,
	    .id = ask->rpc->id,
	    .filter = json_object_get(ask->rpc->params, "notifications"),
	    .tasks = tasks,
	    .lists_change = ask->server->config->conformance != 0,
	    .dress = server_dress,
	    .answer = ask->answer,
	    .arg = ask->arg};
	struct err err;

	if (audience_listen(&ask->server->audience, &start, &err) < 0)
		ask_refuse(ask, rpc_error(ask->rpc->id, err_rpc_code(err.kind), "%s",
					  err.msg));
	else
		server_tell_tasks(ask, tasks);
}

/* ---- what happens ---- */

static void add_uri(json_t *uris, const struct workspace *workspace, const char *path)
{
	owned(buf_finish) struct buf uri = {0};

	uri_of_path(&uri, workspace_name(workspace), path);
	json_array_append_new(uris, json_string(buf_str(&uri)));
}

static void add_uris(json_t *uris, const struct workspace *workspace,
		     const struct files_list *list)
{
	for (size_t i = 0; list && i < list->count; i++)
		add_uri(uris, workspace, list->at[i]->path);
}

void server_files_changed(const struct workspace *workspace,
			  const struct files_change *change, void *arg)
{
	struct server *self = arg;
	json_auto_t *uris = json_array();

	add_uris(uris, workspace, change->wrote);
	add_uris(uris, workspace, change->gone);
	if (change->path)
		add_uri(uris, workspace, change->path);
	audience_files(&self->audience, workspace, uris, change->names);
}

void server_list_changed(struct server *self, const char *what)
{
	audience_list(&self->audience, what);
}

void server_add_teller(struct server *self, struct teller *teller)
{
	SLIST_INSERT_HEAD(&self->audience.tellers, teller, link);
}

void server_tell_unread(const struct server *self, const struct workspace *home,
			struct buf *out)
{
	const struct teller *teller;

	SLIST_FOREACH(teller, &self->audience.tellers, link)
	if (teller->tell_unread)
		teller->tell_unread(teller->arg, home, out);
}

void server_drain(struct server *self)
{
	audience_close(&self->audience);
}

void server_hang_up(struct server *self, const void *arg)
{
	audience_hang_up(&self->audience, arg);
}

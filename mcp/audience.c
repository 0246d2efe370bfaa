// SPDX-License-Identifier: MIT
#include "mcp/audience.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mcp/era.h"
#include "mcp/server.h"
#include "wire/json.h"
#include "wire/mem.h"

struct listen { /* one subscriptions/listen */
	TAILQ_ENTRY(listen) link;
	struct outlet outlet;
	const struct workspace *workspace;
	json_t *id;     /* owned */
	json_t *filter; /* owned: what was acknowledged */
	json_t *(*dress)(json_t *result, enum mcp_revision revision);
	void (*answer)(json_t *message, void *arg); /* NULL: nobody waits for it */
	void *arg;
};

void audience_init(struct audience *self)
{
	*self = (struct audience){0};
	wishes_init(&self->wishes);
	TAILQ_INIT(&self->listens);
	SLIST_INIT(&self->tellers);
}

/* ---- listening ---- */

static json_t *mark(const struct listen *self)
{
	return json_pack("{sO}", ERA_META "subscriptionId", self->id);
}

static void end(struct audience *self, struct listen *listen)
{
	TAILQ_REMOVE(&self->listens, listen, link);
	self->listen_count--;
	if (listen->answer) {
		json_t *result = json_pack("{so}", "_meta", mark(listen));

		listen->answer(
		    rpc_result(listen->id, listen->dress(result, MCP_STATELESS)),
		    listen->arg);
	}
	json_decref(listen->id);
	json_decref(listen->filter);
	free(listen);
}

/* Adds the filter's URIs, if they can be subscribed to. */
static int take_uris(json_t *out, const json_t *filter, struct err *err)
{
	const json_t *uris = json_object_get(filter, "resourceSubscriptions");

	if (!uris)
		return 0;
	if (!json_is_array(uris))
		return err_set(err, ERR_ARGUMENT, "resourceSubscriptions is no array");
	if (json_array_size(uris) > WISHES_URIS_MAX)
		return wishes_too_many(err);
	for (size_t i = 0; i < json_array_size(uris); i++)
		if (wishes_check_uri(json_array_get(uris, i), err) < 0)
			return -1;
	json_object_set_new(out, "resourceSubscriptions",
			    json_copy((json_t *)(uintptr_t)uris));
	return 0;
}

static void take_flag(json_t *out, const json_t *filter, const char *name,
		      bool honoured)
{
	if (honoured && json_is_true(json_object_get(filter, name)))
		json_object_set_new(out, name, json_true());
}

/* What of the filter is honoured.  Caller owns; NULL: the filter is wrong. */
static json_t *read_filter(const struct listen_start *start, struct err *err)
{
	json_auto_t *out = json_object();

	if (!json_is_object(start->filter)) {
		err_set(err, ERR_ARGUMENT, "params.notifications is missing");
		return NULL;
	}
	take_flag(out, start->filter, "toolsListChanged", start->lists_change);
	take_flag(out, start->filter, "promptsListChanged", start->lists_change);
	take_flag(out, start->filter, "resourcesListChanged", true);
	if (take_uris(out, start->filter, err) < 0)
		return NULL;
	if (start->tasks)
		json_object_set(out, "taskIds", start->tasks);
	return json_incref(out);
}

static json_t *notification(const char *method, json_t *params)
{
	return json_pack("{ss ss so}", "jsonrpc", "2.0", "method", method, "params",
			 params);
}

/* params is consumed. */
static bool tell(const struct listen *self, const char *method, json_t *params,
		 bool must)
{
	json_object_set_new(params, "_meta", mark(self));
	json_auto_t *message = notification(method, params);
	return self->outlet.send && self->outlet.send(self->outlet.arg, message, must);
}

static size_t count_of(const struct audience *self, const struct workspace *workspace)
{
	const struct listen *listen;
	size_t count = 0;

	TAILQ_FOREACH(listen, &self->listens, link)
	count += listen->workspace == workspace;
	return count;
}

int audience_listen(struct audience *self, const struct listen_start *start,
		    struct err *err)
{
	json_t *filter = read_filter(start, err);

	if (!filter)
		return -1;
	struct listen *listen = xcalloc(1, sizeof *listen);
	*listen = (struct listen){.outlet = start->context->outlet,
				  .workspace = start->context->workspace,
				  .id = json_incref(start->id),
				  .filter = filter,
				  .dress = start->dress,
				  .arg = start->arg};
	TAILQ_INSERT_TAIL(&self->listens, listen, link);
	self->listen_count++;
	if (self->listen_count > AUDIENCE_MAX ||
	    count_of(self, listen->workspace) > AUDIENCE_OF_ONE_MAX)
		err_set(err, ERR_LIMIT, "too many subscriptions are open");
	else if (!tell(listen, "notifications/subscriptions/acknowledged",
		       json_pack("{sO}", "notifications", filter), true))
		err_set(err, ERR_ARGUMENT,
			"this is told on an event stream; accept text/event-stream");
	else
		listen->answer = start->answer;
	int result = listen->answer ? 0 : -1;
	if (result < 0 || self->over)
		end(self, listen);
	return result;
}

void audience_hang_up(struct audience *self, const void *arg)
{
	struct listen *listen, *next;

	for (listen = TAILQ_FIRST(&self->listens); listen; listen = next) {
		next = TAILQ_NEXT(listen, link);
		if (listen->arg == arg)
			end(self, listen);
	}
}

void audience_close(struct audience *self)
{
	self->over = true;
	while (!TAILQ_EMPTY(&self->listens))
		end(self, TAILQ_FIRST(&self->listens));
}

void audience_finish(struct audience *self)
{
	struct listen *listen;

	wishes_finish(&self->wishes);
	while ((listen = TAILQ_FIRST(&self->listens))) {
		listen->answer = NULL;
		end(self, listen);
	}
}

/* ---- what happened ---- */

struct telling {
	const struct audience *audience;
	json_t *message; /* borrowed */
};

static void tell_session(uint64_t session, void *arg)
{
	const struct telling *self = arg;
	const struct teller *teller;

	SLIST_FOREACH(teller, &self->audience->tellers, link)
	teller->tell(teller->arg, session, self->message);
}

/* uri: that was changed; NULL: the list is another. */
static void tell_sessions_of(struct audience *self, const struct workspace *workspace,
			     const char *uri, json_t *message)
{
	struct telling telling = {self, message};

	wishes_each(&self->wishes, workspace, uri, tell_session, &telling);
}

/* Whether that text is in the list of the filter. */
static bool wants(const struct listen *self, const char *list, const json_t *text)
{
	return json_array_has(json_object_get(self->filter, list), text);
}

static void tell_updated(struct audience *self, const struct workspace *workspace,
			 json_t *uri)
{
	static const char method[] = "notifications/resources/updated";
	json_auto_t *message = notification(method, json_pack("{sO}", "uri", uri));
	const struct listen *listen;

	tell_sessions_of(self, workspace, json_string_value(uri), message);
	TAILQ_FOREACH(listen, &self->listens, link)
	if (wishes_is_of(workspace, workspace_name(listen->workspace)) &&
	    wants(listen, "resourceSubscriptions", uri))
		tell(listen, method, json_pack("{sO}", "uri", uri), false);
}

/* workspace: NULL where it is the same for all. */
static void tell_list(struct audience *self, const char *what, const char *flag,
		      const struct workspace *workspace)
{
	char method[64];
	const struct listen *listen;
	const struct teller *teller;

	snprintf(method, sizeof method, "notifications/%s/list_changed", what);
	json_auto_t *message = notification(method, json_object());
	/* what is listed is not that of branches */
	if (workspace)
		tell_sessions_of(self, workspace, NULL, message);
	else
		SLIST_FOREACH(teller, &self->tellers, link)
	teller->tell_all(teller->arg, message);
	TAILQ_FOREACH(listen, &self->listens, link)
	if ((!workspace || listen->workspace == workspace) &&
	    json_object_get(listen->filter, flag))
		tell(listen, method, json_object(), false);
}

void audience_files(struct audience *self, const struct workspace *workspace,
		    const json_t *uris, bool list)
{
	for (size_t i = 0; i < json_array_size(uris); i++)
		tell_updated(self, workspace, json_array_get(uris, i));
	if (list)
		tell_list(self, "resources", "resourcesListChanged", workspace);
}

void audience_task(struct audience *self, const struct workspace *workspace,
		   json_t *task, const void *arg)
{
	json_t *id = json_object_get(task, "taskId");
	struct listen *listen, *next;

	for (listen = TAILQ_FIRST(&self->listens); listen; listen = next) {
		next = TAILQ_NEXT(listen, link);
		if ((arg && listen->arg != arg) || listen->workspace != workspace ||
		    !wants(listen, "taskIds", id))
			continue;
		/* who misses one would wait for ever: he is to ask again */
		if (!tell(listen, "notifications/tasks", json_copy(task), false))
			end(self, listen);
	}
	json_decref(task);
}

void audience_list(struct audience *self, const char *what)
{
	char flag[32];

	snprintf(flag, sizeof flag, "%sListChanged", what);
	tell_list(self, what, flag, NULL);
}

// SPDX-License-Identifier: MIT
#include "mcp/channel.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "mcp/era.h"
#include "wire/json.h"
#include "wire/mem.h"

struct channel {
	LIST_ENTRY(channel) link;
	struct channels *channels; /* borrowed */
	struct channel_link via;
	uint64_t number;   /* what a session's serial is over HTTP */
	bool has_revision; /* initialize was answered */
	enum mcp_revision revision;
	json_t *hello; /* owned: its params */
	json_t *level; /* owned: those of the last logging/setLevel */
	size_t open;
};

struct batch { /* lives until all of it is answered */
	size_t open;
	json_t *answers; /* owned */
};

struct channel_ask { /* a request being answered */
	LIST_ENTRY(channel_ask) link;
	struct channel *channel;   /* NULL: it has left */
	struct channels *channels; /* borrowed */
	struct batch *batch;       /* or NULL */
	json_t *id;                /* owned */
	bool cancelled, stateless;
};

struct channel *channel_create(struct channels *channels,
			       const struct channel_link *link)
{
	struct channel *self = xcalloc(1, sizeof *self);

	self->channels = channels;
	self->via = *link;
	randombytes_buf(&self->number, sizeof self->number);
	LIST_INSERT_HEAD(&channels->all, self, link);
	return self;
}

size_t channel_open(const struct channel *self)
{
	return self->open;
}

json_t *channel_hello(const struct channel *self)
{
	return self->hello;
}

json_t *channel_level(const struct channel *self)
{
	return self->level;
}

/* ---- answering ---- */

/* What the other side does not read is not kept for it without end. */
static void send_value(struct channel *self, json_t *message)
{
	owned(buf_finish) struct buf text = {0};

	json_write(&text, message);
	if (self->via.send(self->via.arg, text.data, text.size, false))
		return;
	json_auto_t *instead = rpc_error(
	    json_object_get(message, "id"), RPC_INTERNAL_ERROR,
	    "an answer of %zu bytes was dropped: too much that was sent before waits "
	    "to be read; read faster, or ask for less at once",
	    text.size);
	buf_drop(&text, text.size);
	json_write(&text, instead);
	self->via.send(self->via.arg, text.data, text.size, true);
}

static void batch_drop(struct batch **self)
{
	struct batch *dead = take(self);

	json_decref(dead->answers);
	free(dead);
}

/* One less of it is open; message (consumed) is its answer, or NULL.  channel: NULL
 * when it has left. */
static void batch_step(struct batch *self, struct channel *channel, json_t *message)
{
	if (message)
		json_array_append_new(self->answers, message);
	if (--self->open)
		return;
	if (channel && json_array_size(self->answers))
		send_value(channel, self->answers);
	batch_drop(&self);
}

/* message is consumed. */
static void answer_now(struct channel *self, struct batch *batch, json_t *message)
{
	if (batch) {
		json_array_append_new(batch->answers, message);
		return;
	}
	send_value(self, message);
	json_decref(message);
}

static void ask_destroy(struct channel_ask *self)
{
	LIST_REMOVE(self, link);
	json_decref(self->id);
	free(self);
}

static void on_answer(json_t *message, void *arg)
{
	struct channel_ask *self = arg;
	struct channel *channel = self->channel;

	if (self->cancelled) {
		json_decref(message);
		message = NULL;
	}
	if (self->batch)
		batch_step(self->batch, channel, message);
	else if (message && channel)
		send_value(channel, message);
	if (!self->batch)
		json_decref(message);
	ask_destroy(self);
	if (channel && --channel->open == 0 && channel->via.idle)
		channel->via.idle(channel->via.arg);
}

/* What is no answer is dropped early, so that answers find room. */
static bool on_outlet(void *arg, json_t *message, bool must)
{
	const struct channel_ask *self = arg;
	const struct channel *channel = self->channel;
	owned(buf_finish) struct buf text = {0};

	if (!channel ||
	    (!must && (self->cancelled ||
		       channel->via.waiting(channel->via.arg) > CHANNEL_WAITING_MAX)))
		return false;
	json_write(&text, message);
	return channel->via.send(channel->via.arg, text.data, text.size, must);
}

void channel_refuse(struct channel *self, int code, const char *text)
{
	answer_now(self, NULL, rpc_error(NULL, code, "%s", text));
}

void channel_refuse_long(struct channel *self)
{
	channel_refuse(
	    self, RPC_INVALID_REQUEST,
	    "Invalid Request: a message of more than 4 MiB was skipped; send "
	    "less at once");
}

/* ---- taking ---- */

static struct channel_ask *find_ask(const struct channel *self, const json_t *id)
{
	struct channel_ask *ask;

	LIST_FOREACH(ask, &self->channels->asks, link)
	{
		if (ask->channel == self && json_equal(ask->id, id))
			return ask;
	}
	return NULL;
}

/* Ids that are unknown are ignored: it may just have ended. */
static void take_cancelled(struct channel *self, const struct rpc *rpc)
{
	struct channel_ask *ask =
	    find_ask(self, json_object_get(rpc->params, "requestId"));

	if (!ask || ask->cancelled)
		return;
	ask->cancelled = true;
	server_cancel(self->channels->server, ask);
}

static void ask_server(struct channel *self, struct batch *batch, const struct rpc *rpc,
		       enum mcp_revision revision)
{
	struct channel_ask *ask = xcalloc(1, sizeof *ask);
	struct server_context context = {
	    .revision = revision,
	    .session = revision >= MCP_STATELESS ? 0 : self->number,
	    .client = client_bits(json_object_get(self->hello, "capabilities"),
				  json_object_get(self->hello, "clientInfo")),
	    .outlet = {.send = on_outlet, .arg = ask},
	    .workspaces = self->channels->workspaces};

	*ask = (struct channel_ask){.channel = self,
				    .channels = self->channels,
				    .batch = batch,
				    .id = json_incref(rpc->id),
				    .stateless = revision >= MCP_STATELESS};
	LIST_INSERT_HEAD(&self->channels->asks, ask, link);
	self->open++;
	if (batch)
		batch->open++;
	if (context.workspaces)
		self->via.who(self->via.arg, &context);
	server_request(self->channels->server, rpc, &context, on_answer, ask);
}

/* Each initialize begins the conversation anew; what is under way goes on. */
static int take_hello(struct channel *self, const struct rpc *rpc, json_t **refusal)
{
	struct err err;

	if (server_negotiate(rpc, &self->revision, &err) < 0) {
		*refusal = rpc_error(rpc->id, err_rpc_code(err.kind), "%s", err.msg);
		return -1;
	}
	self->has_revision = true;
	json_decref(self->hello);
	self->hello = json_incref(rpc->params);
	return 0;
}

/* The revision of a request, or -1 and what to answer (caller owns). */
static int revision_of(struct channel *self, const struct rpc *rpc, bool batch,
		       json_t **refusal)
{
	struct era_verdict verdict;

	switch (era_decide(rpc, NULL, server_has_method, &verdict)) {
	case ERA_STATELESS:
		return (int)verdict.revision;
	case ERA_REFUSED:
		*refusal = verdict.message;
		return -1;
	case ERA_SESSIONS:
	case ERA_DROPPED: /* notifications only */
		break;
	}
	if (strcmp(rpc->method, "initialize") == 0 && !batch)
		return take_hello(self, rpc, refusal) < 0 ? -1 : (int)self->revision;
	if (self->has_revision)
		return (int)self->revision;
	if (strcmp(rpc->method, "ping") == 0) /* may come before */
		return MCP_2025_11_25;
	*refusal = rpc_error(rpc->id, RPC_INVALID_REQUEST,
			     "send initialize first, or say in params._meta which "
			     "revision this is");
	return -1;
}

/* Who has the workspaces may be another one later, and has to know it then. */
static void note_level(struct channel *self, const struct rpc *rpc)
{
	if (strcmp(rpc->method, "logging/setLevel") != 0)
		return;
	json_decref(self->level);
	self->level = json_incref(rpc->params);
}

static void take_request(struct channel *self, struct batch *batch,
			 const struct rpc *rpc)
{
	json_t *refusal = NULL;

	/* Not by that id: it is the one in flight that the answer would be taken for.
	 */
	if (find_ask(self, rpc->id)) {
		owned(free_text) char *id = json_dumps(rpc->id, JSON_ENCODE_ANY);

		refusal = rpc_error(NULL, RPC_INVALID_REQUEST,
				    "Invalid Request: id %.100s is that of a request "
				    "that is being answered",
				    id);
	} else if (self->open >= CHANNEL_OPEN_MAX) {
		refusal = rpc_error(rpc->id, RPC_INTERNAL_ERROR,
				    "%d requests are being answered already; wait for "
				    "some of the answers",
				    CHANNEL_OPEN_MAX);
	} else {
		int revision = revision_of(self, rpc, batch != NULL, &refusal);

		if (revision >= 0) {
			note_level(self, rpc);
			ask_server(self, batch, rpc, (enum mcp_revision)revision);
			return;
		}
	}
	answer_now(self, batch, refusal);
}

static void take_one(struct channel *self, struct batch *batch, json_t *message)
{
	struct rpc rpc;
	struct err err;

	if (rpc_read(&rpc, message, &err) < 0)
		answer_now(self, batch,
			   rpc_error(rpc.id, err_rpc_code(err.kind),
				     "Invalid Request: %s", err.msg));
	else if (rpc.kind == RPC_REQUEST)
		take_request(self, batch, &rpc);
	else if (rpc.kind == RPC_RESPONSE)
		server_response(self->channels->server, message, self->number);
	else if (rpc.kind == RPC_NOTIFICATION &&
		 strcmp(rpc.method, "notifications/cancelled") == 0)
		take_cancelled(self, &rpc);
}

static bool has_batches(const struct channel *self, const json_t *batch)
{
	return self->has_revision && self->revision <= MCP_2025_03_26 &&
	       !era_claimed_in(batch);
}

static void take_batch(struct channel *self, json_t *messages)
{
	size_t count = json_array_size(messages);
	struct batch *batch;

	if (!has_batches(self, messages)) {
		channel_refuse(self, RPC_INVALID_REQUEST,
			       "Batches ended with revision 2025-03-26; send one "
			       "message at a time");
		return;
	}
	if (!count || count > CHANNEL_BATCH_MAX) {
		channel_refuse(self, RPC_INVALID_REQUEST,
			       "A batch holds 1 to 100 messages");
		return;
	}
	batch = xcalloc(1, sizeof *batch);
	*batch = (struct batch){.open = 1, /* ours, until all are under way */
				.answers = json_array()};
	for (size_t i = 0; i < count; i++)
		take_one(self, batch, json_array_get(messages, i));
	batch_step(batch, self, NULL);
}

/* True for what somebody else has to see who has the workspace: requests that need it,
 * and what refers to them. */
static bool one_needs_workspace(const struct channel *self, json_t *message)
{
	struct rpc rpc;
	struct err err;

	if (rpc_read(&rpc, message, &err) < 0)
		return false;
	if (rpc.kind != RPC_REQUEST)
		return rpc.kind == RPC_RESPONSE ||
		       strcmp(rpc.method, "notifications/cancelled") == 0;
	return (self->has_revision || era_claims(message)) &&
	       (server_has_method(rpc.method, self->revision) ||
		server_has_method(rpc.method, MCP_STATELESS)) &&
	       server_needs_workspace(rpc.method);
}

/* A batch goes there as a whole. */
static bool needs_workspace(const struct channel *self, json_t *message)
{
	if (!json_is_array(message))
		return one_needs_workspace(self, message);
	for (size_t i = 0; i < json_array_size(message); i++)
		if (one_needs_workspace(self, json_array_get(message, i)))
			return has_batches(self, message);
	return false;
}

void channel_take_value(struct channel *self, json_t *message)
{
	if (self->via.divert && needs_workspace(self, message) &&
	    self->via.divert(self->via.arg, message))
		return;
	if (json_is_array(message))
		take_batch(self, message);
	else
		take_one(self, NULL, message);
}

void channel_take(struct channel *self, const char *text, size_t size)
{
	json_auto_t *message = NULL;
	struct err err;

	if (json_parse(&message, text, size, &err) == 0) {
		channel_take_value(self, message);
		return;
	}
	answer_now(self, NULL,
		   rpc_error(NULL, RPC_PARSE_ERROR, "Parse error: %s", err.msg));
}

static json_t *failure(const json_t *message, const struct err *err)
{
	return rpc_error(json_object_get(message, "id"), err_rpc_code(err->kind), "%s",
			 err->msg);
}

void channel_fail(struct channel *self, json_t *message, const struct err *err)
{
	json_auto_t *answers = json_array();

	if (json_object_get(message, "id") && json_object_get(message, "method"))
		answer_now(self, NULL, failure(message, err));
	for (size_t i = 0; i < json_array_size(message); i++)
		if (json_object_get(json_array_get(message, i), "id"))
			json_array_append_new(answers,
					      failure(json_array_get(message, i), err));
	if (json_array_size(answers))
		send_value(self, answers);
}

/* ---- what happens besides ---- */

static void tell_one(struct channel *self, json_t *message)
{
	owned(buf_finish) struct buf text = {0};

	if (self->via.waiting(self->via.arg) > CHANNEL_WAITING_MAX)
		return;
	json_write(&text, message);
	self->via.send(self->via.arg, text.data, text.size, false);
}

static void on_tell(void *arg, uint64_t session, json_t *message)
{
	const struct channels *self = arg;
	struct channel *channel;

	LIST_FOREACH(channel, &self->all, link)
	if (channel->number == session)
		tell_one(channel, message);
}

static void on_tell_all(void *arg, json_t *message)
{
	const struct channels *self = arg;
	struct channel *channel;

	LIST_FOREACH(channel, &self->all, link)
	if (channel->has_revision)
		tell_one(channel, message);
}

void channels_listen(struct channels *self)
{
	self->teller =
	    (struct teller){.tell = on_tell, .tell_all = on_tell_all, .arg = self};
	server_add_teller(self->server, &self->teller);
}

void channel_hang_up(struct channel *self)
{
	struct channel_ask *ask, *next;

	for (ask = LIST_FIRST(&self->channels->asks); ask; ask = next) {
		next = LIST_NEXT(ask, link);
		if (ask->channel == self)
			server_hang_up(self->channels->server, ask);
	}
}

/* ---- the end ---- */

/* Its answer will not come. */
static void give_up(struct channel_ask *self)
{
	if (self->batch)
		batch_step(self->batch, NULL, NULL);
	ask_destroy(self);
}

void channel_destroy(struct channel **self)
{
	struct channel *dead = take(self);
	struct channel_ask *ask, *next;

	if (!dead)
		return;
	for (ask = LIST_FIRST(&dead->channels->asks); ask; ask = next) {
		next = LIST_NEXT(ask, link);
		if (ask->channel != dead)
			continue;
		ask->channel = NULL;
		if (ask->stateless)
			server_cancel(dead->channels->server, ask);
		else if (server_abandon(dead->channels->server, ask))
			give_up(ask);
	}
	server_left(dead->channels->server, dead->number);
	LIST_REMOVE(dead, link);
	json_decref(dead->hello);
	json_decref(dead->level);
	free(dead);
}

void channels_finish(struct channels *self)
{
	struct channel_ask *ask;

	while ((ask = LIST_FIRST(&self->asks))) {
		if (ask->channel)
			ask->channel->open--;
		give_up(ask);
	}
}

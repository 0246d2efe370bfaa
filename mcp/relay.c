// SPDX-License-Identifier: MIT
#include "mcp/relay.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "mcp/door.h"
#include "mcp/lines.h"
#include "mcp/rpc.h"
#include "wire/json.h"
#include "wire/mem.h"

enum { ANSWER_MAX = 64 << 20 /* bytes; the result limit is at most a quarter */ };
#define OUR_ID "vivarium-relay" /* of the requests that are ours */

struct relay {
	struct relay_owner owner;
	struct lines *lines;
	json_t *hello, *level; /* owned: what the other one has got */
	json_t *open;          /* owned: the ids of what is not answered, as an array */
};

static bool send_value(struct relay *self, json_t *message, bool must)
{
	owned(buf_finish) struct buf text = {0};

	json_write(&text, message);
	return lines_send(self->lines, text.data, text.size, must);
}

/* ---- what is open ---- */

static void open_add_one(struct relay *self, const json_t *message)
{
	json_t *id = json_object_get(message, "id");

	/* What goes on as long as we do is not waited for. */
	if (id && json_object_get(message, "method") &&
	    strcmp(json_text(message, "method", ""), "subscriptions/listen") != 0)
		json_array_append(self->open, id);
}

static void open_add(struct relay *self, const json_t *message)
{
	open_add_one(self, message);
	for (size_t i = 0; i < json_array_size(message); i++)
		open_add_one(self, json_array_get(message, i));
}

static void open_remove(struct relay *self, const json_t *id)
{
	json_array_remove(self->open, json_index_of(self->open, id));
}

size_t relay_open(const struct relay *self)
{
	return json_array_size(self->open);
}

/* ---- back ---- */

/* True if it is the answer to one of our own. */
static bool is_ours(const json_t *answer)
{
	return strcmp(json_text(answer, "id", ""), OUR_ID) == 0;
}

static void on_line(void *arg, const char *text, size_t size)
{
	struct relay *self = arg;
	json_auto_t *answer = NULL;
	struct err err;

	if (json_parse(&answer, text, size, &err) < 0 || is_ours(answer))
		return;
	open_remove(self, json_object_get(answer, "id"));
	for (size_t i = 0; i < json_array_size(answer); i++)
		open_remove(self, json_object_get(json_array_get(answer, i), "id"));
	self->owner.answer(self->owner.arg, text, size);
}

static void on_too_long(void *arg)
{
	(void)arg; /* none of ours: its request stays open until the other one goes */
}

static void on_end(void *arg, bool broken)
{
	struct relay *self = arg;
	json_auto_t *answers = json_array();

	(void)broken;
	for (size_t i = 0; i < json_array_size(self->open); i++)
		json_array_append_new(
		    answers,
		    rpc_error(
			json_array_get(self->open, i), RPC_INTERNAL_ERROR,
			"the Vivarium that ran this for us has ended; it may have "
			"run in part. Call again: the next call brings the saved "
			"state back"));
	self->owner.gone(self->owner.arg, answers);
}

/* ---- there ---- */

/* A request of our own with these params, if they are new to him.  known: of the last
 * one, owned. */
static int send_first(struct relay *self, const char *method, json_t *params,
		      json_t **known, struct err *err)
{
	if (!params || params == *known)
		return 0;
	json_auto_t *first = json_pack("{ss ss ss sO}", "jsonrpc", "2.0", "id", OUR_ID,
				       "method", method, "params", params);
	if (!send_value(self, first, false))
		return err_set(err, ERR_LIMIT, "too much waits to be handed on");
	json_decref(*known);
	*known = json_incref(params);
	return 0;
}

int relay_send(struct relay *self, json_t *hello, json_t *level, json_t *message,
	       struct err *err)
{
	if (send_first(self, "initialize", hello, &self->hello, err) < 0 ||
	    send_first(self, "logging/setLevel", level, &self->level, err) < 0)
		return -1;
	if (!send_value(self, message, false))
		return err_set(err, ERR_LIMIT, "too much waits to be handed on");
	open_add(self, message);
	if (strcmp(json_text(message, "method", ""), "notifications/cancelled") == 0)
		open_remove(self, json_object_get(json_object_get(message, "params"),
						  "requestId"));
	return 0;
}

void relay_pause(struct relay *self, bool paused)
{
	lines_pause(self->lines, paused);
}

int relay_create(struct relay **out, struct loop *loop, const char *own_dir,
		 const char *user, const struct relay_owner *owner, struct err *err)
{
	owned(relay_destroy) struct relay *self = xcalloc(1, sizeof *self);
	owned(buf_finish) struct buf first = {0};
	const struct lines_owner mine = {
	    .line = on_line, .too_long = on_too_long, .end = on_end, .arg = self};
	int fd;

	*self = (struct relay){.owner = *owner, .open = json_array()};
	if (door_reach(own_dir, &fd, err) < 0)
		return -1;
	if (lines_create(&self->lines, loop, fd, fcntl(fd, F_DUPFD_CLOEXEC, 0),
			 ANSWER_MAX, &mine, err) < 0 ||
	    door_first_line(&first, own_dir, user, err) < 0)
		return -1;
	lines_send(self->lines, first.data, first.size, true);
	explicit_bzero(first.data, first.size);
	*out = take(&self);
	return 0;
}

void relay_destroy(struct relay **self)
{
	struct relay *dead = take(self);

	if (!dead)
		return;
	lines_destroy(&dead->lines);
	json_decref(dead->hello);
	json_decref(dead->level);
	json_decref(dead->open);
	free(dead);
}

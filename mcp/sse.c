// SPDX-License-Identifier: MIT
#include "mcp/sse.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/buf.h"
#include "wire/json.h"
#include "wire/mem.h"

enum {
	ID_BYTES = 16,
	ID_SIZE = 2 * ID_BYTES + 1,
	BACKLOG_MAX = 20 << 20, /* bytes of answers that wait; as over a WebSocket */
};
#define PARAMETER "conversation"

struct talk {
	LIST_ENTRY(talk) link;
	struct sses *owner;        /* borrowed */
	struct exchange *exchange; /* of its stream */
	struct exchange *posting;  /* whose message is being taken */
	struct channel *channel;
	char id[ID_SIZE];          /* nobody else can guess it */
	char user[PASS_USER_SIZE]; /* whose token it came with */
	struct buf backlog;        /* events that wait for the connection */
};

/* ---- out ---- */

static void on_drained(struct exchange *exchange, void *arg)
{
	struct talk *self = arg;

	if (self->backlog.size &&
	    http_stream_send(exchange, self->backlog.data, self->backlog.size))
		buf_finish(&self->backlog);
}

static bool send_event(void *arg, const char *text, size_t size, bool must)
{
	struct talk *self = arg;
	owned(buf_finish) struct buf event = {0};

	if (!must && self->backlog.size + size > BACKLOG_MAX)
		return false;
	buf_text(&event, "event: message\ndata: ");
	buf_add(&event, text, size);
	buf_text(&event, "\n\n");
	if (self->backlog.size ||
	    !http_stream_send(self->exchange, event.data, event.size))
		buf_add(&self->backlog, event.data, event.size);
	return true;
}

static size_t waiting(void *arg)
{
	const struct talk *self = arg;

	return self->backlog.size;
}

static void who(void *arg, struct server_context *context)
{
	const struct talk *self = arg;

	who_find(self->owner->who, self->posting, context);
}

/* ---- beginning and end ---- */

static void on_gone(struct exchange *exchange, void *arg)
{
	struct talk *self = arg;

	(void)exchange;
	LIST_REMOVE(self, link);
	channel_destroy(&self->channel);
	buf_finish(&self->backlog);
	free(self);
}

static void name_it(struct talk *self)
{
	unsigned char bytes[ID_BYTES];

	randombytes_buf(bytes, sizeof bytes);
	sodium_bin2hex(self->id, sizeof self->id, bytes, sizeof bytes);
	snprintf(self->user, sizeof self->user, "%s", http_user(self->exchange));
}

static void tell_endpoint(struct talk *self)
{
	owned(buf_finish) struct buf event = {0};

	buf_printf(&event, "event: endpoint\ndata: %s?" PARAMETER "=%s\n\n",
		   http_path(self->exchange), self->id);
	if (!http_stream_send(self->exchange, event.data, event.size))
		buf_add(&self->backlog, event.data, event.size);
}

void sse_open(struct sses *self, struct exchange *exchange)
{
	struct talk *talk = xcalloc(1, sizeof *talk);

	talk->owner = self;
	talk->exchange = exchange;
	name_it(talk);
	talk->channel = channel_create(
	    self->channels,
	    &(struct channel_link){
		.send = send_event, .waiting = waiting, .who = who, .arg = talk});
	LIST_INSERT_HEAD(&self->all, talk, link);
	http_on_gone(exchange, on_gone, talk);
	http_on_drained(exchange, on_drained, talk);
	http_stream(exchange, "");
	tell_endpoint(talk);
}

/* ---- in ---- */

bool sse_is_named(struct exchange *exchange)
{
	char id[ID_SIZE];

	return http_query(exchange, PARAMETER, id, sizeof id);
}

static struct talk *find(const struct sses *self, struct exchange *exchange)
{
	char id[ID_SIZE];
	struct talk *talk;

	if (!http_query(exchange, PARAMETER, id, sizeof id) ||
	    strlen(id) != ID_SIZE - 1)
		return NULL;
	LIST_FOREACH(talk, &self->all, link)
	if (sodium_memcmp(talk->id, id, ID_SIZE) == 0 &&
	    strcmp(talk->user, http_user(exchange)) == 0)
		return talk;
	return NULL;
}

void sse_post(struct sses *self, struct exchange *exchange)
{
	struct talk *talk = find(self, exchange);
	size_t size;
	const char *text = http_body(exchange, &size);
	json_auto_t *message = NULL;
	struct err err;

	if (!talk) {
		http_error(exchange, 404, "",
			   "no such conversation: begin one by a GET");
		return;
	}
	if (json_parse(&message, text, size, &err) < 0) {
		http_error(exchange, 400, "", "Parse error: %s", err.msg);
		return;
	}
	talk->posting = exchange;
	channel_take_value(talk->channel, message);
	talk->posting = NULL;
	http_reply(exchange, 202, "", "text/plain", "Accepted", 8);
}

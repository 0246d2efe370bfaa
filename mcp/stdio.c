// SPDX-License-Identifier: MIT
#include "mcp/stdio.h"

#include <stdlib.h>
#include <string.h>

#include "mcp/lines.h"
#include "mcp/relay.h"
#include "wire/json.h"
#include "wire/log.h"
#include "wire/mem.h"

enum {
	ASK_AGAIN_US = 50 * 1000, /* while the other one is still starting */
	ASK_FOR_US = 30 * 1000 * 1000,
	WAITING_MAX = 1 << 20, /* bytes on their way out while answers are taken */
};

struct stdio {
	struct loop *loop; /* borrowed, like the next two */
	struct channels *channels;
	const char *user;
	struct stdio_host host;
	struct lines *lines;
	struct channel *channel;
	struct relay *relay; /* to who has the workspaces, or NULL */
	json_t *kept;        /* owned: messages until it is known who has them */
	struct loop_timer again;
	int64_t give_up_us;
	bool input_over, broken, told;
};

static const char subject[] = "stdio";

/* ---- the end ---- */

static bool is_over(const struct stdio *self)
{
	return self->broken ||
	       (self->input_over && !lines_waiting(self->lines) &&
		!channel_open(self->channel) && !json_array_size(self->kept) &&
		!(self->relay && relay_open(self->relay)));
}

static void look_whether_over(struct stdio *self)
{
	if (self->told || !is_over(self))
		return;
	self->told = true;
	self->host.over(self->host.arg);
}

static void on_end(void *arg, bool broken)
{
	struct stdio *self = arg;

	self->input_over = true;
	self->broken |= broken;
	channel_hang_up(self->channel);
	look_whether_over(self);
}

static void on_drained(void *arg)
{
	struct stdio *self = arg;

	if (self->relay)
		relay_pause(self->relay, false);
	look_whether_over(self);
}

static void on_idle(void *arg)
{
	look_whether_over(arg);
}

/* ---- with another one ---- */

static void on_relayed(void *arg, const char *text, size_t size)
{
	struct stdio *self = arg;

	lines_send(self->lines, text, size, true);
	if (lines_waiting(self->lines) > WAITING_MAX)
		relay_pause(self->relay, true);
	look_whether_over(self);
}

static bool send_line(void *arg, const char *text, size_t size, bool must)
{
	struct stdio *self = arg;

	return lines_send(self->lines, text, size, must);
}

static void on_relay_gone(void *arg, json_t *answers)
{
	struct stdio *self = arg;

	log_info(subject, "the other Vivarium has gone; %zu unanswered",
		 json_array_size(answers));
	for (size_t i = 0; i < json_array_size(answers); i++) {
		owned(buf_finish) struct buf text = {0};

		json_write(&text, json_array_get(answers, i));
		lines_send(self->lines, text.data, text.size, true);
	}
	relay_destroy(&self->relay);
	look_whether_over(self);
}

static void hand_on(struct stdio *self, json_t *message)
{
	struct err err;

	if (relay_send(self->relay, channel_hello(self->channel),
		       channel_level(self->channel), message, &err) < 0)
		channel_fail(self->channel, message, &err);
}

/* ---- who has the workspaces ---- */

static int find_workspaces(struct stdio *self, struct err *err)
{
	const struct relay_owner owner = {
	    .answer = on_relayed, .gone = on_relay_gone, .arg = self};
	struct err ignored;

	if (self->channels->workspaces || self->host.settle(self->host.arg, err) == 0)
		return 0;
	if (err->kind != ERR_BUSY)
		return -1;
	if (relay_create(&self->relay, self->loop, self->host.own_dir, self->user,
			 &owner, &ignored) < 0)
		return -1;
	log_info(subject, "%.*s: handing on to it", (int)strcspn(err->msg, ";"),
		 err->msg);
	return 0;
}

static void take_again(struct stdio *self, json_t *message, const struct err *failure)
{
	if (failure)
		channel_fail(self->channel, message, failure);
	else if (self->relay)
		hand_on(self, message);
	else
		channel_take_value(self->channel, message);
}

static void look_again(void *arg);

/* Finds out who has them, and gives him what was kept. */
static void find_now(struct stdio *self)
{
	struct err err;
	int found = find_workspaces(self, &err);

	if (found < 0 && err.kind == ERR_BUSY && loop_now_us() < self->give_up_us) {
		loop_timer_start(self->loop, &self->again, ASK_AGAIN_US, look_again,
				 self);
		return;
	}
	if (found < 0)
		log_error(subject, "%s", err.msg);
	json_auto_t *kept = self->kept;
	self->kept = json_array();
	for (size_t i = 0; i < json_array_size(kept); i++)
		take_again(self, json_array_get(kept, i), found < 0 ? &err : NULL);
	look_whether_over(self);
}

static void look_again(void *arg)
{
	find_now(arg);
}

static bool on_divert(void *arg, json_t *message)
{
	struct stdio *self = arg;
	bool is_looking = json_array_size(self->kept) > 0;
	const struct err full = {ERR_LIMIT, 0, "too much waits for the first call"};

	if (self->channels->workspaces)
		return false;
	if (!self->relay && !is_looking && !json_is_array(message) &&
	    !(json_object_get(message, "id") && json_object_get(message, "method")))
		return false; /* about nothing that anybody has */
	if (self->relay) {
		hand_on(self, message);
		return true;
	}
	if (json_array_size(self->kept) >= CHANNEL_OPEN_MAX) {
		channel_fail(self->channel, message, &full);
		return true;
	}
	json_array_append(self->kept, message);
	if (!is_looking) { /* not at once: what was read before is answered first */
		self->give_up_us = loop_now_us() + ASK_FOR_US;
		loop_timer_start(self->loop, &self->again, 1, look_again, self);
	}
	return true;
}

/* ---- here ---- */

static size_t waiting(void *arg)
{
	const struct stdio *self = arg;

	return lines_waiting(self->lines);
}

static void who(void *arg, struct server_context *context)
{
	struct stdio *self = arg;

	if (workspaces_local(context->workspaces, self->user, &context->workspace,
			     &context->refusal) < 0)
		context->workspace = NULL;
}

static void on_line(void *arg, const char *text, size_t size)
{
	struct stdio *self = arg;

	channel_take(self->channel, text, size);
}

static void on_too_long(void *arg)
{
	struct stdio *self = arg;

	channel_refuse_long(self->channel);
}

int stdio_create(struct stdio **out, struct loop *loop, int in, int out_fd,
		 const char *user, struct channels *channels,
		 const struct stdio_host *host, struct err *err)
{
	struct stdio *self = xcalloc(1, sizeof *self);
	const struct lines_owner owner = {.line = on_line,
					  .too_long = on_too_long,
					  .end = on_end,
					  .drained = on_drained,
					  .arg = self};

	*self = (struct stdio){.loop = loop,
			       .channels = channels,
			       .user = user,
			       .host = *host,
			       .kept = json_array()};
	self->channel =
	    channel_create(channels, &(struct channel_link){.send = send_line,
							    .waiting = waiting,
							    .who = who,
							    .divert = on_divert,
							    .idle = on_idle,
							    .arg = self});
	if (lines_create(&self->lines, loop, in, out_fd, LINES_IN_MAX, &owner, err) <
	    0) {
		stdio_destroy(&self);
		return -1;
	}
	*out = self;
	return 0;
}

void stdio_destroy(struct stdio **self)
{
	struct stdio *dead = take(self);

	if (!dead)
		return;
	loop_timer_stop(&dead->again);
	relay_destroy(&dead->relay);
	channel_destroy(&dead->channel);
	lines_destroy(&dead->lines);
	json_decref(dead->kept);
	free(dead);
}

bool stdio_busy(const struct stdio *self)
{
	return !self->broken &&
	       (lines_waiting(self->lines) || channel_open(self->channel));
}

bool stdio_over(const struct stdio *self)
{
	return self->told;
}

// SPDX-License-Identifier: MIT
/* The Jupyter side of a kernel: its sockets, the probing at its start. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "kernelmgr/kernel_impl.h"
#include "wire/connfile.h"
#include "wire/log.h"
#include "wire/mem.h"

enum {
	PROBE_EVERY_US = 100 * 1000,
};

/* A kernel asks on stdin whom it knows from shell: both connections have one name. */
#define IDENTITY "vivarium"

void kernel_probe(void *arg)
{
	struct kernel *self = arg;
	struct err err;

	if (jmsg_send(&self->session, self->sockets[KERNEL_SHELL],
		      "kernel_info_request", json_object(), self->probe_id, &err) < 0)
		log_warn(self->name, "probe: %s", err.msg);
	if (self->state == KERNEL_PROBING)
		loop_timer_start(self->place->loop, &self->probe, PROBE_EVERY_US,
				 kernel_probe, self);
}

/* A kernel is there when it answers on shell and we hear its broadcasts: a
 * subscription takes a moment to arrive, and what is sent before is lost. */
static void note_probe(struct kernel *self, enum kernel_channel channel,
		       const struct jmsg *message)
{
	if (channel == KERNEL_IOPUB)
		self->iopub_heard = true;
	else if (strcmp(message->type, "kernel_info_reply") == 0)
		self->probe_answered = true;
	if (!self->probe_answered || !self->iopub_heard || self->restoring)
		return;
	loop_timer_stop(&self->probe);
	kernel_set_state(self, KERNEL_IDLE, "answers");
	self->owner.ready(self->owner.arg);
}

static void receive(struct kernel *self, enum kernel_channel channel)
{
	owned(frames_finish) struct frames frames = {0};
	owned(jmsg_finish) struct jmsg message = {0};
	struct err err;

	self->messages++;
	if (zsock_recv(self->sockets[channel], &frames, &err) < 0 ||
	    jmsg_read(&message, self->session.key, &self->replays[channel], frames.at,
		      frames.count, &err) < 0) {
		self->dropped++;
		log_debug(self->name, "dropped %s", err.msg);
		return;
	}
	if (channel == KERNEL_IOPUB)
		lastwords_note(&self->last_words, &message);
	if (self->state == KERNEL_PROBING || self->state == KERNEL_RESTORING)
		note_probe(self, channel, &message);
	else if (strcmp(message.type, "kernel_info_reply") != 0)
		self->owner.message(channel, &message, self->owner.arg);
}

static void on_shell(struct zsock *zsock, void *arg)
{
	(void)zsock;
	receive(arg, KERNEL_SHELL);
}

static void on_iopub(struct zsock *zsock, void *arg)
{
	(void)zsock;
	receive(arg, KERNEL_IOPUB);
}

static void on_control_channel(struct zsock *zsock, void *arg)
{
	(void)zsock;
	receive(arg, KERNEL_CONTROL);
}

static void on_stdin(struct zsock *zsock, void *arg)
{
	(void)zsock;
	receive(arg, KERNEL_STDIN);
}

static int connect_one(struct kernel *self, enum kernel_channel channel,
		       struct err *err)
{
	static const struct {
		enum connfile_port port;
		enum zsock_type type;
		zsock_fn *readable;
	} channels[] = {
	    [KERNEL_SHELL] = {CONN_SHELL, ZSOCK_DEALER, on_shell},
	    [KERNEL_IOPUB] = {CONN_IOPUB, ZSOCK_SUB, on_iopub},
	    [KERNEL_CONTROL] = {CONN_CONTROL, ZSOCK_DEALER, on_control_channel},
	    [KERNEL_STDIN] = {CONN_STDIN, ZSOCK_DEALER, on_stdin},
	};
	char path[PATH_MAX + 16];

	if (connfile_path(path, sizeof path, self->runtime_dir, channels[channel].port,
			  err) < 0)
		return -1;
	return zsock_connect(&self->sockets[channel], self->place->loop,
			     &(struct zsock_options){
				 .type = channels[channel].type,
				 .path = path,
				 .identity = IDENTITY,
				 .message_max = JMSG_FRAME_MAX,
			     },
			     channels[channel].readable, self, err);
}

void kernel_connect(struct kernel *self)
{
	struct err err;

	for (int i = 0; i < (int)COUNT_OF(self->sockets); i++)
		if (connect_one(self, (enum kernel_channel)i, &err) < 0) {
			snprintf(self->death.words, sizeof self->death.words,
				 "could not be reached: %s", err.msg);
			kernel_kill(self);
			return;
		}
	kernel_set_state(self, KERNEL_PROBING, "sockets bound");
	kernel_probe(self);
}

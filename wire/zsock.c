// SPDX-License-Identifier: MIT
#include "wire/zsock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "wire/mem.h"

/* Fairness: then yield to other fds.  By time, since a message may cost twenty
 * microseconds or a thousand, and an HTTP request takes several turns of the loop. */
enum { TURN_US = 1000 };

struct zsock {
	struct loop *loop;
	void *zmq;
	struct loop_watch *watch;
	struct loop_timer recheck;
	zsock_fn *readable;
	void *arg;
	bool *gone; /* set true if destroyed during dispatch */
};

void *zsock_context_create(void)
{
	return zmq_ctx_new();
}

void zsock_context_destroy(void **context)
{
	void *dead = take(context);

	if (dead)
		zmq_ctx_term(dead);
}

static bool has_input(const struct zsock *self)
{
	int events = 0;
	size_t size = sizeof events;

	return zmq_getsockopt(self->zmq, ZMQ_EVENTS, &events, &size) == 0 &&
	       (events & ZMQ_POLLIN);
}

static void dispatch(void *arg)
{
	struct zsock *self = arg;
	bool gone = false;

	if (self->gone)
		return; /* already on the stack */
	self->gone = &gone;
	int64_t end_us = loop_now_us() + TURN_US;
	while (has_input(self) && loop_now_us() < end_us) {
		self->readable(self, self->arg);
		if (gone)
			return;
	}
	self->gone = NULL;
	if (has_input(self))
		loop_timer_start(self->loop, &self->recheck, 1, dispatch, self);
}

static void schedule_recheck(struct zsock *self)
{
	loop_timer_start(self->loop, &self->recheck, 1, dispatch, self);
}

static int set_int(void *zmq, int option, int value)
{
	return zmq_setsockopt(zmq, option, &value, sizeof value);
}

static int open_socket(struct zsock *self, void *context,
		       const struct zsock_options *options)
{
	static const int types[] = {[ZSOCK_DEALER] = ZMQ_DEALER,
				    [ZSOCK_SUB] = ZMQ_SUB,
				    [ZSOCK_PULL] = ZMQ_PULL};
	int64_t message_max = options->message_max > 0 ? options->message_max : -1;

	self->zmq = zmq_socket(context, types[options->type]);
	if (!self->zmq || set_int(self->zmq, ZMQ_LINGER, 0) < 0 ||
	    set_int(self->zmq, ZMQ_RCVHWM, options->receive_max) < 0 ||
	    zmq_setsockopt(self->zmq, ZMQ_MAXMSGSIZE, &message_max,
			   sizeof message_max) < 0)
		return -1;
	if (options->type == ZSOCK_SUB &&
	    zmq_setsockopt(self->zmq, ZMQ_SUBSCRIBE, "", 0) < 0)
		return -1;
	return zmq_connect(self->zmq, options->endpoint);
}

int zsock_connect(struct zsock **out, struct loop *loop, void *context,
		  const struct zsock_options *options, zsock_fn *readable, void *arg,
		  struct err *err)
{
	owned(zsock_destroy) struct zsock *self = xcalloc(1, sizeof *self);
	int fd;
	size_t size = sizeof fd;

	*self = (struct zsock){.loop = loop, .readable = readable, .arg = arg};
	if (open_socket(self, context, options) < 0 ||
	    zmq_getsockopt(self->zmq, ZMQ_FD, &fd, &size) < 0)
		return err_set(err, ERR_SYSTEM, "connect %s", options->endpoint);

	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0); /* the loop closes its copy */
	if (copy < 0)
		return err_set(err, ERR_SYSTEM, "duplicate the fd of %s",
			       options->endpoint);
	if (loop_watch(loop, copy, dispatch, self, &self->watch, err) < 0)
		return err_wrap(err, "watch %s", options->endpoint);
	schedule_recheck(self); /* input may predate the watch */
	*out = take(&self);
	return 0;
}

void zsock_destroy(struct zsock **self)
{
	struct zsock *dead = take(self);

	if (!dead)
		return;
	if (dead->gone)
		*dead->gone = true;
	loop_timer_stop(&dead->recheck);
	loop_unwatch(&dead->watch);
	if (dead->zmq)
		zmq_close(dead->zmq);
	free(dead);
}

int zsock_send(struct zsock *self, const struct frame *frames, size_t count,
	       struct err *err)
{
	int rc = 0;

	/* Only the first frame can find the peer full: a message goes whole. */
	for (size_t i = 0; i < count && rc >= 0; i++)
		rc = zmq_send(self->zmq, frames[i].data, frames[i].size,
			      ZMQ_DONTWAIT | (i + 1 < count ? ZMQ_SNDMORE : 0));
	schedule_recheck(self);
	return rc < 0 ? err_set(err, ERR_SYSTEM, "send %zu frames", count) : 0;
}

void frames_finish(struct frames *self)
{
	zmq_msg_t *messages = self->storage;

	for (size_t i = 0; i < self->count; i++)
		zmq_msg_close(&messages[i]);
	free(self->storage);
	self->storage = NULL;
	self->count = 0;
}

/* Receives one frame; returns 1 when more follow, 0 at the last, -1 on failure. */
static int recv_frame(struct zsock *self, zmq_msg_t *message)
{
	zmq_msg_init(message);
	if (zmq_msg_recv(message, self->zmq, ZMQ_DONTWAIT) >= 0)
		return zmq_msg_more(message);
	zmq_msg_close(message);
	return -1;
}

static int drop_rest(struct zsock *self)
{
	zmq_msg_t message;
	int more;

	while ((more = recv_frame(self, &message)) >= 0) {
		zmq_msg_close(&message);
		if (!more)
			return 0;
	}
	return -1;
}

int zsock_recv(struct zsock *self, struct frames *out, struct err *err)
{
	zmq_msg_t *messages = xcalloc(FRAMES_MAX, sizeof *messages);
	int more = 1;

	*out = (struct frames){.storage = messages};
	while (more > 0 && out->count < FRAMES_MAX) {
		zmq_msg_t *message = &messages[out->count];

		more = recv_frame(self, message);
		if (more < 0)
			return err_set(err, ERR_SYSTEM, "receive");
		out->at[out->count++] =
		    (struct frame){zmq_msg_data(message), zmq_msg_size(message)};
	}
	if (more > 0 && drop_rest(self) < 0)
		return err_set(err, ERR_SYSTEM, "receive");
	if (more > 0)
		return err_set(err, ERR_LIMIT, "a message of more than %d frames",
			       FRAMES_MAX);
	return 0;
}

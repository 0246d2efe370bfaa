// SPDX-License-Identifier: MIT
#include "wire/zsock.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "wire/mem.h"
#include "wire/sender.h"
#include "wire/unixsock.h"

enum {
	/* Fairness: then yield to other fds.  By time, since a message may cost twenty
	 * microseconds or a thousand, and an HTTP request takes several turns of the
	 * loop. */
	TURN_US = 1000,
	READ_SIZE = 64 * 1024,
	RETRY_US = 50 * 1000, /* until the peer is there */
	UNSENT_MAX = 64 << 20,
};

struct zsock {
	struct loop *loop;
	struct sockaddr_un peer;
	enum zsock_type type;
	const char *identity;
	int fd; /* the watch's */
	struct loop_watch *watch;
	struct loop_timer recheck, connecting;
	zsock_fn *readable;
	void *arg;
	struct zmtp in;
	bool whole;       /* a message waits in it to be taken */
	struct buf read;  /* bytes as they came, */
	size_t taken;     /* so many of them are in it */
	struct buf queue; /* messages that wait for the peer's greeting */
	struct sender out;
	bool *gone; /* set true if destroyed during dispatch */
};

static void connect_peer(void *arg);
static void dispatch(void *arg);

/* ---- sending ---- */

/* Nothing but the greeting may come before the peer's own. */
static void send_queue(struct zsock *self)
{
	if (self->in.state != ZMTP_OPEN || !self->queue.size)
		return;
	buf_add(&self->out.unsent, self->queue.data, self->queue.size);
	buf_finish(&self->queue);
	sender_push(&self->out);
}

int zsock_send(struct zsock *self, const struct frame *frames, size_t count,
	       struct err *err)
{
	size_t size = self->queue.size + self->out.unsent.size;

	for (size_t i = 0; i < count; i++)
		size += frames[i].size;
	if (size > UNSENT_MAX)
		return err_set(err, ERR_LIMIT,
			       "the kernel does not read: %zu bytes wait", size);
	for (size_t i = 0; i < count; i++)
		zmtp_frame(&self->queue, frames[i].data, frames[i].size, i + 1 < count);
	send_queue(self);
	return 0;
}

/* ---- connecting ---- */

static void retry(struct zsock *self)
{
	loop_timer_start(self->loop, &self->connecting, RETRY_US, connect_peer, self);
}

/* The connection is over.  One that never was begins again. */
static void end(struct zsock *self)
{
	bool again = self->in.state != ZMTP_OPEN && self->in.state != ZMTP_BROKEN;
	size_t message_max = self->in.message_max;

	loop_timer_stop(&self->connecting);
	sender_close(&self->out);
	loop_unwatch(&self->watch);
	zmtp_finish(&self->in);
	buf_finish(&self->read);
	self->taken = 0;
	self->in = (struct zmtp){.message_max = message_max, .state = ZMTP_BROKEN};
	if (!again)
		return;
	self->in.state = ZMTP_GREETING;
	retry(self);
}

static void greet(struct zsock *self)
{
	sender_open(&self->out, self->loop, self->fd);
	zmtp_greet(&self->out.unsent, self->type == ZSOCK_SUB ? "SUB" : "DEALER",
		   self->identity);
	sender_push(&self->out);
}

static void connect_peer(void *arg)
{
	struct zsock *self = arg;
	struct err err;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || unixsock_connect(fd, self->peer.sun_path) < 0) {
		close_fd(&fd);
		retry(self);
		return;
	}
	unixsock_refuse_descriptors(fd);
	self->fd = fd;
	if (loop_watch(self->loop, fd, dispatch, self, &self->watch, &err) < 0)
		retry(self);
	else
		greet(self);
}

int zsock_connect(struct zsock **out, struct loop *loop,
		  const struct zsock_options *options, zsock_fn *readable, void *arg,
		  struct err *err)
{
	owned(zsock_destroy) struct zsock *self = xcalloc(1, sizeof *self);

	*self = (struct zsock){
	    .loop = loop,
	    .peer.sun_family = AF_UNIX,
	    .type = options->type,
	    .identity = options->identity ? options->identity : "",
	    .fd = -1,
	    .readable = readable,
	    .arg = arg,
	    .in.message_max = options->message_max,
	};
	if (strlen(options->path) >= sizeof self->peer.sun_path)
		return err_set(err, ERR_LIMIT,
			       "the path of a socket has more than %zu bytes: %.100s",
			       sizeof self->peer.sun_path - 1, options->path);
	memcpy(self->peer.sun_path, options->path, strlen(options->path));
	if (options->type == ZSOCK_SUB)
		zmtp_subscribe_to_all(&self->queue);
	connect_peer(self);
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
	loop_timer_stop(&dead->connecting);
	sender_close(&dead->out);
	loop_unwatch(&dead->watch);
	zmtp_finish(&dead->in);
	buf_finish(&dead->read);
	buf_finish(&dead->queue);
	free(dead);
}

/* ---- receiving ---- */

/* Takes what was read into the message; true when that is whole. */
static bool take_read(struct zsock *self)
{
	size_t used;

	if (self->taken == self->read.size)
		return false;
	self->whole = zmtp_read(&self->in, self->read.data + self->taken,
				self->read.size - self->taken, &used);
	self->taken += used;
	send_queue(self);
	return self->whole;
}

/* Reads more, all before having been taken; false if there is nothing yet, or no more.
 */
static bool read_more(struct zsock *self)
{
	ssize_t len = 0;

	self->read.size = self->taken = 0;
	if (self->in.state != ZMTP_BROKEN && self->watch)
		len = recv(self->fd, buf_reserve(&self->read, READ_SIZE), READ_SIZE,
			   MSG_DONTWAIT);
	if (len > 0)
		self->read.size = (size_t)len;
	else if (len < 0 && (errno == EAGAIN || errno == EINTR))
		buf_finish(&self->read);
	else
		end(self);
	return len > 0;
}

/* True when a message is whole.  Where its turn ends before, all that was read is
 * taken, and what lies in the socket wakes us again. */
static bool fetch(struct zsock *self, int64_t end_us)
{
	while (!take_read(self))
		if (loop_now_us() >= end_us || !read_more(self))
			return false;
	return true;
}

static void dispatch(void *arg)
{
	struct zsock *self = arg;
	bool gone = false;

	if (self->gone)
		return; /* already on the stack */
	self->gone = &gone;
	int64_t end_us = loop_now_us() + TURN_US;
	bool more = self->whole || fetch(self, end_us);
	while (more && loop_now_us() < end_us) {
		self->readable(self, self->arg);
		if (gone)
			return;
		more = self->whole || fetch(self, end_us);
	}
	self->gone = NULL;
	if (more)
		loop_timer_start(self->loop, &self->recheck, 1, dispatch, self);
}

void frames_finish(struct frames *self)
{
	free(self->storage);
	self->storage = NULL;
	self->count = 0;
}

int zsock_recv(struct zsock *self, struct frames *out, struct err *err)
{
	*out = (struct frames){0};
	if (!self->whole)
		return err_set(err, ERR_SYSTEM, "no message has arrived");
	self->whole = false;
	if (self->in.too_long) {
		zmtp_next(&self->in);
		return err_set(err, ERR_LIMIT,
			       "a message of more than %d frames or %zu bytes",
			       FRAMES_MAX, self->in.message_max);
	}
	out->count = self->in.count;
	out->storage = take(&self->in.body.data);
	for (size_t i = 0; i < out->count; i++) {
		size_t start = i ? self->in.ends[i - 1] : 0;

		out->at[i] =
		    (struct frame){out->storage + start, self->in.ends[i] - start};
	}
	self->in.body = (struct buf){0};
	zmtp_next(&self->in);
	return 0;
}

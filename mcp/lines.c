// SPDX-License-Identifier: MIT
/*
 * An epoll descriptor of its own is what the loop watches: it tells of the reader's end
 * of a pipe, can be told to look away, and closes nothing by itself.  What it refuses
 * (files, /dev/null) is always ready.
 */
#include "mcp/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wire/buf.h"
#include "wire/mem.h"
#include "wire/sendq.h"

enum {
	READ_PIECE = 64 * 1024,
	PIECES_A_TURN = 16,         /* written */
	WAITING_MAX = 1 << 20,      /* bytes that wait while input is read */
	ROOM_KEPT = 4 * READ_PIECE, /* by an empty buffer */
};

struct end { /* one of the two descriptors */
	int fd;
	uint32_t events; /* watched for */
	bool always;     /* ready: epoll refuses it */
	bool over;
};

struct lines {
	struct loop *loop; /* borrowed */
	struct lines_owner owner;
	size_t line_max;
	struct loop_watch *watch;
	int epoll; /* borrowed from watch */
	struct end in, out;
	struct loop_timer again; /* reads on where nothing wakes us */
	struct buf got;
	size_t looked_at; /* bytes of got without a newline */
	bool skipping, paused;
	bool ended;      /* nothing more is to be read */
	bool busy, dead; /* a callback is below us; freed when it returns */
	struct sendq queue;
};

static void on_again(void *arg);

/* A description of our own where that can be had: the other one may be shared with
 * others, who do not expect it not to block. */
static int unblock(int *fd, int flags)
{
	char path[32];
	struct stat st;

	if (fstat(*fd, &st) < 0)
		return -1;
	if (S_ISREG(st.st_mode))
		return 0;
	snprintf(path, sizeof path, "/proc/self/fd/%d", *fd);
	int own = S_ISSOCK(st.st_mode)
		      ? -1
		      : open(path, flags | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	if (own < 0)
		return fcntl(*fd, F_SETFL, fcntl(*fd, F_GETFL) | O_NONBLOCK);
	close_fd(fd);
	*fd = own;
	return 0;
}

/* events 0: not at all, as a hang-up is told whatever one asks for. */
static int watch_for(struct lines *self, struct end *end, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = end};
	bool is_in = end->events != 0;

	if (end->always || end->over || end->events == events)
		return 0;
	end->events = events;
	return epoll_ctl(self->epoll,
			 !is_in   ? EPOLL_CTL_ADD
			 : events ? EPOLL_CTL_MOD
				  : EPOLL_CTL_DEL,
			 end->fd, &event);
}

static int find_kind(struct lines *self, struct end *end, struct err *err)
{
	if (watch_for(self, end, EPOLLERR) == 0)
		return 0;
	end->always = errno == EPERM;
	return end->always ? 0 : err_set(err, ERR_SYSTEM, "watch fd %d", end->fd);
}

static void finish_end(struct lines *self, struct end *end)
{
	watch_for(self, end, 0);
	end->over = true;
	close_fd(&end->fd);
}

/* Reads, or looks away; what is in the buffer already counts as input. */
static void settle(struct lines *self)
{
	bool reading =
	    !self->in.over && !self->paused && self->queue.size <= WAITING_MAX;

	watch_for(self, &self->in, reading && !self->ended ? EPOLLIN : 0);
	/* an error is told in either case */
	watch_for(self, &self->out, self->queue.size ? EPOLLOUT : EPOLLERR);
	if ((reading &&
	     (self->in.always || self->ended || self->got.size > self->looked_at)) ||
	    (self->queue.size && self->out.always))
		loop_timer_start(self->loop, &self->again, 1, on_again, self);
}

/* ---- out ---- */

static void on_broken(struct lines *self)
{
	finish_end(self, &self->out);
	sendq_finish(&self->queue);
	self->owner.end(self->owner.arg, true);
}

/* False once nobody reads. */
static bool flush(struct lines *self)
{
	struct piece piece;

	for (int i = 0; i < PIECES_A_TURN && sendq_peek(&self->queue, &piece); i++) {
		ssize_t n = write(self->out.fd, piece.data, piece.size);

		if (n < 0)
			return errno == EAGAIN || errno == EINTR;
		sendq_drop(&self->queue, (size_t)n);
	}
	return true;
}

bool lines_send(struct lines *self, const char *text, size_t size, bool must)
{
	if (self->out.over)
		return true; /* nobody misses it */
	if (!must && sendq_full(&self->queue, size + 1, LINES_OUT_MAX))
		return false;
	sendq_add(&self->queue, (const void *[]){text, "\n"}, (size_t[]){size, 1}, 2);
	if (!self->busy)
		settle(self);
	return true;
}

size_t lines_waiting(const struct lines *self)
{
	return self->queue.size;
}

/* ---- in ---- */

static bool is_blank(const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (!strchr(" \t\r", text[i]))
			return false;
	return true;
}

/* A line has come, or the rest of one that was too long. */
static void hand_over(struct lines *self, const char *text, size_t size)
{
	bool is_rest = self->skipping;

	self->skipping = false;
	if (!is_rest && size > self->line_max)
		self->owner.too_long(self->owner.arg);
	else if (!is_rest && !is_blank(text, size))
		self->owner.line(self->owner.arg, text, size);
}

static bool takes(const struct lines *self)
{
	return !self->dead && !self->paused && self->queue.size <= WAITING_MAX;
}

static void take_lines(struct lines *self)
{
	size_t from = 0;
	const char *end = NULL;

	while (takes(self) && self->got.size > from) {
		char *start = self->got.data + from;

		end = memchr(start + self->looked_at, '\n',
			     self->got.size - from - self->looked_at);
		self->looked_at = end ? 0 : self->got.size - from;
		if (!end)
			break;
		from += (size_t)(end - start) + 1;
		hand_over(self, start, (size_t)(end - start));
	}
	if (!self->dead)
		buf_drop(&self->got, from);
}

/* What has come of a line that is too long already is not kept. */
static void skip(struct lines *self)
{
	if (self->dead || self->looked_at != self->got.size)
		return;
	if (self->skipping || self->got.size > self->line_max) {
		if (!self->skipping)
			self->owner.too_long(self->owner.arg);
		self->skipping = true;
		self->got.size = self->looked_at = 0;
	}
	if (!self->got.size && self->got.room > ROOM_KEPT)
		buf_finish(&self->got);
}

static void on_input_end(struct lines *self)
{
	finish_end(self, &self->in);
	if (self->got.size) /* a last line need not be ended */
		hand_over(self, self->got.data, self->got.size);
	self->got.size = self->looked_at = 0;
	if (!self->dead)
		self->owner.end(self->owner.arg, false);
}

static void read_more(struct lines *self)
{
	char *room = buf_reserve(&self->got, READ_PIECE);
	ssize_t n = read(self->in.fd, room, READ_PIECE);

	if (n > 0)
		self->got.size += (size_t)n;
	take_lines(self);
	skip(self);
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		self->ended = true;
}

/* ---- what the loop calls ---- */

static void release(struct lines *self)
{
	loop_timer_stop(&self->again);
	loop_unwatch(&self->watch);
	close_fd(&self->in.fd);
	close_fd(&self->out.fd);
	buf_finish(&self->got);
	sendq_finish(&self->queue);
	free(self);
}

static void write_some(struct lines *self)
{
	if (self->dead || self->out.over || !self->queue.size)
		return;
	if (!flush(self))
		on_broken(self);
	else if (!self->queue.size && self->owner.drained)
		self->owner.drained(self->owner.arg);
}

/* One turn: write, take what was left over, read. */
static void turn(struct lines *self, bool readable)
{
	self->busy = true;
	write_some(self);
	if (takes(self) && self->got.size)
		take_lines(self);
	if (takes(self) && readable && !self->in.over && !self->ended)
		read_more(self);
	if (takes(self) && self->ended && !self->in.over)
		on_input_end(self);
	self->busy = false;
	if (self->dead)
		release(self);
	else
		settle(self);
}

static void on_again(void *arg)
{
	struct lines *self = arg;

	turn(self, self->in.always);
}

static void on_ready(void *arg)
{
	struct lines *self = arg;
	struct epoll_event events[2];
	int count = epoll_wait(self->epoll, events, 2, 0);
	bool readable = false, broken = false;

	for (int i = 0; i < count; i++)
		if (events[i].data.ptr == &self->in)
			readable = true;
		else
			broken = (events[i].events & (EPOLLERR | EPOLLHUP)) != 0;
	if (broken) { /* reported for ever */
		self->busy = true;
		on_broken(self);
		self->busy = false;
	}
	turn(self, readable);
}

int lines_create(struct lines **out, struct loop *loop, int in, int out_fd,
		 size_t line_max, const struct lines_owner *owner, struct err *err)
{
	owned(lines_destroy) struct lines *self = xcalloc(1, sizeof *self);

	*self = (struct lines){.loop = loop,
			       .owner = *owner,
			       .line_max = line_max,
			       .in.fd = in,
			       .out.fd = out_fd};
	if (unblock(&self->in.fd, O_RDONLY) < 0 || unblock(&self->out.fd, O_WRONLY) < 0)
		return err_set(err, ERR_SYSTEM, "use fds %d and %d", in, out_fd);
	self->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (self->epoll < 0)
		return err_set(err, ERR_SYSTEM, "make an epoll descriptor");
	if (loop_watch(loop, self->epoll, on_ready, self, &self->watch, err) < 0 ||
	    find_kind(self, &self->in, err) < 0 || find_kind(self, &self->out, err) < 0)
		return -1;
	settle(self);
	*out = take(&self);
	return 0;
}

void lines_pause(struct lines *self, bool paused)
{
	self->paused = paused;
	if (!self->busy)
		settle(self);
}

void lines_destroy(struct lines **self)
{
	struct lines *dead = take(self);

	if (!dead)
		return;
	dead->dead = true;
	if (!dead->busy)
		release(dead);
}

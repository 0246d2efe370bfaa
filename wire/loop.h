/*
 * loop - the one event loop.  The only file pair that includes libwebsockets
 * for anything but HTTP.  Single thread; nothing called from here may block.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef WIRE_LOOP_H
#define WIRE_LOOP_H

#include <libwebsockets.h>
#include <stdint.h>

#include "wire/err.h"

enum {
	LOOP_FD_MAX = 4096,   /* lws sizes its tables for it; default is ulimit -n */
	LOOP_HEAD_MAX = 8192, /* head of a request; memory per connection that is
				 sending one, not per idle one */
};

struct loop;
struct loop_watch;
typedef void loop_fn(void *arg);

struct loop_timer { /* embed it; owner stops it before dying */
	lws_sorted_usec_list_t sul;
	loop_fn *fn;
	void *arg;
};

/* read_size: one receive buffer for the whole loop, so the largest single read. */
int loop_create(struct loop **out, size_t read_size, struct err *err) must_check;
/* Borrows the context; only the http files need it. */
struct lws_context *loop_lws(struct loop *self);
void loop_destroy(struct loop **self);
void loop_run(struct loop *self);
void loop_stop(struct loop *self);
/* Counts the rounds, from 1: in each, a descriptor is read at most once. */
unsigned long long loop_round(const struct loop *self);

/* Calls ready(arg) while fd is readable, and once at a hang-up with nothing left to
 * read (reading fails then, perhaps with EBADF).  Consumes fd, also on failure. */
int loop_watch(struct loop *self, int fd, loop_fn *ready, void *arg,
	       struct loop_watch **out, struct err *err) must_check;
/* No more calls of ready(), also from inside it; the fd is closed soon after.
 * NULL-safe, clears the caller's pointer. */
void loop_unwatch(struct loop_watch **watch);

/* Calls fn(arg) once, usec microseconds from now; starting again moves it. */
void loop_timer_start(struct loop *self, struct loop_timer *timer, int64_t usec,
		      loop_fn *fn, void *arg);
void loop_timer_stop(struct loop_timer *timer);

/* Microseconds of the monotonic clock, for deadlines and durations. */
int64_t loop_now_us(void);

#endif

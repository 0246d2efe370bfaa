// SPDX-License-Identifier: MIT
#include "wire/loop.h"

#include <fcntl.h>
#include <unistd.h>

#include "testing.h"

struct probe {
	struct loop *loop;
	struct loop_watch *watch, *other;
	int fd, calls, until;
	char last;
	ssize_t got;
	unsigned long long round; /* of the last call */
};

static void on_readable(void *arg)
{
	struct probe *p = arg;

	p->calls++;
	assert_true(loop_round(p->loop) > p->round); /* one read a round */
	p->round = loop_round(p->loop);
	p->got = read(p->fd, &p->last, 1);
	if (p->got <= 0)
		loop_unwatch(&p->watch);
	if (p->got <= 0 || p->calls == p->until)
		loop_stop(p->loop);
}

static void on_timer(void *arg)
{
	struct probe *p = arg;

	loop_stop(p->loop);
}

static void open_pipe(struct probe *p, int ends[2], loop_fn *fn)
{
	struct err err;

	assert_int_equal(loop_create(&p->loop, 4096, &err), 0);
	assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	p->fd = ends[0];
	assert_int_equal(loop_watch(p->loop, ends[0], fn, p, &p->watch, &err), 0);
}

CASE(what_is_written_wakes_the_watcher)
{
	struct probe p = {.until = 2};
	int ends[2];

	open_pipe(&p, ends, on_readable);
	assert_int_equal(write(ends[1], "ab", 2), 2);
	loop_run(p.loop);
	assert_int_equal(p.calls, 2);
	assert_int_equal(p.last, 'b');
	loop_unwatch(&p.watch);
	close(ends[1]);
	loop_destroy(&p.loop);
}

/* lws closes a raw file at a hang-up by itself: the owner must still hear of it, and
 * may unwatch then, in the callback or later. */
CASE(a_hang_up_is_reported_once)
{
	struct probe p = {.until = 100};
	struct loop_timer timer = {0};
	int ends[2];

	open_pipe(&p, ends, on_readable);
	close(ends[1]);
	loop_timer_start(p.loop, &timer, 2000000, on_timer, &p);
	loop_run(p.loop);
	loop_timer_stop(&timer);
	assert_int_equal(p.calls, 1);
	assert_true(p.got <= 0);
	assert_null(p.watch);
	loop_destroy(&p.loop);
}

static void ignore(void *arg)
{
	struct probe *p = arg;

	p->calls++;
	loop_stop(p->loop);
}

CASE(a_watch_that_outlives_its_hang_up_can_be_dropped)
{
	struct probe p = {0};
	int ends[2];

	open_pipe(&p, ends, ignore);
	close(ends[1]);
	loop_run(p.loop);
	loop_unwatch(&p.watch);
	assert_null(p.watch);
	loop_destroy(&p.loop);
}

static void drop_both(void *arg)
{
	struct probe *p = arg;

	p->calls++;
	loop_unwatch(&p->watch);
	loop_unwatch(&p->other);
	loop_stop(p->loop);
}

CASE(a_callback_may_drop_another_watch)
{
	struct probe p = {0};
	struct err err;
	int a[2], b[2];

	open_pipe(&p, a, drop_both);
	assert_int_equal(pipe2(b, O_CLOEXEC | O_NONBLOCK), 0);
	assert_int_equal(loop_watch(p.loop, b[0], drop_both, &p, &p.other, &err), 0);
	assert_int_equal(write(a[1], "x", 1), 1);
	assert_int_equal(write(b[1], "x", 1), 1);
	loop_run(p.loop);
	struct loop_timer timer = {0};
	loop_timer_start(p.loop, &timer, 50000, on_timer, &p);
	loop_run(p.loop);
	assert_int_equal(p.calls, 1);
	close(a[1]);
	close(b[1]);
	loop_destroy(&p.loop);
}

CASE(a_timer_fires_once_and_can_be_moved)
{
	struct probe p = {0};
	struct loop_timer first = {0}, second = {0};
	struct err err;

	assert_int_equal(loop_create(&p.loop, 4096, &err), 0);
	int64_t start = loop_now_us();
	loop_timer_start(p.loop, &first, 1000, ignore, &p);
	loop_timer_start(p.loop, &first, 60000, ignore, &p);
	loop_timer_start(p.loop, &second, 500000, on_timer, &p);
	loop_run(p.loop);
	assert_int_equal(p.calls, 1);
	assert_true(loop_now_us() - start >= 60000);
	loop_timer_stop(&second);
	loop_destroy(&p.loop);
}

RUN(cmocka_unit_test(what_is_written_wakes_the_watcher),
    cmocka_unit_test(a_hang_up_is_reported_once),
    cmocka_unit_test(a_watch_that_outlives_its_hang_up_can_be_dropped),
    cmocka_unit_test(a_callback_may_drop_another_watch),
    cmocka_unit_test(a_timer_fires_once_and_can_be_moved))

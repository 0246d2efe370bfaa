// SPDX-License-Identifier: MIT
/*
 * Each of these fails when one line of zsock.c is taken out: the re-check after a send
 * (a_send_that_eats_the_wakeup...), at connect and after a full turn
 * (a_backlog_longer_than_one_turn_drains), the copy of the fd (libzmq aborts).
 */
#include "wire/zsock.h"

#include <pthread.h>
#include <unistd.h>
#include <zmq.h>

#include "testing.h"

#define ENDPOINT "ipc://zsock-test.sock"
enum { SECOND = 1000000 };

struct peer {
	void *zmq;
	pthread_t thread;
};

struct probe {
	struct loop *loop;
	void *zmq;
	struct zsock *sock;
	int sent, got, total, window;
	int turns; /* of the loop, seen by a timer */
	bool timed_out;
	struct err last;
};

static void *echo(void *arg)
{
	struct peer *peer = arg;
	void *s = zmq_socket(peer->zmq, ZMQ_ROUTER);
	zmq_msg_t part;

	assert_int_equal(zmq_bind(s, ENDPOINT), 0);
	for (;;) {
		zmq_msg_init(&part);
		if (zmq_msg_recv(&part, s, 0) < 0)
			break;
		zmq_msg_send(&part, s, zmq_msg_more(&part) ? ZMQ_SNDMORE : 0);
	}
	zmq_close(s);
	return NULL;
}

static void start_echo(struct peer *peer)
{
	peer->zmq = zmq_ctx_new();
	pthread_create(&peer->thread, NULL, echo, peer);
}

static void stop_echo(struct peer *peer)
{
	zmq_ctx_shutdown(peer->zmq);
	pthread_join(peer->thread, NULL);
	zmq_ctx_term(peer->zmq);
}

static void timed_out(void *arg)
{
	struct probe *p = arg;

	p->timed_out = true;
	loop_stop(p->loop);
}

static void stop(void *arg)
{
	loop_stop(arg);
}

static void run_for(struct probe *p, int64_t usec, loop_fn *fn, void *arg)
{
	struct loop_timer deadline = {0};

	loop_timer_start(p->loop, &deadline, usec, fn, arg);
	loop_run(p->loop);
	loop_timer_stop(&deadline);
}

static void send_number(struct probe *p)
{
	const struct frame frames[] = {{"head", 4}, {&p->sent, sizeof p->sent}};
	struct err err;

	assert_int_equal(zsock_send(p->sock, frames, 2, &err), 0);
	p->sent++;
}

static void fill_window(struct probe *p)
{
	while (p->sent < p->total && p->sent - p->got < p->window)
		send_number(p);
}

static void count(struct zsock *s, void *arg)
{
	struct probe *p = arg;
	owned(frames_finish) struct frames frames = {0};
	struct err err;
	int number;

	assert_int_equal(zsock_recv(s, &frames, &err), 0);
	assert_int_equal(frames.count, 2);
	assert_memory_equal(frames.at[0].data, "head", 4);
	memcpy(&number, frames.at[1].data, sizeof number);
	assert_int_equal(number, p->got);
	if (++p->got == p->total)
		loop_stop(p->loop);
	fill_window(p);
}

static void destroy_inside(struct zsock *s, void *arg)
{
	struct probe *p = arg;
	owned(frames_finish) struct frames frames = {0};
	struct err err;

	assert_int_equal(zsock_recv(s, &frames, &err), 0);
	p->got++;
	zsock_destroy(&p->sock);
	loop_stop(p->loop);
}

static void open_probe(struct probe *p, enum zsock_type type, const char *endpoint,
		       zsock_fn *fn)
{
	const struct zsock_options options = {.type = type, .endpoint = endpoint};
	struct err err;

	if (!p->zmq)
		p->zmq = zsock_context_create();
	assert_int_equal(loop_create(&p->loop, 4096, &err), 0);
	assert_int_equal(
	    zsock_connect(&p->sock, p->loop, p->zmq, &options, fn, p, &err), 0);
}

static void close_probe(struct probe *p)
{
	zsock_destroy(&p->sock);
	loop_destroy(&p->loop);
	zsock_context_destroy(&p->zmq);
}

static void run_echo(struct probe *p, zsock_fn *fn)
{
	struct peer peer;

	start_echo(&peer);
	open_probe(p, ZSOCK_DEALER, ENDPOINT, fn);
	fill_window(p);
	run_for(p, 20 * SECOND, timed_out, p);
	close_probe(p);
	stop_echo(&peer);
}

CASE(every_reply_arrives)
{
	struct probe p = {.total = 20000, .window = 64};

	run_echo(&p, count);
	assert_false(p.timed_out);
	assert_int_equal(p.got, p.total);
}

CASE(one_at_a_time_never_stalls)
{
	struct probe p = {.total = 2000, .window = 1};

	run_echo(&p, count);
	assert_false(p.timed_out);
	assert_int_equal(p.got, p.total);
}

CASE(a_socket_may_be_destroyed_in_its_callback)
{
	struct probe p = {.total = 100, .window = 100};

	run_echo(&p, destroy_inside);
	assert_false(p.timed_out);
	assert_int_equal(p.got, 1);
}

/* The reply to the first send is in libzmq's mailbox when the second send runs: that
 * send consumes the wake-up, so the fd alone would never become readable. */
CASE(a_send_that_eats_the_wakeup_does_not_stall)
{
	struct probe p = {.total = 2};
	struct peer peer;

	start_echo(&peer);
	open_probe(&p, ZSOCK_DEALER, ENDPOINT, count);
	run_for(&p, SECOND / 5, stop, p.loop); /* let the first re-check pass */
	for (int i = 0; i < 2; i++) {
		send_number(&p);
		usleep(100000);
	}
	run_for(&p, 2 * SECOND, timed_out, &p);
	assert_int_equal(p.got, 2);
	close_probe(&p);
	stop_echo(&peer);
}

static void send_pair(void *push, int number)
{
	assert_int_equal(zmq_send(push, "head", 4, ZMQ_SNDMORE), 4);
	assert_int_equal(zmq_send(push, &number, sizeof number, 0), sizeof number);
}

/* As messages are that cost much. */
static void count_slowly(struct zsock *s, void *arg)
{
	usleep(2000);
	count(s, arg);
}

static struct loop_timer other;

static void see_turn(void *arg)
{
	struct probe *p = arg;

	p->turns++;
	loop_timer_start(p->loop, &other, 1, see_turn, p);
}

/* Nothing is ever sent here, so only the re-check after a full turn keeps going; and
 * all others have their turns meanwhile. */
CASE(a_backlog_longer_than_one_turn_drains)
{
	struct probe p = {.total = 30, .zmq = zsock_context_create()};
	void *push = zmq_socket(p.zmq, ZMQ_PUSH);

	assert_int_equal(zmq_bind(push, "inproc://backlog"), 0);
	open_probe(&p, ZSOCK_PULL, "inproc://backlog", count_slowly);
	for (int n = 0; n < p.total; n++)
		send_pair(push, n);
	p.sent = p.total;
	see_turn(&p);
	run_for(&p, 20 * SECOND, timed_out, &p);
	loop_timer_stop(&other);
	assert_int_equal(p.got, p.total);
	assert_true(p.turns >= p.total / 2);
	zmq_close(push);
	close_probe(&p);
}

static void keep_error(struct zsock *s, void *arg)
{
	struct probe *p = arg;
	owned(frames_finish) struct frames frames = {0};

	p->got++;
	if (zsock_recv(s, &frames, &p->last) == 0 || p->got == p->total)
		loop_stop(p->loop);
}

CASE(a_message_of_too_many_frames_is_dropped_whole)
{
	struct probe p = {.total = 9, .zmq = zsock_context_create()};
	void *push = zmq_socket(p.zmq, ZMQ_PUSH);

	assert_int_equal(zmq_bind(push, "inproc://many"), 0);
	open_probe(&p, ZSOCK_PULL, "inproc://many", keep_error);
	for (int n = 0; n < FRAMES_MAX * 2; n++)
		zmq_send(push, "x", 1, n + 1 < FRAMES_MAX * 2 ? ZMQ_SNDMORE : 0);
	send_pair(push, 0);
	run_for(&p, 2 * SECOND, timed_out, &p);
	assert_int_equal(p.got, 2); /* the long one failed, the next one is whole */
	assert_int_equal(p.last.kind, ERR_LIMIT);
	zmq_close(push);
	close_probe(&p);
}

RUN(cmocka_unit_test(every_reply_arrives), cmocka_unit_test(one_at_a_time_never_stalls),
    cmocka_unit_test(a_socket_may_be_destroyed_in_its_callback),
    cmocka_unit_test(a_backlog_longer_than_one_turn_drains),
    cmocka_unit_test(a_send_that_eats_the_wakeup_does_not_stall),
    cmocka_unit_test(a_message_of_too_many_frames_is_dropped_whole))

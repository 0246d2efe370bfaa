// SPDX-License-Identifier: MIT
/* Against libzmq's own sockets, which are what kernels have, and against peers that are
 * none. */
#include "wire/zsock.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <zmq.h>

#include "testing.h"
#include "wire/mem.h"

#define PATH "zsock-test.sock"
#define ENDPOINT "ipc://" PATH
enum { SECOND = 1000000, MESSAGE_MAX = 1 << 20 };

struct peer {
	void *zmq;
	pthread_t thread;
};

struct probe {
	struct loop *loop;
	struct zsock *sock;
	int sent, got, total, window;
	int turns; /* of the loop, seen by a timer */
	bool timed_out;
	struct err last;
	void *zmq, *pub; /* of a broadcaster */
	struct loop_timer hearing;
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

static void open_probe(struct probe *p, enum zsock_type type, zsock_fn *fn)
{
	const struct zsock_options options = {
	    .type = type, .path = PATH, .message_max = MESSAGE_MAX};
	struct err err;

	assert_int_equal(loop_create(&p->loop, 4096, &err), 0);
	assert_int_equal(zsock_connect(&p->sock, p->loop, &options, fn, p, &err), 0);
}

static void close_probe(struct probe *p)
{
	zsock_destroy(&p->sock);
	loop_destroy(&p->loop);
}

static void run_echo(struct probe *p, zsock_fn *fn)
{
	struct peer peer;

	start_echo(&peer);
	open_probe(p, ZSOCK_DEALER, fn);
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

static void send_pair(void *pub, int number)
{
	assert_int_equal(zmq_send(pub, "head", 4, ZMQ_SNDMORE), 4);
	assert_int_equal(zmq_send(pub, &number, sizeof number, 0), sizeof number);
}

static void be_heard(void *arg)
{
	struct probe *p = arg;
	char topic[8];

	if (zmq_recv(p->pub, topic, sizeof topic, ZMQ_DONTWAIT) >= 0)
		loop_stop(p->loop);
	else
		loop_timer_start(p->loop, &p->hearing, 1000, be_heard, p);
}

/* A broadcaster as kernels have, and the probe subscribed to it. */
static void open_broadcast(struct probe *p, zsock_fn *fn)
{
	int no_limit = 0;

	p->zmq = zmq_ctx_new();
	p->pub = zmq_socket(p->zmq, ZMQ_XPUB);
	assert_int_equal(zmq_setsockopt(p->pub, ZMQ_SNDHWM, &no_limit, sizeof no_limit),
			 0);
	assert_int_equal(zmq_bind(p->pub, ENDPOINT), 0);
	open_probe(p, ZSOCK_SUB, fn);
	loop_timer_start(p->loop, &p->hearing, 1, be_heard, p);
	run_for(p, 20 * SECOND, timed_out, p);
	assert_false(p->timed_out);
}

static void close_broadcast(struct probe *p)
{
	int at_once = 0;

	loop_timer_stop(&p->hearing);
	close_probe(p);
	zmq_setsockopt(p->pub, ZMQ_LINGER, &at_once, sizeof at_once);
	zmq_close(p->pub);
	zmq_ctx_term(p->zmq);
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

/* All others have their turns meanwhile. */
CASE(a_backlog_longer_than_one_turn_drains)
{
	struct probe p = {.total = 30};

	open_broadcast(&p, count_slowly);
	for (int n = 0; n < p.total; n++)
		send_pair(p.pub, n);
	p.sent = p.total;
	see_turn(&p);
	run_for(&p, 20 * SECOND, timed_out, &p);
	loop_timer_stop(&other);
	assert_int_equal(p.got, p.total);
	assert_true(p.turns >= p.total / 2);
	close_broadcast(&p);
}

static void keep_error(struct zsock *s, void *arg)
{
	struct probe *p = arg;
	owned(frames_finish) struct frames frames = {0};

	p->got++;
	if (zsock_recv(s, &frames, &p->last) == 0 || p->got == p->total)
		loop_stop(p->loop);
}

static void check_dropped(struct probe *p)
{
	send_pair(p->pub, 0);
	run_for(p, 20 * SECOND, timed_out, p);
	assert_false(p->timed_out);
	assert_int_equal(p->got, 2); /* the long one failed, the next one is whole */
	assert_int_equal(p->last.kind, ERR_LIMIT);
	close_broadcast(p);
}

CASE(a_message_of_too_many_frames_is_dropped_whole)
{
	struct probe p = {.total = 9};

	open_broadcast(&p, keep_error);
	for (int n = 0; n < FRAMES_MAX * 2; n++)
		zmq_send(p.pub, "x", 1, n + 1 < FRAMES_MAX * 2 ? ZMQ_SNDMORE : 0);
	check_dropped(&p);
}

CASE(a_message_of_too_many_bytes_is_dropped_whole)
{
	static char part[MESSAGE_MAX / 4];
	struct probe p = {.total = 9};

	open_broadcast(&p, keep_error);
	for (int n = 0; n < 6; n++)
		zmq_send(p.pub, part, sizeof part, n < 5 ? ZMQ_SNDMORE : 0);
	check_dropped(&p);
}

CASE(a_frame_of_too_many_bytes_is_dropped)
{
	static char frame[MESSAGE_MAX + 1];
	struct probe p = {.total = 9};

	open_broadcast(&p, keep_error);
	zmq_send(p.pub, frame, sizeof frame, 0);
	check_dropped(&p);
}

static void count_bytes(struct zsock *s, void *arg)
{
	struct probe *p = arg;
	owned(frames_finish) struct frames frames = {0};
	struct err err;

	assert_int_equal(zsock_recv(s, &frames, &err), 0);
	for (size_t i = 0; i < frames.count; i++)
		p->got += (int)frames.at[i].size;
	if (p->got >= p->total)
		loop_stop(p->loop);
}

/* Around where the head of a frame changes its form, and up to the limit. */
CASE(frames_of_all_sizes_arrive)
{
	static const size_t sizes[] = {0,     1,     254,   255,        256,
				       65535, 65536, 65537, MESSAGE_MAX};
	static char frame[MESSAGE_MAX];
	struct probe p = {0};

	open_broadcast(&p, count_bytes);
	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		zmq_send(p.pub, frame, sizes[i], 0);
		p.total += (int)sizes[i];
	}
	run_for(&p, 20 * SECOND, timed_out, &p);
	assert_false(p.timed_out);
	assert_int_equal(p.got, p.total);
	close_broadcast(&p);
}

/* What is sent before it listens arrives too. */
CASE(a_peer_may_come_late)
{
	struct probe p = {.total = 3, .window = 3};
	struct peer peer;

	unlink(PATH);
	open_probe(&p, ZSOCK_DEALER, count);
	fill_window(&p);
	run_for(&p, SECOND / 5, stop, p.loop);
	assert_int_equal(p.got, 0);
	start_echo(&peer);
	run_for(&p, 20 * SECOND, timed_out, &p);
	assert_false(p.timed_out);
	assert_int_equal(p.got, 3);
	close_probe(&p);
	stop_echo(&peer);
}

/* ---- peers that are none ---- */

static int listen_here(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = PATH};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	unlink(PATH);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
	assert_int_equal(listen(fd, 5), 0);
	return fd;
}

static void never(struct zsock *s, void *arg)
{
	(void)s;
	(void)arg;
	fail_msg("a message came");
}

/* Frames of one message, until nobody takes them. */
static void *send_without_end(void *arg)
{
	static const char frame[2 + 255] = {1, (char)255};
	owned(buf_finish) struct buf greeting = {0};
	const int *peer = arg;

	zmtp_greet(&greeting, "ROUTER", "");
	send(*peer, greeting.data, greeting.size, MSG_NOSIGNAL);
	while (send(*peer, frame, sizeof frame, MSG_NOSIGNAL) > 0)
		;
	return NULL;
}

CASE(a_message_without_end_leaves_others_their_turns)
{
	owned(close_fd) int listener = listen_here();
	struct probe p = {0};
	pthread_t thread;

	open_probe(&p, ZSOCK_DEALER, never);
	owned(close_fd) int peer = accept(listener, NULL, NULL);
	pthread_create(&thread, NULL, send_without_end, &peer);
	see_turn(&p);
	run_for(&p, SECOND / 4, stop, p.loop);
	loop_timer_stop(&other);
	assert_true(p.turns >= 5);
	close_probe(&p);
	pthread_join(thread, NULL);
}

CASE(whoever_does_not_speak_the_protocol_is_left_alone)
{
	static const char *const greetings[] = {"HTTP/1.1 200 OK\r\n\r\n", "", "\xff"};

	for (size_t i = 0; i < COUNT_OF(greetings); i++) {
		owned(close_fd) int listener = listen_here();
		struct probe p = {0};
		char text[256] = {0};

		open_probe(&p, ZSOCK_DEALER, never);
		owned(close_fd) int peer = accept(listener, NULL, NULL);
		memcpy(text, greetings[i], strlen(greetings[i]));
		assert_int_equal(write(peer, text, sizeof text), sizeof text);
		run_for(&p, SECOND / 10, stop, p.loop);
		send_number(&p); /* nobody hears it */
		close_probe(&p);
	}
}

/* A kernel owns the directory of its sockets, and may put anything in their place. */
CASE(a_link_is_not_followed)
{
	static const char elsewhere[] = "zsock-test.elsewhere";
	owned(close_fd) int listener = listen_here();
	struct probe p = {0};

	assert_int_equal(rename(PATH, elsewhere), 0);
	assert_int_equal(symlink(elsewhere, PATH), 0);
	assert_int_equal(fcntl(listener, F_SETFL, O_NONBLOCK), 0);
	open_probe(&p, ZSOCK_DEALER, never);
	run_for(&p, SECOND / 5, stop, p.loop);
	assert_int_equal(accept(listener, NULL, NULL), -1);
	assert_int_equal(errno, EAGAIN);
	close_probe(&p);
	unlink(PATH);
	unlink(elsewhere);
}

/* It announces 2^63 bytes and sends ten: memory is for those. */
CASE(what_is_announced_takes_no_memory)
{
	static const unsigned char huge[] = {
	    0,   /* in READY's place */ 2, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	    0xff};
	struct zmtp in = {.state = ZMTP_OPEN, .message_max = MESSAGE_MAX};
	size_t used;

	assert_false(zmtp_read(&in, (const char *)huge + 1, sizeof huge - 1, &used));
	for (int i = 0; i < 1000; i++)
		assert_false(zmtp_read(&in, (const char *)huge, sizeof huge, &used));
	assert_true(in.too_long);
	assert_int_equal(in.body.size, 0);
	zmtp_finish(&in);
	in = (struct zmtp){.state = ZMTP_OPEN};
	assert_false(zmtp_read(&in, (const char *)huge + 1, sizeof huge - 1, &used));
	assert_true(in.body.room < 1000);
	zmtp_finish(&in);
}

RUN(cmocka_unit_test(every_reply_arrives), cmocka_unit_test(one_at_a_time_never_stalls),
    cmocka_unit_test(a_socket_may_be_destroyed_in_its_callback),
    cmocka_unit_test(a_backlog_longer_than_one_turn_drains),
    cmocka_unit_test(a_message_of_too_many_frames_is_dropped_whole),
    cmocka_unit_test(a_message_of_too_many_bytes_is_dropped_whole),
    cmocka_unit_test(a_frame_of_too_many_bytes_is_dropped),
    cmocka_unit_test(frames_of_all_sizes_arrive),
    cmocka_unit_test(a_peer_may_come_late),
    cmocka_unit_test(a_message_without_end_leaves_others_their_turns),
    cmocka_unit_test(whoever_does_not_speak_the_protocol_is_left_alone),
    cmocka_unit_test(a_link_is_not_followed),
    cmocka_unit_test(what_is_announced_takes_no_memory))

// SPDX-License-Identifier: MIT
#include "wire/pipeline.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "testing.h"

struct pair { /* the two ends of a TCP connection */
	int server, client;
};

static struct pair connect_pair(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof address;
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct pair pair = {.client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};

	assert_int_equal(bind(listener, (struct sockaddr *)&address, size), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
	assert_int_equal(connect(pair.client, (struct sockaddr *)&address, size), 0);
	pair.server = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(pair.server >= 0);
	close(listener);
	return pair;
}

static void close_pair(struct pair *pair)
{
	close(pair->server);
	close(pair->client);
}

/* Until what the other side did is seen on this one. */
static void await(int fd, short event)
{
	struct pollfd poll_fd = {.fd = fd, .events = event};

	assert_int_equal(poll(&poll_fd, 1, 5000), 1);
	assert_true(poll_fd.revents & event);
}

static void send_and_read(const struct pair *pair, size_t sent, size_t taken)
{
	char bytes[100] = "";

	assert_int_equal(write(pair->client, bytes, sent), sent);
	await(pair->server, POLLIN);
	assert_int_equal(read(pair->server, bytes, taken), taken);
}

CASE(what_was_read_counts_and_what_waits_does_not)
{
	struct pair pair = connect_pair();

	assert_int_equal(pipeline_bytes_read(pair.server), 0);
	send_and_read(&pair, 100, 60);
	assert_int_equal(pipeline_bytes_read(pair.server), 60);
	send_and_read(&pair, 10, 50);
	assert_int_equal(pipeline_bytes_read(pair.server), 110);
	close_pair(&pair);
}

/* Counted, it made a head that was left over look like a fresh one, and the loop spun.
 */
CASE(the_end_of_what_the_peer_sends_is_not_read)
{
	struct pair pair = connect_pair();
	char byte;

	send_and_read(&pair, 100, 60);
	unsigned long long before = pipeline_bytes_read(pair.server);
	shutdown(pair.client, SHUT_WR);
	await(pair.server, POLLRDHUP);
	assert_false(pipeline_has_read(before, pipeline_bytes_read(pair.server)));
	for (int i = 0; i < 40; i++)
		assert_int_equal(read(pair.server, &byte, 1), 1);
	unsigned long long all = pipeline_bytes_read(pair.server);
	assert_true(pipeline_has_read(before, all));
	assert_int_equal(read(pair.server, &byte, 1), 0);
	assert_false(pipeline_has_read(all, pipeline_bytes_read(pair.server)));
	close_pair(&pair);
}

CASE(nor_is_a_reset)
{
	struct pair pair = connect_pair();
	struct linger at_once = {.l_onoff = 1};

	send_and_read(&pair, 10, 5);
	unsigned long long before = pipeline_bytes_read(pair.server);
	setsockopt(pair.client, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
	close(pair.client);
	await(pair.server, POLLHUP);
	assert_false(pipeline_has_read(before, pipeline_bytes_read(pair.server)));
	close(pair.server);
}

RUN(cmocka_unit_test(what_was_read_counts_and_what_waits_does_not),
    cmocka_unit_test(the_end_of_what_the_peer_sends_is_not_read),
    cmocka_unit_test(nor_is_a_reset))

// SPDX-License-Identifier: MIT
#include "wire/peers.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include "testing.h"
#include "wire/mem.h"

static struct in6_addr key_of(const char *text)
{
	struct sockaddr_storage address = {0};
	struct sockaddr_in v4 = {.sin_family = AF_INET};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
	struct in6_addr key;

	if (inet_pton(AF_INET, text, &v4.sin_addr) == 1)
		memcpy(&address, &v4, sizeof v4);
	else if (inet_pton(AF_INET6, text, &v6.sin6_addr) == 1)
		memcpy(&address, &v6, sizeof v6);
	peer_key(&key, &address);
	return key;
}

static bool are_one(const char *a, const char *b)
{
	const struct in6_addr left = key_of(a), right = key_of(b);

	return IN6_ARE_ADDR_EQUAL(&left, &right);
}

CASE(a_peer_is_an_address_a_network_or_this_machine)
{
	assert_true(are_one("10.0.0.1", "10.0.0.1"));
	assert_true(are_one("10.0.0.1", "::ffff:10.0.0.1"));
	assert_true(are_one("127.0.0.1", "127.9.9.9"));
	assert_true(are_one("127.0.0.1", "::1"));
	assert_true(are_one("127.0.0.1", "::ffff:127.0.0.1"));
	assert_true(are_one("2001:db8:0:1::1", "2001:db8:0:1:ffff::2"));
	assert_false(are_one("10.0.0.1", "10.0.0.2"));
	assert_false(are_one("10.0.0.1", "127.0.0.1"));
	assert_false(are_one("2001:db8:0:1::1", "2001:db8:0:2::1"));
	assert_false(are_one("::2", "::1"));
	assert_false(are_one("::2", "0.0.0.2"));
}

CASE(this_machine_has_more_and_nobody_all)
{
	struct peer near = {.key = key_of("::1")}, far = {.key = key_of("10.0.0.1")};

	assert_int_equal(peer_share(&near, 1024), 768);
	assert_int_equal(peer_share(&far, 1024), 512);
	assert_int_equal(peer_share(&near, 1), 1);
	assert_int_equal(peer_share(&far, 1), 1);
}

static int connected(int *listener, int *far)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof at;

	*listener = socket(AF_INET, SOCK_STREAM, 0);
	*far = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(*listener, (struct sockaddr *)&at, len), 0);
	assert_int_equal(listen(*listener, 1), 0);
	assert_int_equal(getsockname(*listener, (struct sockaddr *)&at, &len), 0);
	assert_int_equal(connect(*far, (struct sockaddr *)&at, len), 0);
	return accept(*listener, NULL, NULL);
}

CASE(a_share_is_given_and_taken_back)
{
	struct peers peers = {0};
	struct peer *held[3];
	int listener, far, fd = connected(&listener, &far);

	for (int i = 0; i < 3; i++) {
		assert_true(peers_have_room(&peers, fd, 4));
		held[i] = peers_enter(&peers, fd);
		assert_ptr_equal(held[i], held[0]);
	}
	assert_false(peers_have_room(&peers, fd, 4));
	assert_true(peers_have_room(&peers, -1, 4)); /* another's */
	assert_false(peers_have_room(&peers, -1, 3));
	peers_leave(&peers, &held[2]);
	assert_null(held[2]);
	assert_true(peers_have_room(&peers, fd, 4));
	peers_leave(&peers, &held[1]);
	peers_leave(&peers, &held[0]);
	assert_true(LIST_EMPTY(&peers.all));
	assert_int_equal(peers.connections, 0);
	close_fd(&fd);
	close_fd(&far);
	close_fd(&listener);
}

CASE(bodies_are_counted_for_each_and_for_all)
{
	struct peers peers = {0};
	struct peer a = {.key = key_of("10.0.0.1")}, b = {.key = key_of("10.0.0.2")};
	struct peer c = {.key = key_of("10.0.0.3")};

	assert_true(peers_take_body(&peers, &a, 50, 100));
	assert_false(peers_take_body(&peers, &a, 1, 100));
	assert_true(peers_take_body(&peers, &b, 49, 100));
	assert_true(peers_take_body(&peers, &c, 1, 100));
	assert_false(peers_take_body(&peers, &c, 1, 100));
	peers_give_body(&peers, &a, 50);
	assert_true(peers_take_body(&peers, &c, 49, 100));
	assert_int_equal(peers.body_bytes, 99);
}

RUN(cmocka_unit_test(a_peer_is_an_address_a_network_or_this_machine),
    cmocka_unit_test(this_machine_has_more_and_nobody_all),
    cmocka_unit_test(a_share_is_given_and_taken_back),
    cmocka_unit_test(bodies_are_counted_for_each_and_for_all))

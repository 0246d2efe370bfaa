// SPDX-License-Identifier: MIT
#include "wire/peers.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "wire/log.h"
#include "wire/loop.h"
#include "wire/mem.h"

enum { TELL_AGAIN_US = 60 * 1000 * 1000, PREFIX_BYTES = 8 /* a /64 */ };

static bool is_v4(const struct in6_addr *key)
{
	return IN6_IS_ADDR_V4MAPPED(key);
}

static bool is_same_address(const struct sockaddr_storage *a,
			    const struct sockaddr_storage *b)
{
	struct sockaddr_in v4[2];
	struct sockaddr_in6 v6[2];

	if (a->ss_family != b->ss_family)
		return false;
	if (a->ss_family == AF_INET) {
		memcpy(&v4[0], a, sizeof v4[0]);
		memcpy(&v4[1], b, sizeof v4[1]);
		return v4[0].sin_addr.s_addr == v4[1].sin_addr.s_addr;
	}
	memcpy(&v6[0], a, sizeof v6[0]);
	memcpy(&v6[1], b, sizeof v6[1]);
	return IN6_ARE_ADDR_EQUAL(&v6[0].sin6_addr, &v6[1].sin6_addr);
}

void peer_key(struct in6_addr *out, const struct sockaddr_storage *address)
{
	*out = (struct in6_addr){0};
	if (address->ss_family == AF_INET) {
		struct sockaddr_in v4;

		memcpy(&v4, address, sizeof v4);
		out->s6_addr[10] = out->s6_addr[11] = 0xff;
		memcpy(&out->s6_addr[12], &v4.sin_addr, sizeof v4.sin_addr);
	} else if (address->ss_family == AF_INET6) {
		struct sockaddr_in6 v6;

		memcpy(&v6, address, sizeof v6);
		*out = v6.sin6_addr;
	}
	if (IN6_IS_ADDR_LOOPBACK(out) || (is_v4(out) && out->s6_addr[12] == 127))
		*out = (struct in6_addr)IN6ADDR_LOOPBACK_INIT;
	else if (!is_v4(out))
		memset(&out->s6_addr[PREFIX_BYTES], 0, sizeof *out - PREFIX_BYTES);
}

/* Who talks to our loopback address, or from an address of ours, is on this machine. */
static void key_of(struct in6_addr *out, int fd)
{
	struct sockaddr_storage theirs = {0}, ours = {0};
	socklen_t len = sizeof theirs, our_len = sizeof ours;
	struct in6_addr own;

	/* one that has gone already counts as nobody's */
	if (getpeername(fd, (struct sockaddr *)&theirs, &len) < 0)
		theirs.ss_family = AF_UNSPEC;
	if (getsockname(fd, (struct sockaddr *)&ours, &our_len) < 0)
		ours.ss_family = AF_UNSPEC;
	peer_key(out, &theirs);
	peer_key(&own, &ours);
	if (theirs.ss_family != AF_UNSPEC &&
	    (IN6_IS_ADDR_LOOPBACK(&own) || is_same_address(&theirs, &ours)))
		*out = (struct in6_addr)IN6ADDR_LOOPBACK_INIT;
}

size_t peer_share(const struct peer *self, size_t all)
{
	return IN6_IS_ADDR_LOOPBACK(&self->key) ? all - all / 4 : all - all / 2;
}

static struct peer *find(const struct peers *self, const struct in6_addr *key)
{
	struct peer *peer;

	LIST_FOREACH(peer, &self->all, link)
	{
		if (IN6_ARE_ADDR_EQUAL(&peer->key, key))
			return peer;
	}
	return NULL;
}

/* Once a minute: a flood must not flood the log. */
static void tell(struct peers *self, const struct in6_addr *key, const char *what)
{
	char text[INET6_ADDRSTRLEN];
	int64_t now = loop_now_us();

	if (self->told_us && now - self->told_us < TELL_AGAIN_US)
		return;
	self->told_us = now;
	inet_ntop(AF_INET6, key, text, sizeof text);
	log_warn("http", "%s: refused, %s", text, what);
}

bool peers_have_room(struct peers *self, int fd, int max)
{
	struct in6_addr key;

	key_of(&key, fd);
	const struct peer *peer = find(self, &key);
	if (self->connections >= max)
		tell(self, &key, "all connections are taken");
	else if (peer && peer->connections >= (int)peer_share(peer, (size_t)max))
		tell(self, &key, "this peer has its share of the connections");
	else
		return true;
	return false;
}

struct peer *peers_enter(struct peers *self, int fd)
{
	struct in6_addr key;

	key_of(&key, fd);
	struct peer *peer = find(self, &key);
	if (!peer) {
		peer = xcalloc(1, sizeof *peer);
		peer->key = key;
		LIST_INSERT_HEAD(&self->all, peer, link);
	}
	peer->connections++;
	self->connections++;
	return peer;
}

void peers_leave(struct peers *self, struct peer **peer)
{
	struct peer *left = take(peer);

	self->connections--;
	if (--left->connections)
		return;
	LIST_REMOVE(left, link);
	free(left);
}

bool peers_take_body(struct peers *self, struct peer *peer, size_t size, size_t max)
{
	if (self->body_bytes + size > max ||
	    peer->body_bytes + size > peer_share(peer, max)) {
		tell(self, &peer->key, "too many large requests at once");
		return false;
	}
	peer->body_bytes += size;
	self->body_bytes += size;
	return true;
}

void peers_give_body(struct peers *self, struct peer *peer, size_t size)
{
	peer->body_bytes -= size;
	self->body_bytes -= size;
}

/*
 * peers - who the connections come from, so that no one of them can take them all, nor
 * all of the memory for bodies.
 *
 * A peer is an IPv4 address, a /64 of IPv6, since that is what one subscriber has, or
 * this machine, whatever address it uses: of the latter there are no two.  It gets half
 * of what there is; this machine three quarters, because a proxy on it speaks for all
 * its users, and still leaves a quarter to whom it is attacked from.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef WIRE_PEERS_H
#define WIRE_PEERS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct peer { /* from its first connection to the end of its last */
	LIST_ENTRY(peer) link;
	struct in6_addr key;
	int connections;
	size_t body_bytes; /* of requests that are being received or answered */
};

LIST_HEAD(peer_list, peer);

struct peers { /* embed it; zero: nobody is there */
	struct peer_list all;
	int connections;
	size_t body_bytes;
	int64_t told_us; /* when a refusal was logged last */
};

/* The key of an address. */
void peer_key(struct in6_addr *out, const struct sockaddr_storage *address);
/* What a peer may have of so many. */
size_t peer_share(const struct peer *self, size_t all);

/* False if the one at the other end of the socket has its share of max connections, or
 * all are taken. */
bool peers_have_room(struct peers *self, int fd, int max);
/* Counts a connection.  Give it back by peers_leave(). */
struct peer *peers_enter(struct peers *self, int fd);
void peers_leave(struct peers *self, struct peer **peer);

/* Counts bytes of a body; false, and not counted, if the peer has its share of max
 * bytes. */
bool peers_take_body(struct peers *self, struct peer *peer, size_t size, size_t max);
void peers_give_body(struct peers *self, struct peer *peer, size_t size);

#endif

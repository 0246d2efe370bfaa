/*
 * forward_resolve - the addresses of the proxy.  A name is looked up by a child
 * process, since that may take long, and anew every few seconds of use, since a name
 * may move.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef KERNELMGR_FORWARD_RESOLVE_H
#define KERNELMGR_FORWARD_RESOLVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

enum { ADDRESSES_MAX = 8 };

struct address {
	struct sockaddr_storage at;
	socklen_t size;
};

struct resolver {
	const char *host, *port;
	struct address addresses[ADDRESSES_MAX];
	size_t count;     /* 0: it has none */
	int64_t until_us; /* they hold; of the monotonic clock */
	int answer;       /* read end of a pipe while a child looks; else -1 */
	pid_t child;
};

int64_t now_us(void);
void resolver_init(struct resolver *self, const char *host, const char *port);
/* True if the addresses are known now; else a lookup is under way: watch answer. */
bool resolver_ready(struct resolver *self);
/* answer can be read: the lookup is over. */
void resolver_take(struct resolver *self);

#endif

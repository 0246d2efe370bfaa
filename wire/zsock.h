/*
 * zsock - one connection to a kernel's ZeroMQ socket, living in the loop (zmtp.h has
 * the protocol).  Not by libzmq: it collects all frames of a message before it shows
 * the first, however many a hostile kernel sends, and up to a thousand messages more.
 * Here nothing is read ahead of what is wanted, so that the rest waits in the kernel.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef WIRE_ZSOCK_H
#define WIRE_ZSOCK_H

#include <stddef.h>
#include <stdint.h>

#include "wire/err.h"
#include "wire/loop.h"
#include "wire/zmtp.h"

struct frame {
	const void *data;
	size_t size;
};

struct frames { /* embed it; zero is no message */
	size_t count;
	struct frame at[FRAMES_MAX];
	char *storage; /* owned: what the frames point into */
};
void frames_finish(struct frames *self);

struct zsock;
/* One whole message has arrived; take it with zsock_recv().  May destroy the socket. */
typedef void zsock_fn(struct zsock *zsock, void *arg);

enum zsock_type { ZSOCK_DEALER, ZSOCK_SUB /* of everything */ };

struct zsock_options {
	enum zsock_type type;
	const char *path;     /* of the peer's UNIX socket; it may come later */
	const char *identity; /* a literal; NULL: the peer makes one up */
	size_t message_max; /* bytes of one message; a longer one is dropped; 0: none */
};

/* Connects; never waits, and tries again until the peer has answered once.
 * readable(arg) may come from the loop from now on. */
int zsock_connect(struct zsock **out, struct loop *loop,
		  const struct zsock_options *options, zsock_fn *readable, void *arg,
		  struct err *err) must_check;
void zsock_destroy(struct zsock **self);

/* Sends all frames as one message, or nothing: a full peer is an error, not a wait. */
int zsock_send(struct zsock *self, const struct frame *frames, size_t count,
	       struct err *err) must_check;
/* Takes the message that has arrived.  Fails with ERR_LIMIT for one that was dropped,
 * with ERR_SYSTEM if there is none.  Caller finishes out, also after -1. */
int zsock_recv(struct zsock *self, struct frames *out, struct err *err) must_check;

#endif

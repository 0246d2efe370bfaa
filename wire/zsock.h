/*
 * zsock - one ZeroMQ socket living in the loop.  The only file pair that calls
 * zmq_*().  libzmq signals readiness edge-wise and any call on the socket may
 * swallow the edge, so every path here ends by scheduling a re-check.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef WIRE_ZSOCK_H
#define WIRE_ZSOCK_H

#include <stddef.h>
#include <stdint.h>

#include "wire/err.h"
#include "wire/loop.h"

enum { FRAMES_MAX = 64 }; /* of one message; a longer one is dropped */

struct frame {
	const void *data;
	size_t size;
};

struct frames { /* embed it; zero is no message */
	size_t count;
	struct frame at[FRAMES_MAX];
	void *storage; /* owned: what the frames point into */
};
void frames_finish(struct frames *self);

struct zsock;
/* One whole message has arrived; take it with zsock_recv().  May destroy the socket. */
typedef void zsock_fn(struct zsock *zsock, void *arg);

enum zsock_type { ZSOCK_DEALER, ZSOCK_SUB /* of everything */, ZSOCK_PULL };

struct zsock_options {
	enum zsock_type type;
	const char *endpoint;
	int receive_max; /* messages waiting here before the peer has to; 0: no limit */
	int64_t
	    message_max; /* bytes of one frame; the peer of a longer one is cut off */
};

/* ZeroMQ's context, one a process.  Caller owns. */
void *zsock_context_create(void);
/* Blocks until every socket is closed. */
void zsock_context_destroy(void **context);

/* Connects; never waits.  readable(arg) may come from the loop from now on. */
int zsock_connect(struct zsock **out, struct loop *loop, void *context,
		  const struct zsock_options *options, zsock_fn *readable, void *arg,
		  struct err *err) must_check;
void zsock_destroy(struct zsock **self);

/* Sends all frames as one message, or nothing: a full peer is an error, not a wait. */
int zsock_send(struct zsock *self, const struct frame *frames, size_t count,
	       struct err *err) must_check;
/* Takes one message.  Caller finishes out, also after -1. */
int zsock_recv(struct zsock *self, struct frames *out, struct err *err) must_check;

#endif

/*
 * zmtp - what a ZeroMQ peer sends on a connection: ZMTP 3.0 (RFC 23) without security,
 * as libzmq 4 speaks it with whoever greets it so.  Pure functions over bytes.  The
 * peer is hostile: memory is taken as bytes come, never as they are announced, and a
 * message over its limits is dropped while it comes, all its frames together.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef WIRE_ZMTP_H
#define WIRE_ZMTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/buf.h"

enum {
	FRAMES_MAX = 64, /* of one message; a longer one is dropped */
	ZMTP_HEAD_MAX = 9,
	ZMTP_GREETING_SIZE = 64,
};

enum zmtp_state {
	ZMTP_GREETING,
	ZMTP_HANDSHAKE, /* greeted; its READY is to come */
	ZMTP_OPEN,
	ZMTP_BROKEN, /* it does not speak the protocol; nothing more is read */
};

struct zmtp {               /* embed it; zero, but for the limit, is a new connection */
	size_t message_max; /* bytes of all frames of a message; 0: no limit */
	enum zmtp_state state;
	unsigned char head[ZMTP_GREETING_SIZE]; /* greeting, or head of a frame */
	size_t head_size;
	bool in_frame;   /* its head is read */
	uint64_t left;   /* bytes of the frame that are to come */
	struct buf body; /* frames of the message so far, one behind the other */
	size_t ends[FRAMES_MAX], count;
	bool too_long; /* what is left of this message is dropped */
};
void zmtp_finish(struct zmtp *self);

/* Reads of data until a message is whole (true) or all is read; *used is how much of it
 * was.  A message that was dropped counts as whole: too_long says so. */
bool zmtp_read(struct zmtp *self, const char *data, size_t size, size_t *used);
/* Forgets the message that was whole. */
void zmtp_next(struct zmtp *self);

/* What has to be sent: at once (identity: "", or what the peer's ROUTER is to call us);
 * when the state is ZMTP_OPEN; as a frame. */
void zmtp_greet(struct buf *out, const char *socket_type, const char *identity);
void zmtp_subscribe_to_all(struct buf *out);
void zmtp_frame(struct buf *out, const void *data, size_t size, bool more);

#endif

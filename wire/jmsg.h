/*
 * jmsg - messages of the Jupyter protocol (messaging spec 5.x, "The wire protocol"):
 * building and signing them, and reading them with the signature checked before
 * anything is parsed.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef WIRE_JMSG_H
#define WIRE_JMSG_H

#include <jansson.h>

#include "wire/err.h"
#include "wire/sign.h"
#include "wire/zsock.h"

enum {
	JMSG_ID_SIZE = 56,         /* a message id with its NUL */
	JMSG_FRAME_MAX = 64 << 20, /* bytes of one frame that we accept */
};

struct jmsg {                                         /* embed it; zero is no message */
	json_t *header, *parent, *metadata, *content; /* owned; objects */
	const char *type, *id;                        /* header's; never NULL */
	const char *parent_id;                        /* parent's msg_id, or "" */
};
void jmsg_finish(struct jmsg *self);

/* Which of the frames is which: checked, not parsed. */
struct jmsg_frames {
	const struct frame *signature;
	const struct frame *parts; /* header, parent header, metadata, content */
	const struct frame *buffers;
	size_t buffer_count;
};
/* Finds the delimiter (any number of identities may come first, none is legal) and
 * checks that all parts are there and none is over JMSG_FRAME_MAX. */
int jmsg_split(struct jmsg_frames *out, const struct frame *frames, size_t count,
	       struct err *err) must_check;

/* Splits, verifies with key, refuses replays known to guard, and only then parses.
 * On -1 nothing has to be finished and the message is to be dropped. */
int jmsg_read(struct jmsg *out, const char *key, struct replay_guard *guard,
	      const struct frame *frames, size_t count, struct err *err) must_check;

/* One end of a conversation with a kernel: what our messages are signed with. */
struct jmsg_session { /* embed it */
	char key[SIGN_KEY_HEX + 1];
	char id[33]; /* header.session */
	unsigned long long sent;
};
void jmsg_session_init(struct jmsg_session *self);

/* Sends a request and stores its message id in id.  Consumes content. */
int jmsg_send(struct jmsg_session *self, struct zsock *to, const char *type,
	      json_t *content, char id[JMSG_ID_SIZE], struct err *err) must_check;

#endif

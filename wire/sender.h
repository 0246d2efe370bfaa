/*
 * sender - bytes on their way out of a stream socket whose other side may be slow to
 * read them: what it does not take now is kept and tried again, so that nobody waits.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef WIRE_SENDER_H
#define WIRE_SENDER_H

#include "wire/buf.h"
#include "wire/loop.h"

struct sender {            /* embed it; zero: closed */
	struct loop *loop; /* borrowed, like fd; NULL: closed */
	int fd;
	struct buf unsent; /* append to it, then sender_push() */
	struct loop_timer again;
};

void sender_open(struct sender *self, struct loop *loop, int fd);
/* Sends what the socket takes now, and the rest later.  Nothing while it is closed, or
 * when the other side has gone, which its reader will notice. */
void sender_push(struct sender *self);
/* Closes it; what is unsent is dropped. */
void sender_close(struct sender *self);

#endif

/*
 * door - where other Vivariums of the same work directory come in: a UNIX socket in the
 * state directory, with the lines of stdio behind a first one that says for whom.
 *
 * A kernel behind the weakest walls can reach any socket whose path it knows, as the
 * same user.  So whoever comes has to know the key, which lies beside the socket, where
 * kernels cannot read.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MCP_DOOR_H
#define MCP_DOOR_H

#include <stdbool.h>

#include "mcp/channel.h"
#include "wire/buf.h"
#include "wire/loop.h"

struct door;

struct door_owner {
	void (*left)(void *arg); /* the last guest has left */
	void *arg;
};

/* Only with the state's lock.  Borrows channels until destroyed. */
int door_open(struct door **out, struct loop *loop, const char *own_dir,
	      struct channels *channels, const struct door_owner *owner,
	      struct err *err) must_check;
/* Cuts off who is there. */
void door_close(struct door **self);
/* Guests that are there; those whose answers are under way. */
int door_guests(const struct door *self);
int door_busy(const struct door *self);

/* The other side of it: a connection to who has the lock.  Fails while he has no door
 * yet.  Caller owns *fd. */
int door_reach(const char *own_dir, int *fd, struct err *err) must_check;
/* The first line, for the user of that name ("": nobody in particular). */
int door_first_line(struct buf *out, const char *own_dir, const char *user,
		    struct err *err) must_check;

#endif

/*
 * stdio - MCP over standard input and output.  Clients start a server to see what it
 * has, sometimes two at once: so nothing is taken before the first message that needs a
 * workspace.  Then this process becomes the daemon of its work directory, or, if there
 * is one already, hands on to it what it is asked.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MCP_STDIO_H
#define MCP_STDIO_H

#include <stdbool.h>

#include "mcp/channel.h"
#include "wire/loop.h"

struct stdio;

struct stdio_host { /* who can make this process a daemon */
	/* Opens the workspaces here.  Fails with ERR_BUSY if another process has them;
	 * own_dir then says where its door is. */
	int (*settle)(void *arg, struct err *err);
	/* The input has ended and what was asked is answered, or nobody reads. */
	void (*over)(void *arg);
	const char *own_dir; /* borrowed */
	void *arg;
};

/* Consumes both descriptors, also on failure.  Borrows the rest until destroyed.  user:
 * whose workspace it is. */
int stdio_create(struct stdio **out, struct loop *loop, int in, int out_fd,
		 const char *user, struct channels *channels,
		 const struct stdio_host *host, struct err *err) must_check;
/* After server_destroy(). */
void stdio_destroy(struct stdio **self);
/* Whether the host was told that it is over. */
bool stdio_over(const struct stdio *self);
/* Whether somebody still waits for what is answered here. */
bool stdio_busy(const struct stdio *self);

#endif

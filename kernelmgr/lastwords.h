/*
 * lastwords - what a kernel had written that had not come out of it when it died.  The
 * kernel hands us the read ends of the pipes behind its descriptors 1 and 2, and a
 * memory file in which it keeps the end of what it read from them or printed (layout:
 * pyside/vivarium_kernel/lastwords.py).  Each of its stream messages says how far in
 * its stream it reaches, so the rest is what nobody has seen.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef KERNELMGR_LASTWORDS_H
#define KERNELMGR_LASTWORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "wire/jmsg.h"

struct lastwords {            /* embed it; lastwords_init() first */
	int memory, pipes[2]; /* owned; -1 until taken; stdout, stderr */
	uint64_t came[2];     /* bytes of each that have arrived as messages */
};

struct lastwords_rest {
	bool is_err;
	uint64_t lost;    /* bytes before the text that nobody has any more */
	const char *text; /* any bytes; borrowed */
	size_t size;
};
typedef void lastwords_fn(const struct lastwords_rest *rest, void *arg);

void lastwords_init(struct lastwords *self);
void lastwords_close(struct lastwords *self);
/* read() from a socket, which also takes what the kernel hands over with its bytes:
 * descriptors that are not what they should be, or that come again, are closed. */
ssize_t lastwords_recv(struct lastwords *self, int socket, char *out, size_t size);
/* A broadcast has arrived. */
void lastwords_note(struct lastwords *self, const struct jmsg *message);
/* The kernel is dead and all its messages are here: fn gets the rest of each stream. */
void lastwords_tell(struct lastwords *self, lastwords_fn *fn, void *arg);

#endif

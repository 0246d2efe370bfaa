/*
 * audience - what sessions and conversations have asked to be told: kept in memory,
 * for a bounded number of them, since they come and go.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MCP_AUDIENCE_H
#define MCP_AUDIENCE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

enum { AUDIENCE_MAX = 1024 /* of all; the one that said nothing for longest goes */ };

struct listener;
struct audience {                            /* embed it; audience_init() first */
	TAILQ_HEAD(listeners, listener) all; /* listener::link, the oldest first */
	size_t count;
};

void audience_init(struct audience *self);
/* The least level of log messages that a session wants; LOG_NONE. */
int audience_level(const struct audience *self, uint64_t session);
void audience_set_level(struct audience *self, uint64_t session, int level);
void audience_forget(struct audience *self, uint64_t session);
void audience_finish(struct audience *self);

#endif

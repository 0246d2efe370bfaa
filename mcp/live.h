/*
 * live - what the client of a running call is told before its answer: how far it is, as
 * progress, about once a second, and what it prints, as log messages; each only if he
 * asked for it.  Bounded whatever is printed: what does not fit is counted.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MCP_LIVE_H
#define MCP_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernelmgr/call.h"
#include "mcp/bar.h"
#include "wire/buf.h"
#include "wire/loop.h"

struct server_context;

struct live_text {        /* one stream */
	struct buf line;  /* that is being written; a part of one that is long */
	bool returned;    /* a carriage return came last */
	struct buf fresh; /* whole lines that the client has not been sent */
	unsigned long long skipped; /* lines before those that he will not be */
};

struct live {                                 /* embed it; zero: nobody listens */
	struct loop *loop;                    /* borrowed, like the next */
	const struct server_context *context; /* NULL: nobody listens */
	struct call *call;                    /* that is followed, or NULL */
	struct loop_timer timer;
	int64_t began_us;
	struct live_text out, err;
	unsigned long long lines;
	bool has_bar;
	struct bar seen;   /* the newest bar that was printed */
	struct bar bar;    /* the one that progress is told by */
	int64_t moved_us;  /* when that was printed last */
	double sent, base; /* the last progress; what the bar's is added to */
};

/* From now on until live_stop(), if the context asks for anything. */
void live_start(struct live *self, struct loop *loop,
		const struct server_context *context);
/* The call whose output it is; NULL: it has ended. */
void live_follow(struct live *self, struct call *call);
void live_stop(struct live *self);

/* For tests and fuzzing: what was printed; a second has passed. */
void live_print(bool is_err, const char *text, size_t size, void *arg);
void live_tick(struct live *self);

#endif

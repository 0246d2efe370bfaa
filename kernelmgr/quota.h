/*
 * quota - what the files of a workspace and its home may take of the disk
 * (VIVARIUM_WORKSPACE_QUOTA).  Measured while a cell runs, after it, and while
 * something that it left behind runs; one that goes over is interrupted.  Further cells
 * run, so that files can be deleted, and each result says what is the matter until it
 * is not. Single files are bounded besides, by RLIMIT_FSIZE (limits.c).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef KERNELMGR_QUOTA_H
#define KERNELMGR_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

#include "kernelmgr/usage.h"
#include "wire/buf.h"
#include "wire/err.h"
#include "wire/loop.h"

struct workspace;
struct call;

struct quota {                   /* of one workspace */
	struct usage *measuring; /* NULL: none is under way */
	int64_t began_us;        /* the measuring */
	struct loop_timer tick, patience;
	int64_t rest_us;      /* until the next look, while no cell runs */
	struct call *waiting; /* for a measuring that begins after its end; borrowed */
	bool stale;           /* the one under way began before that */
	uint64_t used;
	uint64_t ceiling; /* bytes: more, and the cell is interrupted */
	bool over;
	struct buf words; /* the whole line about it, while over */
};

/* All are harmless where there is no quota. */
void quota_finish(struct workspace *workspace);
/* A cell begins to run. */
void quota_on_begin(struct workspace *workspace);
/* A cell is over: call_on_measured() follows, soon or from inside. */
void quota_on_end(struct workspace *workspace, struct call *call);
/* The call wants to know no more. */
void quota_forget(struct workspace *workspace, const struct call *call);
/* A tool is to write size bytes: fails if they are over it, as far as is known, and
 * counts them until the next measuring, which this begins. */
int quota_take(struct workspace *workspace, uint64_t size, struct err *err) must_check;
/* Adds the line about it, if it is over. */
void quota_tell(const struct workspace *workspace, struct buf *out);

#endif

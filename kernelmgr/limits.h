/*
 * limits - how much of the machine one kernel with all that it starts may take: memory,
 * processes, processor time.  Kept by control groups (cgroup.h) where there are any;
 * where not, by resource limits as far as these can, which count per process, or per
 * user.  Equal shares of the processors are a matter of the groups too.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef KERNELMGR_LIMITS_H
#define KERNELMGR_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernelmgr/cgroup.h"
#include "kernelmgr/config.h"
#include "kernelmgr/walls.h"
#include "wire/buf.h"
#include "wire/err.h"
#include "wire/loop.h"

struct limits { /* of all kernels */
	const struct walls *walls;
	struct loop *loop;
	struct cgroup_values values;
	int64_t quota; /* bytes; 0: none */
	struct cgroups groups;
	unsigned *left; /* owned: kernels whose groups cannot go yet */
	size_t left_count;
	struct loop_timer sweep;
};

struct limits_kernel { /* of one; zero before it begins */
	unsigned number;
	struct cgroup_use told; /* what was told already */
};

/* Borrows all.  walls are decided by then, or only their tier is asked for. */
void limits_open(struct limits *out, struct loop *loop, const struct config *config,
		 const struct walls *walls);
void limits_close(struct limits *self);
/* What is kept and by what: "memory 4.0 GB, 256 processes, 2 processors (control groups
 * version 1)"; missing gets what is not, and why, or "". */
void limits_describe(const struct limits *self, struct buf *kept, struct buf *missing);
/* The same in the log, what is missing as a warning. */
void limits_log(const struct limits *self);

/* Makes the groups of a kernel. */
int limits_begin(struct limits *self, struct limits_kernel *kernel, unsigned number,
		 struct err *err) must_check;
/* Adds what its supervisor has to do about limits to its plan. */
void limits_plan(const struct limits *self, const struct limits_kernel *kernel,
		 struct buf *out);
/* Adds lines about what the system refused or ended since the last time. */
void limits_tell(const struct limits *self, struct limits_kernel *kernel,
		 struct buf *out);
/* For a kernel that SIGKILL ended: true and words that follow "the kernel" if the
 * system did that for want of memory. */
bool limits_tell_death(const struct limits *self, const struct limits_kernel *kernel,
		       char *words, size_t size);
/* It is dead: its groups are removed, if need be later. */
void limits_end(struct limits *self, const struct limits_kernel *kernel);

#endif

/*
 * cgroup - control groups of our own below the one that this process is in: one for the
 * daemon's kernels together, vivarium.<pid>, and in it one for each, k<number>.  Of
 * version 2 where this process was handed that part of the tree, else of version 1; a
 * machine may have both at once, each with other controllers.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef KERNELMGR_CGROUP_H
#define KERNELMGR_CGROUP_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/err.h"

enum cgroup_kind { CGROUP_MEMORY, CGROUP_PIDS, CGROUP_CPU, CGROUP_KINDS };

struct cgroup_tree { /* one hierarchy */
	bool v2;
	unsigned kinds; /* what is limited in it; bits by cgroup_kind */
	unsigned
	    switched_on;     /* by us, in the group that we were in; bits (version 2) */
	bool moved;          /* this process, into a group of its own (version 2) */
	char own[PATH_MAX];  /* the group that this process was in */
	char base[PATH_MAX]; /* vivarium.<pid> in it */
};

struct cgroups {
	struct cgroup_tree trees[CGROUP_KINDS];
	size_t count;
	char why[160]; /* why a kind is in none of them; "" */
};

struct cgroup_values {                /* of one kernel; 0: no limit */
	int64_t memory, pids, cpu_us; /* bytes; processes and threads; of 100 ms */
};

struct cgroup_use {           /* 0 where it is not known */
	uint64_t peak;        /* bytes, the most there ever were */
	uint64_t ended;       /* processes that the system ended: out of memory */
	uint64_t not_started; /* processes and threads that were refused */
};

/* Finds the trees and makes vivarium.<pid> in each, and removes what dead daemons left
 * there.  What cannot be had is not in out, and out->why says why.  proc: "/proc/self"
 * but in tests. */
void cgroups_open(struct cgroups *out, const char *proc);
/* Removes them; kernels that still live are left. */
void cgroups_close(struct cgroups *self);
/* The tree that limits this kind, or NULL. */
const struct cgroup_tree *cgroups_tree(const struct cgroups *self,
				       enum cgroup_kind kind);

/* Where the group of a kernel lies in a tree. */
void cgroup_path(const struct cgroup_tree *tree, unsigned number, char out[PATH_MAX]);
/* Makes the groups of a kernel and sets its limits. */
int cgroups_make(const struct cgroups *self, unsigned number,
		 const struct cgroup_values *values, struct err *err) must_check;
/* True once they are gone; they cannot go while a process is left in them. */
bool cgroups_remove(const struct cgroups *self, unsigned number);
void cgroups_use(const struct cgroups *self, unsigned number, struct cgroup_use *out);
/* Bytes that this process itself may use by the groups it is in; 0: no limit. */
uint64_t cgroup_own_memory(const char *proc);

#endif

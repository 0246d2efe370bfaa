/* supervise - what the supervisor's files share.  Nobody else includes it.
 * SPDX-License-Identifier: MIT */
#ifndef KERNELMGR_SUPERVISE_H
#define KERNELMGR_SUPERVISE_H

#include "kernelmgr/plan.h"

enum { CONTROL = 3 }; /* descriptor of the socket to the daemon */

/* One message to the daemon. */
void tell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Tells "failed WORDS: " with the text of errno, and ends this process. */
_Noreturn void fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Tier U: signals to the kernel and its own need its id or a capability, files of the
 * daemon the daemon's.  As the real id stays, the kernel may never signal us. */
void act_as_kernel(const struct plan *plan, bool on);

/* rootfs.c.  All of these fail() rather than return. */
/* Before the namespaces are made, where the kernel runs as somebody else: what belongs
 * to the owner of a directory that it gets shall belong to it there. */
void rootfs_map_owners(struct plan *plan);
/* Detached copies of what the plan names, taken while the whole machine can be seen. */
void rootfs_gather(struct plan *plan);
/* In a mount namespace of our own: replaces the root by what was gathered. */
void rootfs_enter(struct plan *plan);

/* confine.c */
/* Starts process 1 of new namespaces; returns as fork() does. */
int confine_clone(const struct plan *plan);
/* In it, first of all: its ids and its network. */
void confine_begin(const struct plan *plan);
/* Gives up for good what is not needed: ids, capabilities, new privileges; then
 * Landlock and the filter.  For this process and whatever it starts.  Returns the
 * listener of the guarded calls (guard.h), or -1. */
int confine(const struct plan *plan);
/* Of these only the ids and capabilities. */
void confine_rights(const struct plan *plan);
void confine_limits(const struct plan *plan);
/* While the machine can be seen: puts this process, and whatever it starts, into the
 * control groups of the plan, and makes it the first to go when memory is short. */
void confine_group(const struct plan *plan);
/* Removes them, if nothing is left in them. */
void confine_remove_groups(const struct plan *plan);

#endif

/*
 * owners - tier U: a user id of its own for each workspace, for a daemon that may
 * change ids but make no namespaces.  A workspace's id is the number of its group too;
 * the daemon joins that group and gives directories to it, which takes no right to
 * change owners.  Which workspace has which id is kept in the state directory.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef KERNELMGR_OWNERS_H
#define KERNELMGR_OWNERS_H

#include <sys/types.h>

#include "wire/err.h"

struct owners;

/* Fails if this process may not change ids, or has no range of ids to give. */
int owners_open(struct owners **out, const char *dir, struct err *err) must_check;
void owners_close(struct owners **self);
/* The id of a workspace, a new one if it has none yet. */
int owners_find(struct owners *self, const char *workspace, uid_t *out,
		struct err *err) must_check;
/* Makes the directory if it is missing, joins the group, gives it the directory (mode
 * 2770), and lets everybody pass through those above it up to root, which are ours. */
int owners_give(uid_t owner, const char *dir, const char *root,
		struct err *err) must_check;

#endif

/*
 * branches - where the branches of a workspace are, and what they are called.  A branch
 * is a workspace named WORKSPACE@BRANCH, of the same user.  Its files lie in
 * .branches/WORKSPACE@BRANCH below the work directory: on the same file system, so that
 * copies can share their blocks, and where what the user owns is looked for; out of the
 * way of list_files, which leaves out names that start with a dot.  That directory
 * appears whole, and last: a branch is there when it is.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef KERNELMGR_BRANCHES_H
#define KERNELMGR_BRANCHES_H

#include <limits.h>
#include <stdbool.h>

#include "kernelmgr/config.h"
#include "kernelmgr/names.h"
#include "wire/buf.h"
#include "wire/err.h"

#define BRANCHES_DIR ".branches"

struct branch_place {
	char name[WORKSPACE_NAME_SIZE];
	char dir[PATH_MAX];     /* of its files */
	char partial[PATH_MAX]; /* where they are copied to first */
};

/* True for [A-Za-z0-9._-]{1,32} that does not start with a dot. */
bool branch_name_is_good(const char *name);
/* What the name of a workspace says after its @; "" if that is no branch. */
const char *branch_of(const char *workspace);
/* The branch of that name of this workspace or, if this is itself a branch, of the one
 * that it comes from: a user's branches are all equal.  Fails on a bad name. */
int branch_find_place(struct branch_place *out, const struct config *config,
		      const char *workspace, const char *branch,
		      struct err *err) must_check;
bool branch_is_there(const struct branch_place *self);
/* Appends the names of a workspace's branches: "a, b"; "none". */
void branch_list(const struct config *config, const char *workspace, struct buf *out);

#endif

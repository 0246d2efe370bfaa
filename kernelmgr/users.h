/*
 * users - where the workspaces of users are, and that of all, which is for who comes in
 * without a name.  It is the work directory itself as long as nobody has a name.  Where
 * there are users it lies beside theirs, so that what keeps users apart keeps it apart
 * from them: no tier but N could take a part out of what it sees, and who may write to
 * the directory above could rename them.
 *
 *   users/NAME   a user's
 *   users/@all   that of all; it is there when there are users, or were
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef KERNELMGR_USERS_H
#define KERNELMGR_USERS_H

#include <limits.h>

#include "kernelmgr/config.h"
#include "wire/err.h"

/* The name of the workspace of all. */
#define USERS_ALL "default"

/* A user's name is [A-Za-z0-9._-]{1,64}, does not start with a dot, and is not that of
 * the workspace of all.  ERR_ARGUMENT, in words. */
int users_check_name(const char *name, struct err *err) must_check;
/* Where the workspace of all is. */
int users_find_all(char out[PATH_MAX], const struct config *config,
		   struct err *err) must_check;
/* Where that of a user is.  From here on there are users. */
int users_find(char out[PATH_MAX], const struct config *config, const char *name,
	       struct err *err) must_check;

#endif

/* names - how long the name of a workspace is at most.
 * SPDX-License-Identifier: MIT */
#ifndef KERNELMGR_NAMES_H
#define KERNELMGR_NAMES_H

enum {
	USER_NAME_MAX = 64,
	BRANCH_NAME_SIZE = 32 + 1,
	WORKSPACE_NAME_SIZE = USER_NAME_MAX + 1 + BRANCH_NAME_SIZE, /* USER@BRANCH */
};

#endif

/*
 * sweep - cleaning up behind processes: the children of this one, and directories that
 * they may have filled.  The daemon and the supervisor share it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef KERNELMGR_SWEEP_H
#define KERNELMGR_SWEEP_H

#include <stdbool.h>
#include <sys/types.h>

/* Kills (SIGKILL) and reaps each child of this process that spare(), if not NULL, does
 * not spare.  Returns how many there were. */
int sweep_children(bool (*spare)(pid_t pid));
/* Removes a directory with all that is in it, however deep and closed; follows no
 * links, even if somebody puts them there meanwhile; leaves no file system. */
void sweep_tree(const char *path);

#endif

/*
 * nolinks - opens directories that code in a workspace could have replaced by a link,
 * such as those of branches.  The daemon, supervisor and store share it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef KERNELMGR_NOLINKS_H
#define KERNELMGR_NOLINKS_H

/* As open(), with O_CLOEXEC; -1 and ELOOP if any part of the path is a link. */
int nolinks_open(const char *path, int flags);

#endif

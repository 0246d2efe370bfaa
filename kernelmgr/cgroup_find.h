/* cgroup_find - where the control group of this process lies in the file system.
 * SPDX-License-Identifier: MIT */
#ifndef KERNELMGR_CGROUP_FIND_H
#define KERNELMGR_CGROUP_FIND_H

#include <limits.h>
#include <stdbool.h>

/* Of the hierarchy with this controller: of version 2 if it is to be had there, else of
 * version 1.  proc has the files "mountinfo" and "cgroup" of the process. */
bool cgroup_find(const char *proc, const char *controller, char out[PATH_MAX],
		 bool *v2);
/* True if a file of a group, such as cgroup.controllers, lists it. */
bool cgroup_lists(const char *group, const char *name, const char *controller);

#endif

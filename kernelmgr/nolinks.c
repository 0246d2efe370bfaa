// SPDX-License-Identifier: MIT
#include "kernelmgr/nolinks.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

int nolinks_open(const char *path, int flags)
{
	struct open_how how = {.flags = (unsigned)flags | O_CLOEXEC,
			       .resolve = RESOLVE_NO_SYMLINKS};

	return (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
}

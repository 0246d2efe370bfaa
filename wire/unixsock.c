// SPDX-License-Identifier: MIT
#include "wire/unixsock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "wire/err.h"
#include "wire/mem.h"

enum { PASSRIGHTS = 83 }; /* SO_PASSRIGHTS, which Debian 12's header does not have */

int unixsock_connect(int fd, const char *path)
{
	owned(close_fd) int found = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	struct stat st;

	if (found < 0 || fstat(found, &st) < 0)
		return -1;
	if (!S_ISSOCK(st.st_mode)) {
		errno = S_ISLNK(st.st_mode) ? ELOOP : ENOTSOCK;
		return -1;
	}
	snprintf(to.sun_path, sizeof to.sun_path, "/proc/self/fd/%d", found);
	return connect(fd, (struct sockaddr *)&to, sizeof to);
}

void unixsock_refuse_descriptors(int fd)
{
	const int off = 0;

	(void)setsockopt(fd, SOL_SOCKET, PASSRIGHTS, &off, sizeof off);
}

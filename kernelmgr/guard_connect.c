// SPDX-License-Identifier: MIT
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernelmgr/guard.h"
#include "kernelmgr/landlock.h"

enum { PATH_AT = offsetof(struct sockaddr_un, sun_path) };

static int reach(int fd, const void *to, socklen_t size)
{
	return connect(fd, to, size) < 0 ? errno : 0;
}

/* Where this descriptor's file lies now.  false and errno if that cannot be said. */
static bool place_of(int fd, char out[PATH_MAX])
{
	char link[40];

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t len = readlink(link, out, PATH_MAX - 1);
	out[len > 0 ? len : 0] = '\0';
	return len > 0;
}

/* The same file, opened from a directory of the kernel's downwards, over no link: where
 * it is said to lie is no proof, as a path may lead into another mount namespace.  The
 * kernel can move nothing of others down there: Landlock keeps it from that. */
static int open_below(int directory, int place)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC,
			       .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
					  RESOLVE_NO_MAGICLINKS};
	char path[PATH_MAX], above[PATH_MAX];

	if (!place_of(place, path) || !place_of(directory, above))
		return -1;
	size_t len = strlen(above);
	if (strncmp(path, above, len) != 0 || path[len] != '/')
		return -1;
	return (int)syscall(SYS_openat2, directory, path + len + 1, &how, sizeof how);
}

static bool is_same(int a, int b)
{
	struct stat of_a, of_b;

	return fstat(a, &of_a) == 0 && fstat(b, &of_b) == 0 &&
	       of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

static int open_own(const struct guard *self, int place)
{
	int fd = -1;

	for (size_t i = 0; i < self->own_count && fd < 0; i++)
		fd = open_below(self->own[i], place);
	return fd >= 0 && is_same(fd, place) ? fd : -1;
}

/* As the caller sees it: its /proc/self is not ours. */
static void copy_path(char out[PATH_MAX], const struct guard_call *call)
{
	static const char *const selves[] = {"/proc/self/", "/proc/thread-self/"};
	size_t most = call->size - PATH_AT;
	const char *path = call->to.unix_path.sun_path;
	int len = (int)strnlen(path, most);

	for (size_t i = 0; i < sizeof selves / sizeof selves[0]; i++) {
		size_t begins = strlen(selves[i]);

		if ((size_t)len < begins || memcmp(path, selves[i], begins) != 0)
			continue;
		snprintf(out, PATH_MAX, "/proc/%d/%.*s", (int)call->caller,
			 len - (int)begins, path + begins);
		return;
	}
	snprintf(out, PATH_MAX, "%.*s", len, path);
}

/* What the path leads to is found, opened from above, and connected to by its
 * descriptor: what is judged is what is reached. */
static int reach_path(const struct guard *self, const struct guard_call *call)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	char path[PATH_MAX];

	copy_path(path, call);
	int place = openat(call->cwd, path, O_PATH | O_CLOEXEC);
	if (place < 0)
		return errno;
	int own = open_own(self, place);
	if (own < 0)
		return EACCES;
	snprintf(to.sun_path, sizeof to.sun_path, "/proc/self/fd/%d", own);
	return reach(call->socket, &to, sizeof to);
}

static int reach_unix(const struct guard *self, const struct guard_call *call)
{
	bool named = call->to.any.sa_family == AF_UNIX && call->size > PATH_AT;

	if (call->size > sizeof call->to.unix_path)
		return EINVAL;
	if (named && call->to.unix_path.sun_path[0])
		return reach_path(self, call);
	if (named && landlock_abi() < LANDLOCK_ABI_NAMES)
		return EPERM;
	/* guard_begin() has put us behind the rule for abstract names; without a name
	 * it fails. */
	return reach(call->socket, &call->to, call->size);
}

static int reach_other(const struct guard *self, const struct guard_call *call)
{
	if (self->ports >= 0 && landlock_enter(self->ports) < 0)
		return EACCES;
	return reach(call->socket, &call->to, call->size);
}

/* By what the socket is, and not the address: only a UNIX socket looks for a path. */
int guard_connect(const struct guard *self, const struct guard_call *call)
{
	int family;
	socklen_t size = sizeof family;

	if (getsockopt(call->socket, SOL_SOCKET, SO_DOMAIN, &family, &size) < 0)
		return errno;
	return family == AF_UNIX ? reach_unix(self, call) : reach_other(self, call);
}

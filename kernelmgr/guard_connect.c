// SPDX-License-Identifier: MIT
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
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

/* The kernel can move nothing of others below a directory of its own, nor a link to
 * it: Landlock keeps it from both. */
static bool is_own(const struct guard *self, int place)
{
	char path[PATH_MAX], own[PATH_MAX];

	if (!place_of(place, path))
		return false;
	for (size_t i = 0; i < self->own_count; i++) {
		if (!place_of(self->own[i], own))
			continue;
		size_t len = strlen(own);
		if (strncmp(path, own, len) == 0 && path[len] == '/')
			return true;
	}
	return false;
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

/* What is found by the path is held, judged, and connected to by its descriptor. */
static int reach_path(const struct guard *self, const struct guard_call *call)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	char path[PATH_MAX];

	copy_path(path, call);
	int place = openat(call->cwd, path, O_PATH | O_CLOEXEC);
	if (place < 0)
		return errno;
	if (!is_own(self, place))
		return EACCES;
	snprintf(to.sun_path, sizeof to.sun_path, "/proc/self/fd/%d", place);
	return reach(call->socket, &to, sizeof to);
}

static int reach_unix(const struct guard *self, const struct guard_call *call)
{
	bool named = call->to.any.sa_family == AF_UNIX && call->size > PATH_AT;

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

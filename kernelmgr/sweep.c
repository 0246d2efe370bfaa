// SPDX-License-Identifier: MIT
#include "kernelmgr/sweep.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* The parent's pid in /proc/PID/stat; the name before it may hold anything. */
static pid_t parent_of(const char *pid)
{
	char path[64], text[512];
	int ppid = 0;

	snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	ssize_t len = read(fd, text, sizeof text - 1);
	close(fd);
	if (len <= 0)
		return 0;
	text[len] = '\0';
	const char *end = strrchr(text, ')');
	return end && sscanf(end, ") %*c %d", &ppid) == 1 ? ppid : 0;
}

/* A child may have another id, and we no right to kill what is not ours but one to
 * become its owner (tier U). */
static void kill_as_owner(pid_t pid, const char *name)
{
	char path[64];
	struct stat st;

	if (kill(pid, SIGKILL) == 0 || errno != EPERM)
		return;
	snprintf(path, sizeof path, "/proc/%.20s", name);
	if (stat(path, &st) < 0 || setresuid((uid_t)-1, st.st_uid, (uid_t)-1) < 0)
		return;
	kill(pid, SIGKILL);
	if (setresuid((uid_t)-1, getuid(), (uid_t)-1) < 0)
		abort();
}

int sweep_children(bool (*spare)(pid_t pid))
{
	DIR *proc = opendir("/proc");
	pid_t self = getpid();
	int found = 0;

	if (!proc)
		return 0;
	for (struct dirent *entry; (entry = readdir(proc));) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (!isdigit((unsigned char)entry->d_name[0]) ||
		    parent_of(entry->d_name) != self || (spare && spare(pid)))
			continue;
		found++;
		kill_as_owner(pid, entry->d_name);
		waitpid(pid, NULL, WNOHANG);
	}
	closedir(proc);
	return found;
}

/* ---- directories ---- */

enum {
	DEPTH_MAX = 32,      /* of descriptors that are open at once */
	PASSES_MAX = 100000, /* each makes what is deeper that much less deep */
};

struct sweeping {
	int top;
	dev_t device;
	unsigned moved; /* directories, so far: too deep where they were */
};

/* Whatever mode it has; -1 if it is a link, or not ours. */
static int open_to_empty(int above, const char *name)
{
	int flags = O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(above, name, O_RDONLY | flags);
	char path[64];

	if (fd >= 0) {
		fchmod(fd, 0700);
		return fd;
	}
	int closed = openat(above, name, O_PATH | flags);
	if (closed < 0)
		return -1;
	snprintf(path, sizeof path, "/proc/self/fd/%d", closed);
	if (chmod(path, 0700) == 0)
		fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	close(closed);
	return fd;
}

/* NOLINTBEGIN(misc-no-recursion): DEPTH_MAX bounds it */
static void empty(struct sweeping *self, int dir, unsigned depth);

static void remove_one(struct sweeping *self, int dir, const char *name, unsigned depth)
{
	char flat[32];
	struct stat st;

	if (unlinkat(dir, name, 0) == 0 || (errno != EISDIR && errno != EPERM))
		return;
	if (depth == DEPTH_MAX) {
		snprintf(flat, sizeof flat, ".deep-%u", ++self->moved);
		renameat(dir, name, self->top, flat);
		return;
	}
	int fd = open_to_empty(dir, name);
	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == self->device)
		empty(self, fd, depth + 1);
	else if (fd >= 0)
		close(fd);
	unlinkat(dir, name, AT_REMOVEDIR);
}

/* Consumes dir. */
static void empty(struct sweeping *self, int dir, unsigned depth)
{
	DIR *list = fdopendir(dir);

	if (!list) {
		close(dir);
		return;
	}
	for (struct dirent *entry; (entry = readdir(list));)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			remove_one(self, dir, entry->d_name, depth);
	closedir(list);
}
/* NOLINTEND(misc-no-recursion) */

void sweep_tree(const char *path)
{
	struct sweeping self = {.top = open_to_empty(AT_FDCWD, path)};
	struct stat st;
	unsigned before;
	int passes = 0;

	if (self.top >= 0 && fstat(self.top, &st) == 0) {
		self.device = st.st_dev;
		do {
			int fd = open_to_empty(AT_FDCWD, path);

			before = self.moved;
			if (fd >= 0)
				empty(&self, fd, 0);
		} while (self.moved != before && ++passes < PASSES_MAX);
	}
	if (self.top >= 0)
		close(self.top);
	unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

// SPDX-License-Identifier: MIT
#include "kernelmgr/sweep.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
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

static int remove_entry(const char *path, const struct stat *st, int flag,
			struct FTW *ftw)
{
	(void)st, (void)flag, (void)ftw;
	remove(path);
	return 0;
}

void sweep_tree(const char *path)
{
	nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

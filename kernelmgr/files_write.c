// SPDX-License-Identifier: MIT
#include "kernelmgr/files_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "wire/mem.h"

enum { TEMPORARY_SIZE = 40 };

struct target {      /* where a file is to be */
	int folder;  /* owned */
	bool shared; /* the folder's group may write in it, so in its files too */
	const char *name;
	bool exists;
	mode_t mode; /* then */
};

static void target_finish(struct target *self)
{
	close_fd(&self->folder);
}

static int refuse_write(const char *shown, struct err *err)
{
	switch (errno) {
	case EACCES:
	case EPERM:
	case EROFS:
		return err_set(err, ERR_ARGUMENT,
			       "\"%s\" may not be written there: change the folder's "
			       "mode, or write with run_python",
			       shown);
	case ENOSPC:
	case EDQUOT:
		return err_set(err, ERR_LIMIT,
			       "no room is left for \"%s\": delete files first", shown);
	case ELOOP:
	case ENOTDIR:
		return err_set(err, ERR_ARGUMENT,
			       "\"%s\" leads through a link or a file: files are "
			       "written to real folders only",
			       shown);
	case ENAMETOOLONG:
		return err_set(err, ERR_ARGUMENT, "the path \"%s\" is too long", shown);
	default:
		return err_set(err, ERR_SYSTEM, "write \"%s\"", shown);
	}
}

/* ---- the folder ---- */

static bool group_writes(int folder)
{
	struct stat status;

	return fstat(folder, &status) == 0 && (status.st_mode & S_IWGRP);
}

/* One step down, never by a link; the folder is made if it is missing. */
static int enter(int *folder, const char *name)
{
	int flags = O_RDONLY | O_DIRECTORY;
	int next = files_open_at(*folder, name, flags, 0, RESOLVE_NO_SYMLINKS);

	if (next < 0 && errno == ENOENT) {
		if (mkdirat(*folder, name, 0777) && errno != EEXIST)
			return -1;
		next = files_open_at(*folder, name, flags, 0, RESOLVE_NO_SYMLINKS);
		/* The umask is the daemon's own matter. */
		if (next >= 0 && group_writes(*folder) && fchmod(next, 02775)) {
			close(next);
			return -1;
		}
	}
	if (next < 0)
		return -1;
	close_fd(folder);
	*folder = next;
	return 0;
}

/* Folders are made on the way, so a path that comes back out is no good. */
static bool goes_up(const char *path)
{
	for (const char *at = path; *at; at += strspn(at, "/")) {
		size_t size = strcspn(at, "/");

		if (size == 2 && at[0] == '.' && at[1] == '.' && at[2])
			return true;
		at += size;
	}
	return false;
}

/* Walks to the folder of path, which is taken apart; *name is what is left of it. */
static int walk(int *folder, char *path, const char **name)
{
	char *at = path, *slash;

	while ((slash = strchr(at, '/'))) {
		*slash = '\0';
		if (*at && strcmp(at, ".") != 0 && enter(folder, at))
			return -1;
		at = slash + 1;
	}
	*name = at;
	return 0;
}

/* What is there already may be replaced if it is a file. */
static int look(struct target *self, const char *shown, struct err *err)
{
	struct stat status;

	if (fstatat(self->folder, self->name, &status, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : refuse_write(shown, err);
	if (S_ISDIR(status.st_mode))
		return err_set(err, ERR_ARGUMENT,
			       "\"%s\" is a directory: name a file in it", shown);
	if (S_ISLNK(status.st_mode))
		return err_set(err, ERR_ARGUMENT,
			       "\"%s\" is a link: name the file that it leads to",
			       shown);
	if (!S_ISREG(status.st_mode))
		return err_set(err, ERR_ARGUMENT,
			       "\"%s\" is not a regular file: name another", shown);
	self->exists = true;
	self->mode = status.st_mode & 0777;
	return 0;
}

static int find(struct target *self, const struct files *files, char *path,
		const char *shown, struct err *err)
{
	if (goes_up(path))
		return err_set(err, ERR_ARGUMENT,
			       "\"%s\" goes up by \"..\": name a place in the "
			       "workspace without it",
			       shown);
	self->folder = files_open_at(files->fd, ".", O_RDONLY | O_DIRECTORY, 0, 0);
	if (self->folder < 0 || walk(&self->folder, path, &self->name))
		return refuse_write(shown, err);
	if (!*self->name || !strcmp(self->name, ".") || !strcmp(self->name, ".."))
		return err_set(err, ERR_ARGUMENT,
			       "\"%s\" ends in no name: name a file in the folder",
			       shown);
	if (strlen(self->name) > NAME_MAX) {
		errno = ENAMETOOLONG;
		return refuse_write(shown, err);
	}
	self->shared = group_writes(self->folder);
	return look(self, shown, err);
}

/* ---- the file ---- */

static int write_all(int fd, const char *data, size_t size)
{
	while (size) {
		ssize_t put = write(fd, data, size);

		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return -1;
		data += put;
		size -= (size_t)put;
	}
	return 0;
}

/* Under a temporary name, then renamed.  Not synced: that would hold up the loop, and
 * what a cell writes is not either. */
static int put(const struct target *self, const char *data, size_t size)
{
	mode_t mode = self->exists ? self->mode : self->shared ? 0664 : 0644;
	char temporary[TEMPORARY_SIZE];

	snprintf(temporary, sizeof temporary, ".vivarium-%08x%08x",
		 randombytes_random(), randombytes_random());
	owned(close_fd) int fd = files_open_at(
	    self->folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600, 0);
	if (fd < 0)
		return -1;
	if (write_all(fd, data, size) || fchmod(fd, mode) ||
	    renameat(self->folder, temporary, self->folder, self->name)) {
		int why = errno;

		unlinkat(self->folder, temporary, 0);
		errno = why;
		return -1;
	}
	return 0;
}

int files_write(const struct files *self, const char *path, size_t path_size,
		const void *data, size_t size, bool *created, struct err *err)
{
	struct files_label label = files_label(path, path_size);
	owned(target_finish) struct target target = {.folder = -1};
	char name[PATH_MAX];

	if (files_check_path(path, path_size, label.text, err))
		return -1;
	if (size > FILES_WRITE_MAX)
		return err_set(err, ERR_LIMIT,
			       "%zu bytes for \"%s\" are over the limit of %d for "
			       "one call: write them with run_python",
			       size, label.text, FILES_WRITE_MAX);
	memcpy(name, path, path_size);
	name[path_size] = '\0';
	if (find(&target, self, name, label.text, err))
		return -1;
	*created = !target.exists;
	return put(&target, data, size) ? refuse_write(label.text, err) : 0;
}

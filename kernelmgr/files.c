// SPDX-License-Identifier: MIT
#include "kernelmgr/files_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernelmgr/nolinks.h"
#include "wire/mem.h"
#include "wire/utf8.h"

enum { RACES_MAX = 8 }; /* tries of openat2 against renames elsewhere */

struct files_label files_label(const char *path, size_t size)
{
	owned(buf_finish) struct buf shown = {0};
	struct files_label label = {0};

	utf8_show(&shown, path, size < PATH_MAX ? size : PATH_MAX);
	/* All of it is valid, so what is not is a character cut in two. */
	size_t used = utf8_valid_up_to(
	    buf_str(&shown), shown.size < FILES_LABEL ? shown.size : FILES_LABEL);
	memcpy(label.text, buf_str(&shown), used);
	if (used < shown.size)
		memcpy(label.text + used, "...", 4);
	return label;
}

/* ---- opening ---- */

/* Makes dir and what is missing above it. */
static int make_dirs(const char *dir, struct err *err)
{
	owned(free_text) char *path = xstrdup(dir);

	for (char *at = path; *at;) {
		at += strspn(at, "/");
		at += strcspn(at, "/");
		char kept = *at;
		*at = '\0';
		if (mkdir(path, 0700) && errno != EEXIST && errno != EROFS)
			return err_set(err, ERR_SYSTEM, "create the directory %s",
				       path);
		*at = kept;
	}
	return 0;
}

static int open_dir(struct files **out, const char *dir, bool links, struct err *err)
{
	owned(files_close) struct files *self = xcalloc(1, sizeof *self);
	int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

	self->fd = links ? open(dir, flags) : nolinks_open(dir, flags);
	if (self->fd < 0 && errno == ENOENT) {
		if (make_dirs(dir, err))
			return -1;
		self->fd = links ? open(dir, flags) : nolinks_open(dir, flags);
	}
	if (self->fd < 0)
		return err_set(err, ERR_SYSTEM, "open the directory %s", dir);
	*out = take(&self);
	return 0;
}

int files_open(struct files **out, const char *dir, struct err *err)
{
	return open_dir(out, dir, true, err);
}

int files_open_real(struct files **out, const char *dir, struct err *err)
{
	return open_dir(out, dir, false, err);
}

int files_renew(struct files *self, const char *dir, struct err *err)
{
	owned(files_close) struct files *now = NULL;
	struct stat there, known;
	int former = self->fd;

	if (stat(dir, &there) == 0 && fstat(self->fd, &known) == 0 &&
	    there.st_dev == known.st_dev && there.st_ino == known.st_ino)
		return 0;
	if (open_dir(&now, dir, false, err) < 0)
		return -1;
	self->fd = now->fd;
	now->fd = former; /* closed with it */
	return 1;
}

void files_close(struct files **self)
{
	if (!*self)
		return;
	close_fd(&(*self)->fd);
	free(*self);
	*self = NULL;
}

int files_fd(const struct files *self)
{
	return self->fd;
}

int files_open_at(int dir, const char *path, int flags, unsigned mode, uint64_t resolve)
{
	struct open_how how = {
	    .flags = (unsigned)(flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK),
	    .mode = mode,
	    .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | resolve,
	};
	long fd = -1;

	/* EAGAIN: something was renamed, and the kernel cannot tell what that means
	 * for a ".." on the way. */
	for (int i = 0; i < RACES_MAX; i++) {
		fd = syscall(SYS_openat2, dir, path, &how, sizeof how);
		if (fd >= 0 || errno != EAGAIN)
			break;
	}
	return (int)fd;
}

int files_open_beneath(const struct files *self, const char *path, int flags,
		       uint64_t resolve)
{
	return files_open_at(self->fd, path, flags, 0, resolve);
}

int files_refuse(const char *shown, struct err *err)
{
	switch (errno) {
	case EXDEV:
		return err_set(err, ERR_ARGUMENT,
			       "\"%s\" leads out of the workspace (by \"..\" or a "
			       "link): copy what is needed into it with run_python",
			       shown);
	case ENOENT:
	case ENOTDIR:
		return err_set(err, ERR_ARGUMENT,
			       "there is no file \"%s\" in the workspace: list_files "
			       "shows what is there",
			       shown);
	case ELOOP:
		return err_set(err, ERR_ARGUMENT,
			       "\"%s\" is a link that leads nowhere: name the file",
			       shown);
	case ENAMETOOLONG:
		return err_set(err, ERR_ARGUMENT, "the path \"%s\" is too long", shown);
	case EACCES:
	case EPERM:
		return err_set(err, ERR_ARGUMENT,
			       "\"%s\" may not be read: change its mode with "
			       "run_python",
			       shown);
	case ENXIO:
		return err_set(err, ERR_ARGUMENT,
			       "\"%s\" is not a regular file: name one", shown);
	case EAGAIN:
		return err_set(err, ERR_ARGUMENT,
			       "\"%s\" is being moved: call again when it rests",
			       shown);
	default:
		return err_set(err, ERR_SYSTEM, "open \"%s\"", shown);
	}
}

int files_check_path(const char *path, size_t size, const char *shown, struct err *err)
{
	if (!size)
		return err_set(err, ERR_ARGUMENT,
			       "the path is empty: name a file in the workspace");
	if (memchr(path, '\0', size))
		return err_set(err, ERR_ARGUMENT,
			       "the path \"%s\" holds a NUL character: leave it out",
			       shown);
	if (size >= PATH_MAX)
		return err_set(err, ERR_ARGUMENT,
			       "the path \"%s\" of %zu bytes is over the limit of %d",
			       shown, size, PATH_MAX - 1);
	if (path[0] == '/')
		return err_set(err, ERR_ARGUMENT,
			       "\"%s\" is an absolute path: give it relative to the "
			       "workspace",
			       shown);
	return 0;
}

int files_open_regular(const struct files *self, const char *path, size_t size,
		       struct stat *status, struct err *err)
{
	struct files_label label = files_label(path, size);
	owned(close_fd) int fd = -1;
	char name[PATH_MAX];

	if (files_check_path(path, size, label.text, err))
		return -1;
	memcpy(name, path, size);
	name[size] = '\0';
	fd = files_open_beneath(self, name, O_RDONLY, 0);
	if (fd < 0)
		return files_refuse(label.text, err);
	if (fstat(fd, status))
		return err_set(err, ERR_SYSTEM, "look at \"%s\"", label.text);
	if (S_ISDIR(status->st_mode))
		return err_set(
		    err, ERR_ARGUMENT,
		    "\"%s\" is a directory: list_files shows the files in it",
		    label.text);
	if (!S_ISREG(status->st_mode)) {
		errno = ENXIO;
		return files_refuse(label.text, err);
	}
	int result = fd;
	fd = -1;
	return result;
}

int files_open_png(const struct files *self, const char *path, size_t path_size,
		   int *out_fd, struct err *err)
{
	struct stat status;
	owned(close_fd) int fd =
	    files_open_regular(self, path, path_size, &status, err);

	if (fd < 0)
		return -1;
	if (status.st_size > FILES_PNG_MAX)
		return err_set(err, ERR_LIMIT,
			       "\"%s\" of %jd bytes is over the limit of %d for a "
			       "picture: save a smaller one",
			       files_label(path, path_size).text,
			       (intmax_t)status.st_size, FILES_PNG_MAX);
	*out_fd = fd;
	fd = -1;
	return 0;
}

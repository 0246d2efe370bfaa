// SPDX-License-Identifier: MIT
#include "kernelmgr/files.h"

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

enum {
	BINARY_PEEK = 8192, /* bytes in which a NUL makes a file binary */
	BYTES_PER_CHAR = 4, /* at most, in UTF-8 */
	RACES_MAX = 8,      /* tries of openat2 against renames elsewhere */
	SETTLE_MAX = 3,     /* tries to read a file between two changes */
	LABEL_MAX = 100,    /* bytes of a path inside a message, which is short */
};

struct files {
	int fd; /* owned */
};

struct label { /* a path as it is shown in a message */
	char text[LABEL_MAX + sizeof "..."];
};

/* Bytes of one file, before they are made text. */
struct piece {
	char *data; /* owned */
	size_t size;
	uint64_t file_size;
};

static void piece_finish(struct piece *self)
{
	free(self->data);
	*self = (struct piece){0};
}

static struct label label_of(const char *path, size_t size)
{
	owned(buf_finish) struct buf shown = {0};
	struct label label = {0};

	utf8_show(&shown, path, size < PATH_MAX ? size : PATH_MAX);
	/* All of it is valid, so what is not is a character cut in two. */
	size_t used = utf8_valid_up_to(buf_str(&shown),
				       shown.size < LABEL_MAX ? shown.size : LABEL_MAX);
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

int files_open_beneath(const struct files *self, const char *path, int flags,
		       uint64_t resolve)
{
	struct open_how how = {
	    .flags = (unsigned)(flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK),
	    .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | resolve,
	};
	long fd = -1;

	/* EAGAIN: something was renamed, and the kernel cannot tell what that means
	 * for a ".." on the way. */
	for (int i = 0; i < RACES_MAX; i++) {
		fd = syscall(SYS_openat2, self->fd, path, &how, sizeof how);
		if (fd >= 0 || errno != EAGAIN)
			break;
	}
	return (int)fd;
}

static int refuse_open(const char *shown, struct err *err)
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

static int check_path(const char *path, size_t size, const char *shown, struct err *err)
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

/* Opens a regular file, whose status goes to *status; returns the descriptor. */
static int open_regular(const struct files *self, const char *path, size_t size,
			struct stat *status, struct err *err)
{
	struct label label = label_of(path, size);
	owned(close_fd) int fd = -1;
	char name[PATH_MAX];

	if (check_path(path, size, label.text, err))
		return -1;
	memcpy(name, path, size);
	name[size] = '\0';
	fd = files_open_beneath(self, name, O_RDONLY, 0);
	if (fd < 0)
		return refuse_open(label.text, err);
	if (fstat(fd, status))
		return err_set(err, ERR_SYSTEM, "look at \"%s\"", label.text);
	if (S_ISDIR(status->st_mode))
		return err_set(
		    err, ERR_ARGUMENT,
		    "\"%s\" is a directory: list_files shows the files in it",
		    label.text);
	if (!S_ISREG(status->st_mode)) {
		errno = ENXIO;
		return refuse_open(label.text, err);
	}
	int result = fd;
	fd = -1;
	return result;
}

int files_open_png(const struct files *self, const char *path, size_t path_size,
		   int *out_fd, struct err *err)
{
	struct stat status;
	owned(close_fd) int fd = open_regular(self, path, path_size, &status, err);

	if (fd < 0)
		return -1;
	if (status.st_size > FILES_PNG_MAX)
		return err_set(err, ERR_LIMIT,
			       "\"%s\" of %jd bytes is over the limit of %d for a "
			       "picture: save a smaller one",
			       label_of(path, path_size).text, (intmax_t)status.st_size,
			       FILES_PNG_MAX);
	*out_fd = fd;
	fd = -1;
	return 0;
}

/* ---- reading ---- */

/* Fills piece from the file's beginning, at most room bytes. */
static int read_piece(int fd, size_t room, struct piece *piece)
{
	while (piece->size < room) {
		ssize_t got = pread(fd, piece->data + piece->size, room - piece->size,
				    (off_t)piece->size);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -1;
		if (!got)
			break;
		piece->size += (size_t)got;
	}
	return 0;
}

/* Did what was read come from one state of the file?  One that only grows, like a log,
 * is never at rest and its beginning stays true. */
static bool settled(const struct stat *before, const struct stat *after,
		    const struct piece *piece, size_t room)
{
	uint64_t expected = (uint64_t)before->st_size;

	if (expected > room)
		expected = room;
	if (piece->size < expected || after->st_size < before->st_size)
		return false;
	return after->st_size > before->st_size ||
	       (after->st_mtim.tv_sec == before->st_mtim.tv_sec &&
		after->st_mtim.tv_nsec == before->st_mtim.tv_nsec);
}

static int read_settled(int fd, size_t budget, struct piece *out, const char *shown,
			struct err *err)
{
	struct stat before, after;

	for (int i = 0; i < SETTLE_MAX; i++) {
		if (fstat(fd, &before))
			return err_set(err, ERR_SYSTEM, "look at \"%s\"", shown);
		/* One byte more than there is: files that are made while they are read
		 * have no size, and the next ones may. */
		size_t room = budget;
		if (before.st_size > 0 && (uint64_t)before.st_size < budget)
			room = (size_t)before.st_size + 1;
		out->data = xrealloc(out->data, room);
		out->size = 0;
		if (read_piece(fd, room, out) || fstat(fd, &after))
			return err_set(err, ERR_SYSTEM, "read \"%s\"", shown);
		out->file_size = (uint64_t)after.st_size;
		if (out->file_size < out->size)
			out->file_size = out->size;
		if (settled(&before, &after, out, room))
			return 0;
	}
	return err_set(err, ERR_ARGUMENT,
		       "\"%s\" changes while it is read: call again when it rests",
		       shown);
}

int files_read_text(const struct files *self, const char *path, size_t path_size,
		    size_t max_chars, struct files_text *out, struct err *err)
{
	struct stat status;
	owned(piece_finish) struct piece piece = {0};
	owned(close_fd) int fd = open_regular(self, path, path_size, &status, err);
	struct label label = label_of(path, path_size);

	if (fd < 0)
		return -1;
	if (max_chars > FILES_CHARS_MAX)
		max_chars = FILES_CHARS_MAX;
	/* Whatever a budget cuts in two lies behind the last character wanted. */
	size_t budget = (max_chars + 1) * BYTES_PER_CHAR;
	if (budget < BINARY_PEEK)
		budget = BINARY_PEEK;
	if (read_settled(fd, budget, &piece, label.text, err))
		return -1;
	size_t peek = piece.size < BINARY_PEEK ? piece.size : BINARY_PEEK;
	if (peek && memchr(piece.data, '\0', peek))
		return err_set(err, ERR_ARGUMENT,
			       "\"%s\" is a binary file of %ju bytes: read it with "
			       "run_python",
			       label.text, (uintmax_t)piece.file_size);
	size_t used = utf8_prefix(piece.data, piece.size, max_chars);
	*out =
	    (struct files_text){.cut = used < piece.file_size, .size = piece.file_size};
	utf8_clean(&out->text, piece.data, used);
	return 0;
}

void files_text_finish(struct files_text *self)
{
	buf_finish(&self->text);
	*self = (struct files_text){0};
}

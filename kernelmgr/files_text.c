// SPDX-License-Identifier: MIT
#include "kernelmgr/files_impl.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernelmgr/coding.h"
#include "wire/mem.h"
#include "wire/utf8.h"

enum {
	SKIP_AT_ONCE = 64 * 1024,
	SETTLE_MAX = 3, /* tries to read a file between two changes */
};

/* Bytes of one file, before they are made text. */
struct piece {
	char *data; /* owned */
	size_t size;
	uint64_t at; /* where in the file they begin */
	uint64_t file_size;
};

struct reading { /* one file on its way to text */
	int fd;
	const char *shown, *path;
	size_t path_size, offset, max_chars;
	enum coding coding;
	size_t mark;    /* bytes of the byte order mark */
	size_t missing; /* of offset: characters that the file does not have */
};

static void piece_finish(struct piece *self)
{
	free(self->data);
	*self = (struct piece){0};
}

/* Fills piece from its place in the file, at most room bytes. */
static int read_piece(int fd, size_t room, struct piece *piece)
{
	piece->size = 0;
	while (piece->size < room) {
		ssize_t got = pread(fd, piece->data + piece->size, room - piece->size,
				    (off_t)(piece->at + piece->size));
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

	expected = expected > piece->at ? expected - piece->at : 0;
	if (expected > room)
		expected = room;
	if (piece->size < expected || after->st_size < before->st_size)
		return false;
	return after->st_size > before->st_size ||
	       (after->st_mtim.tv_sec == before->st_mtim.tv_sec &&
		after->st_mtim.tv_nsec == before->st_mtim.tv_nsec);
}

/* Room for the budget, or for one byte more than there is: files that are made while
 * they are read have no size, and the next ones may. */
static size_t room_for(const struct stat *status, uint64_t at, size_t budget)
{
	uint64_t size = (uint64_t)status->st_size;

	if (size > at && size - at < budget)
		return (size_t)(size - at) + 1;
	return budget;
}

static int read_at(int fd, const struct stat *before, size_t budget, struct piece *out,
		   bool *rests)
{
	size_t room = room_for(before, out->at, budget);
	struct stat after;

	out->data = xrealloc(out->data, room);
	if (read_piece(fd, room, out) || fstat(fd, &after))
		return -1;
	out->file_size = (uint64_t)after.st_size;
	if (out->file_size < out->at + out->size)
		out->file_size = out->at + out->size;
	*rests = settled(before, &after, out, room);
	return 0;
}

/* ---- where the text begins ---- */

static const char *refuse_words(const struct files_kind *kind)
{
	return kind ? kind->words : "a binary file";
}

static int refuse_binary(const struct reading *self, const struct files_kind *kind,
			 uint64_t size, struct err *err)
{
	bool known = kind && kind->reader[0];

	return err_set(err, ERR_ARGUMENT,
		       "\"%s\" is %s of %ju bytes: read it with run_python%s%s%s",
		       self->shown, refuse_words(kind), (uintmax_t)size,
		       known ? " (" : "", known ? kind->reader : "", known ? ")" : "");
}

/* Tells the coding by the file's beginning, or that it is no text. */
static int sniff(struct reading *self, const char *head, size_t size,
		 uint64_t file_size, struct err *err)
{
	self->mark = coding_mark(head, size, &self->coding);
	if (self->mark)
		return 0;
	const struct files_kind *kind =
	    files_kind_of(self->path, self->path_size, head, size);
	if (kind && kind->view != FILES_NOTEBOOK)
		return refuse_binary(self, kind, file_size, err);
	if (!coding_guess(head, size, &self->coding))
		return refuse_binary(self, NULL, file_size, err);
	return 0;
}

/* Sets piece->at behind the characters that are left out. */
static int skip(struct reading *self, struct piece *piece, struct err *err)
{
	owned(piece_finish) struct piece chunk = {.at = self->mark};
	size_t left = self->offset;

	chunk.data = xrealloc(NULL, left ? SKIP_AT_ONCE : 1);
	while (left) {
		if (chunk.at > FILES_SKIP_MAX)
			return err_set(err, ERR_ARGUMENT,
				       "offset %zu lies more than %d MiB inside "
				       "\"%s\": read there with run_python",
				       self->offset, FILES_SKIP_MAX >> 20, self->shown);
		if (read_piece(self->fd, SKIP_AT_ONCE, &chunk))
			return err_set(err, ERR_SYSTEM, "read \"%s\"", self->shown);
		bool last = chunk.size < SKIP_AT_ONCE;
		chunk.at += coding_take(self->coding, chunk.data, chunk.size, last,
					&left, NULL);
		if (last)
			break;
	}
	self->missing = left;
	piece->at = chunk.at;
	return 0;
}

/* ---- reading ---- */

/* The bytes that hold the characters wanted; *rests when they are of one state. */
static int read_once(struct reading *self, struct piece *out, bool *rests,
		     struct err *err)
{
	/* Whatever a budget cuts in two lies behind the last character wanted. */
	size_t budget = (self->max_chars + 1) * CODING_BYTES_MAX + CODING_MARK_MAX;
	struct stat before;

	if (budget < FILES_HEAD)
		budget = FILES_HEAD;
	if (fstat(self->fd, &before))
		return err_set(err, ERR_SYSTEM, "look at \"%s\"", self->shown);
	out->at = 0;
	if (read_at(self->fd, &before, self->offset ? FILES_HEAD : budget, out, rests))
		return err_set(err, ERR_SYSTEM, "read \"%s\"", self->shown);
	if (sniff(self, out->data, out->size < FILES_HEAD ? out->size : FILES_HEAD,
		  out->file_size, err))
		return -1;
	if (!self->offset) {
		out->at = self->mark;
		out->size -= self->mark;
		memmove(out->data, out->data + self->mark, out->size);
		return 0;
	}
	if (skip(self, out, err))
		return -1;
	if (read_at(self->fd, &before, budget, out, rests))
		return err_set(err, ERR_SYSTEM, "read \"%s\"", self->shown);
	return 0;
}

static int read_settled(struct reading *self, struct piece *out, struct err *err)
{
	bool rests = false;

	for (int i = 0; i < SETTLE_MAX && !rests; i++)
		if (read_once(self, out, &rests, err))
			return -1;
	if (!rests)
		return err_set(
		    err, ERR_ARGUMENT,
		    "\"%s\" changes while it is read: call again when it rests",
		    self->shown);
	return 0;
}

static int check_offset(const struct reading *self, struct err *err)
{
	if (!self->missing)
		return 0;
	return err_set(err, ERR_ARGUMENT,
		       "offset is %zu, but \"%s\" has only %zu characters",
		       self->offset, self->shown, self->offset - self->missing);
}

int files_read_text(const struct files *self, const char *path, size_t path_size,
		    size_t offset, size_t max_chars, struct files_text *out,
		    struct err *err)
{
	struct stat status;
	owned(piece_finish) struct piece piece = {0};
	owned(close_fd) int fd =
	    files_open_regular(self, path, path_size, &status, err);
	struct files_label label = files_label(path, path_size);
	struct reading reading = {
	    .fd = fd,
	    .shown = label.text,
	    .path = path,
	    .path_size = path_size,
	    .offset = offset,
	    .max_chars = max_chars < FILES_CHARS_MAX ? max_chars : FILES_CHARS_MAX};

	if (fd < 0 || read_settled(&reading, &piece, err) ||
	    check_offset(&reading, err))
		return -1;
	bool last = piece.at + piece.size >= piece.file_size;
	size_t left = reading.max_chars;
	coding_settle(&reading.coding, piece.data, piece.size, last);
	*out = (struct files_text){.size = piece.file_size,
				   .coding = coding_name(reading.coding)};
	size_t used = coding_take(reading.coding, piece.data, piece.size, last, &left,
				  &out->text);
	out->cut = piece.at + used < piece.file_size;
	out->next = offset + reading.max_chars - left;
	return 0;
}

int files_look(const struct files *self, const char *path, size_t path_size,
	       struct files_look *out, struct err *err)
{
	struct stat status;
	owned(piece_finish) struct piece head = {.data = xrealloc(NULL, FILES_HEAD)};
	owned(close_fd) int fd =
	    files_open_regular(self, path, path_size, &status, err);

	if (fd < 0)
		return -1;
	if (read_piece(fd, FILES_HEAD, &head))
		return err_set(err, ERR_SYSTEM, "read \"%s\"",
			       files_label(path, path_size).text);
	out->kind = files_kind_of(path, path_size, head.data, head.size);
	out->size = (uint64_t)status.st_size;
	out->inode = status.st_ino;
	out->mtime_ns =
	    status.st_mtim.tv_sec * INT64_C(1000000000) + status.st_mtim.tv_nsec;
	return 0;
}

void files_text_finish(struct files_text *self)
{
	buf_finish(&self->text);
	*self = (struct files_text){0};
}

int files_read_bytes(const struct files *self, const char *path, size_t path_size,
		     size_t max, struct buf *out, struct err *err)
{
	struct stat status;
	owned(piece_finish) struct piece piece = {0};
	owned(close_fd) int fd =
	    files_open_regular(self, path, path_size, &status, err);
	struct files_label label = files_label(path, path_size);
	bool rests = false;

	if (fd < 0)
		return -1;
	for (int i = 0; i < SETTLE_MAX && !rests; i++)
		if (fstat(fd, &status) || read_at(fd, &status, max + 1, &piece, &rests))
			return err_set(err, ERR_SYSTEM, "read \"%s\"", label.text);
	if (piece.file_size > max)
		return err_set(err, ERR_LIMIT,
			       "\"%s\" of %ju bytes is over the limit of %zu for one "
			       "answer: read parts of it with run_python",
			       label.text, (uintmax_t)piece.file_size, max);
	if (!rests)
		return err_set(
		    err, ERR_ARGUMENT,
		    "\"%s\" changes while it is read: call again when it rests",
		    label.text);
	buf_add(out, piece.data, piece.size);
	return 0;
}

/*
 * files - the files of one workspace as others may see them.  Whoever runs code there
 * can rename, link and truncate at any moment, so: every path is resolved by
 * openat2(RESOLVE_BENEATH), never checked first and opened after; what was opened is
 * checked to be a regular file; nothing here waits for a FIFO or a device; and every
 * read, write and walk is bounded.  All calls are synchronous and touch the page cache
 * only as much as they must.
 *
 * Paths are relative to the workspace.  They come with their size, since a caller's
 * text may hold a NUL.  Names are bytes; files_show_name() makes them fit to print.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef KERNELMGR_FILES_H
#define KERNELMGR_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernelmgr/files_kind.h"
#include "wire/buf.h"
#include "wire/err.h"

enum {
	FILES_CHARS_MAX = 4u << 20, /* files_read_text() returns no more than this */
	FILES_SKIP_MAX = 64 << 20,  /* bytes looked through to find an offset */
	FILES_PNG_MAX = 64u << 20,  /* bytes; the image helper reads no more */
	FILES_WRITE_MAX = 2 << 20,  /* bytes; as base64 within one request's body */
	FILES_SCAN_LIMIT = 10000,   /* a sensible limit for files_scan() */
	FILES_DEPTH_MAX = 32,       /* directories below one another that are scanned */
};

struct files; /* opaque: an open workspace directory */

/* Opens a workspace; what is missing of dir is created, mode 0700. */
int files_open(struct files **out, const char *dir, struct err *err) must_check;
/* The same, but fails if a part of the path is a link. */
int files_open_real(struct files **out, const char *dir, struct err *err) must_check;
/* Where the directory was removed or replaced: opens what is at its path now, or makes
 * it.  1: so it was; 0: it is the same; -1: it cannot be opened. */
int files_renew(struct files *self, const char *dir, struct err *err) must_check;
void files_close(struct files **self);
/* The directory, for fchdir() and the like.  Borrows until files_close(). */
int files_fd(const struct files *self);
/* openat2() beneath the workspace, with O_CLOEXEC, O_NOCTTY, O_NONBLOCK and more
 * RESOLVE_ flags of the caller's.  -1: errno says why; EXDEV is a way out. */
int files_open_beneath(const struct files *self, const char *path, int flags,
		       uint64_t resolve);

/* ---- one file ---- */

struct files_look {
	const struct files_kind *kind; /* by its beginning; NULL: it may be text */
	uint64_t size;
	uint64_t inode;
	int64_t mtime_ns;
};

/* Opens a file by the same rules as below and says what it is. */
int files_look(const struct files *self, const char *path, size_t path_size,
	       struct files_look *out, struct err *err) must_check;

struct files_text {
	struct buf text;    /* owned; valid UTF-8, broken bytes shown as U+FFFD */
	bool cut;           /* there is more in the file behind it */
	uint64_t size;      /* bytes of the whole file */
	uint64_t next;      /* offset of the character behind it */
	const char *coding; /* "utf-8", "utf-16le"; see coding.h */
};

/* Reads max_chars characters from the one at offset on, and no more bytes there than
 * that takes (or 8 KiB).  A byte order mark is no character.  Fails in one sentence
 * that names the path and what to do instead: for a path that is empty, absolute, too
 * long, leads out of the workspace (also by a link) or to no regular file; for a binary
 * file, of which it says what it is; for an offset behind the end or over
 * FILES_SKIP_MAX bytes inside; for a file that changes meanwhile (one that only grows
 * is read). */
int files_read_text(const struct files *self, const char *path, size_t path_size,
		    size_t offset, size_t max_chars, struct files_text *out,
		    struct err *err) must_check;
/* Frees and clears; fits owned(). */
void files_text_finish(struct files_text *self);
/* Appends all bytes of a file; the same rules, but that it may be binary.  ERR_LIMIT:
 * it has more than max. */
int files_read_bytes(const struct files *self, const char *path, size_t path_size,
		     size_t max, struct buf *out, struct err *err) must_check;
/* Writes a file whole: who reads it meanwhile sees the old bytes or the new ones.
 * Missing folders are made.  A file that is there keeps its mode; a new one may be
 * written by the group where its folder may.  Never through a link, and nothing but a
 * regular file is replaced.  Fails in one sentence. */
int files_write(const struct files *self, const char *path, size_t path_size,
		const void *data, size_t size, bool *created,
		struct err *err) must_check;
/* Opens a file for the image helper's standard input; the same rules.  Caller owns the
 * descriptor.  The size is checked here, the content by the helper; the file may grow
 * after, so the helper has its own cap. */
int files_open_png(const struct files *self, const char *path, size_t path_size,
		   int *out_fd, struct err *err) must_check;

/* ---- all files ---- */

struct files_entry {
	char *path; /* owned by its scan */
	uint64_t size;
	int64_t mtime_ns;
	uint64_t inode;
};

struct files_scan {                  /* zero is an empty one */
	struct files_entry *entries; /* owned; sorted by path, bytewise */
	size_t count;
	char **folders; /* owned; sorted, those without files too */
	size_t folder_count;
	bool more;          /* a limit was reached: there are others */
	int64_t started_ns; /* wall clock */
};

/* Lists the regular files, those nearest to the top first when limit cuts.  Left out:
 * names that start with a dot, __pycache__, links, other file systems, what cannot be
 * entered, what goes away meanwhile. */
int files_scan(const struct files *self, size_t limit, struct files_scan *out,
	       struct err *err) must_check;
/* Frees and clears; fits owned(). */
void files_scan_finish(struct files_scan *self);

struct files_list {
	const struct files_entry **at; /* owned; what it points to is borrowed */
	size_t count;
};

/* The files that are new or changed (size, mtime or inode), by path.  Where before was
 * cut, a file that it lacks is new only when modified since.  Borrows from after. */
void files_diff(const struct files_scan *before, const struct files_scan *after,
		struct files_list *out);
/* The files that are gone, by path.  Borrows from before. */
void files_gone(const struct files_scan *before, const struct files_scan *after,
		struct files_list *out);
/* All files, the newest first.  Borrows from scan. */
void files_newest(const struct files_scan *scan, struct files_list *out);
/* Frees and clears; fits owned(). */
void files_list_finish(struct files_list *self);
/* Is it a *.png, in any case of letters? */
bool files_is_png(const struct files_entry *entry);

/* ---- in words ---- */

enum { FILES_SIZE_TEXT = 8 };

/* "812B", "9.7K", "64K", "4.2M", "1023K", "16E": at most five characters. */
void files_size_text(char out[FILES_SIZE_TEXT], uint64_t size);
/* A name or path on one line: broken UTF-8 as U+FFFD, controls escaped. */
void files_show_name(struct buf *out, const char *path);
/* "fx.png (64K), a.csv (812B)", at most max of them and then "+12 more". */
void files_show_list(struct buf *out, const struct files_list *list, size_t max);
/* "42 files, newest: a.png, b.csv"; "10000+ files" when cut; "no files". */
void files_show_summary(struct buf *out, const struct files_scan *scan, size_t max);

#endif

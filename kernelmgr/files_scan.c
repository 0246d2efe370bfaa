// SPDX-License-Identifier: MIT
#include "kernelmgr/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "wire/mem.h"
#include "wire/utf8.h"
#include "wire/words.h"

/* Names that are looked at for each file that may be listed: what is left out costs
 * time too, and a walk must end soon. */
enum { LOOKS_PER_FILE = 10 };

struct place {      /* a directory still to be read */
	char *path; /* owned; "" is the workspace */
	unsigned depth;
};

struct walk {
	const struct files *files; /* borrowed */
	struct files_scan *out;    /* borrowed */
	struct place *queue;       /* owned; read from next on, so level by level */
	size_t next, count, room;
	size_t limit, looks;
	bool full;
};

static int64_t to_ns(const struct timespec *time)
{
	return (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
}

static void walk_finish(struct walk *self)
{
	for (size_t i = 0; i < self->count; i++)
		free(self->queue[i].path);
	free(self->queue);
	self->queue = NULL;
}

/* Room for one more of size bytes in an array. */
static void *grown(void *array, size_t count, size_t *room, size_t size)
{
	if (count < *room)
		return array;
	*room = *room ? *room * 2 : 16;
	return xrealloc(array, *room * size);
}

static void add_place(struct walk *self, char *path, unsigned depth)
{
	if (depth > FILES_DEPTH_MAX || strlen(path) >= PATH_MAX) {
		self->out->more = true;
		free(path);
		return;
	}
	self->queue = grown(self->queue, self->count, &self->room, sizeof *self->queue);
	self->queue[self->count++] = (struct place){path, depth};
}

static void add_entry(struct walk *self, char *path, const struct stat *status,
		      size_t *room)
{
	struct files_scan *out = self->out;

	out->entries = grown(out->entries, out->count, room, sizeof *out->entries);
	out->entries[out->count++] = (struct files_entry){
	    .path = path,
	    .size = (uint64_t)status->st_size,
	    .mtime_ns = to_ns(&status->st_mtim),
	    .inode = status->st_ino,
	};
}

static bool left_out(const char *name)
{
	return name[0] == '.' || !strcmp(name, "__pycache__");
}

static void visit(struct walk *self, int dir, const struct place *place,
		  const struct dirent *entry, size_t *room)
{
	struct stat status = {0};

	if (left_out(entry->d_name))
		return;
	if (entry->d_type == DT_DIR)
		status.st_mode = S_IFDIR;
	else if (entry->d_type != DT_REG && entry->d_type != DT_UNKNOWN)
		return;
	else if (fstatat(dir, entry->d_name, &status, AT_SYMLINK_NOFOLLOW))
		return; /* gone meanwhile */
	if (!S_ISDIR(status.st_mode) && !S_ISREG(status.st_mode))
		return;
	char *path =
	    xasprintf("%s%s%s", place->path, *place->path ? "/" : "", entry->d_name);
	if (S_ISDIR(status.st_mode)) {
		add_place(self, path, place->depth + 1);
	} else if (self->out->count == self->limit) {
		self->full = true;
		free(path);
	} else {
		add_entry(self, path, &status, room);
	}
}

/* Reads one directory.  What cannot be entered is left out: it belongs to someone
 * else, or was moved meanwhile, or another file system is mounted there. */
static int read_place(struct walk *self, const struct place *place, size_t *room)
{
	int fd = files_open_beneath(self->files, *place->path ? place->path : ".",
				    O_RDONLY | O_DIRECTORY,
				    RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);
	struct dirent *entry;

	if (fd < 0)
		return -1;
	DIR *dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return -1;
	}
	while (!self->full && (entry = readdir(dir))) {
		if (!self->looks--) {
			self->full = true;
			break;
		}
		visit(self, fd, place, entry, room);
	}
	closedir(dir);
	return 0;
}

static int by_path(const void *a, const void *b)
{
	const struct files_entry *x = a, *y = b;

	return strcmp(x->path, y->path);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The places but for the first, which is the workspace itself. */
static void take_folders(struct walk *self)
{
	struct files_scan *out = self->out;

	if (self->count <= 1)
		return;
	out->folders = xcalloc(self->count, sizeof *out->folders);
	for (size_t i = 1; i < self->count; i++)
		out->folders[out->folder_count++] = take(&self->queue[i].path);
	qsort(out->folders, out->folder_count, sizeof *out->folders, by_name);
}

int files_scan(const struct files *self, size_t limit, struct files_scan *out,
	       struct err *err)
{
	owned(files_scan_finish) struct files_scan scan = {0};
	owned(walk_finish) struct walk walk = {
	    .files = self, .out = &scan, .limit = limit, .looks = 1000};
	struct timespec now;
	size_t room = 0;

	/* The clock that stamps files. */
	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	scan.started_ns = to_ns(&now);
	if (limit > SIZE_MAX / LOOKS_PER_FILE / 2)
		limit = SIZE_MAX / LOOKS_PER_FILE / 2;
	walk.looks += limit * LOOKS_PER_FILE;
	add_place(&walk, xstrdup(""), 0);
	while (walk.next < walk.count && !walk.full) {
		struct place place = walk.queue[walk.next++];

		if (read_place(&walk, &place, &room) && !*place.path)
			return err_set(err, ERR_SYSTEM, "list the workspace");
	}
	if (walk.full)
		scan.more = true;
	take_folders(&walk);
	if (scan.count)
		qsort(scan.entries, scan.count, sizeof *scan.entries, by_path);
	*out = scan;
	scan = (struct files_scan){0};
	return 0;
}

void files_scan_finish(struct files_scan *self)
{
	for (size_t i = 0; i < self->count; i++)
		free(self->entries[i].path);
	for (size_t i = 0; i < self->folder_count; i++)
		free(self->folders[i]);
	free(self->folders);
	free(self->entries);
	*self = (struct files_scan){0};
}

/* ---- comparing ---- */

static void list_init(struct files_list *self, const struct files_scan *scan)
{
	*self = (struct files_list){.at = xcalloc(scan->count + 1, sizeof *self->at)};
}

void files_list_finish(struct files_list *self)
{
	free(self->at);
	*self = (struct files_list){0};
}

static bool same(const struct files_entry *a, const struct files_entry *b)
{
	return a->size == b->size && a->mtime_ns == b->mtime_ns && a->inode == b->inode;
}

void files_diff(const struct files_scan *before, const struct files_scan *after,
		struct files_list *out)
{
	size_t old = 0;

	list_init(out, after);
	for (size_t i = 0; i < after->count; i++) {
		const struct files_entry *entry = &after->entries[i];
		int order = -1;

		while (old < before->count) {
			order = strcmp(entry->path, before->entries[old].path);
			if (order <= 0)
				break;
			old++;
		}
		if (old == before->count)
			order = -1;
		bool fresh =
		    order ? !before->more || entry->mtime_ns >= before->started_ns
			  : !same(entry, &before->entries[old]);
		if (fresh)
			out->at[out->count++] = entry;
	}
}

void files_gone(const struct files_scan *before, const struct files_scan *after,
		struct files_list *out)
{
	size_t at = 0;

	list_init(out, before);
	for (size_t i = 0; i < before->count && !after->more; i++) {
		const struct files_entry *entry = &before->entries[i];

		while (at < after->count &&
		       strcmp(after->entries[at].path, entry->path) < 0)
			at++;
		if (at == after->count ||
		    strcmp(after->entries[at].path, entry->path) != 0)
			out->at[out->count++] = entry;
	}
}

static int by_age(const void *a, const void *b)
{
	const struct files_entry *x = *(const struct files_entry *const *)a;
	const struct files_entry *y = *(const struct files_entry *const *)b;

	if (x->mtime_ns != y->mtime_ns)
		return x->mtime_ns > y->mtime_ns ? -1 : 1;
	return strcmp(x->path, y->path);
}

void files_newest(const struct files_scan *scan, struct files_list *out)
{
	list_init(out, scan);
	for (size_t i = 0; i < scan->count; i++)
		out->at[out->count++] = &scan->entries[i];
	qsort(out->at, out->count, sizeof *out->at, by_age);
}

bool files_is_png(const struct files_entry *entry)
{
	size_t len = strlen(entry->path);

	return len > 4 && !strcasecmp(entry->path + len - 4, ".png");
}

/* ---- in words ---- */

void files_size_text(char out[FILES_SIZE_TEXT], uint64_t size)
{
	static const char units[] = "BKMGTPE";
	double value = (double)size;
	size_t unit = 0;

	/* 1023.5 would be shown as 1024. */
	for (; value >= 1023.5 && unit < sizeof units - 2; unit++)
		value /= 1024;
	snprintf(out, FILES_SIZE_TEXT, unit && value < 9.95 ? "%.1f%c" : "%.0f%c",
		 value, units[unit]);
}

void files_show_name(struct buf *out, const char *path)
{
	utf8_show(out, path, strlen(path));
}

void files_show_list(struct buf *out, const struct files_list *list, size_t max)
{
	for (size_t i = 0; i < list->count && i < max; i++) {
		char size[FILES_SIZE_TEXT];

		files_size_text(size, list->at[i]->size);
		buf_text(out, i ? ", " : "");
		files_show_name(out, list->at[i]->path);
		buf_printf(out, " (%s)", size);
	}
	if (list->count > max)
		buf_printf(out, "%s+%zu more", max ? ", " : "", list->count - max);
}

void files_show_summary(struct buf *out, const struct files_scan *scan, size_t max)
{
	owned(files_list_finish) struct files_list newest = {0};

	if (!scan->count) {
		buf_text(out, "no files");
		return;
	}
	buf_printf(out, "%zu%s file%s", scan->count, scan->more ? "+" : "",
		   scan->more ? "s" : plural_s(scan->count));
	files_newest(scan, &newest);
	for (size_t i = 0; i < newest.count && i < max; i++) {
		buf_text(out, i ? ", " : ", newest: ");
		files_show_name(out, newest.at[i]->path);
	}
}

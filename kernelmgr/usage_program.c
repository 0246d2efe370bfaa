// SPDX-License-Identifier: MIT
/*
 * vivarium-usage - measures what the files in some directories take of the disk.  It
 * walks what a kernel may be changing meanwhile: follows no link, leaves no file
 * system, and is bounded in entries, depth and time.
 *
 * usage: vivarium-usage [DIRECTORY SHOWN]...
 * Descriptor 0 is the workspace, measured besides: by its path it could be another
 * directory by now.  Writes to standard output: "BYTES WHY" with WHY one of "all"
 * (nothing was left out), "late" (it took too long: there may be more), "many" (too
 * many, or too deep), "closed" (some may not be entered); then the largest files,
 * "BYTES SHOWN/PATH" each, with control characters as "?".
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	ENTRIES_MAX = 2 * 1000 * 1000,
	DEPTH_MAX = 200, /* each holds a descriptor open */
	SECONDS_MAX = 10,
	LOOK_EVERY = 1024, /* entries between two looks at the clock */
	LEAST = 512,       /* bytes: an entry takes room even if it is empty */
	BLOCK = 512,       /* unit of st_blocks */
	LARGEST = 3,
};

static const char *const reasons[] = {"all", "late", "closed", "many"};
enum reason { ALL, LATE, CLOSED, MANY };

static struct {
	uint64_t bytes;
	char path[PATH_MAX];
} largest[LARGEST]; /* the largest first */

static struct {
	uint64_t bytes;
	long entries;
	bool over;
	enum reason why; /* the worst there was */
	time_t until;
	char path[PATH_MAX]; /* where it is */
} walk;

/* The directories that are being read, from the top on. */
static struct level {
	DIR *directory;
	size_t name_at; /* where its name begins in walk.path */
} levels[DEPTH_MAX];
static int depth;

static void note(enum reason why)
{
	if (why > walk.why)
		walk.why = why;
}

static time_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec;
}

static void keep_largest(const char *name, uint64_t bytes)
{
	size_t at = LARGEST;

	while (at > 0 && largest[at - 1].bytes < bytes)
		at--;
	if (at == LARGEST)
		return;
	memmove(&largest[at + 1], &largest[at], (LARGEST - 1 - at) * sizeof *largest);
	largest[at].bytes = bytes;
	snprintf(largest[at].path, PATH_MAX, "%.3800s%.255s", walk.path, name);
}

/* What has several names counts for each with its part. */
static void count(const char *name, const struct stat *st)
{
	uint64_t bytes = (uint64_t)st->st_blocks * BLOCK;

	if (!S_ISDIR(st->st_mode) && st->st_nlink > 1)
		bytes /= st->st_nlink;
	walk.bytes += bytes > LEAST ? bytes : LEAST;
	if (S_ISREG(st->st_mode))
		keep_largest(name, bytes);
}

static bool goes_on(void)
{
	if (walk.over)
		return false;
	if (++walk.entries > ENTRIES_MAX)
		note(MANY);
	else if (walk.entries % LOOK_EVERY == 0 && now() > walk.until)
		note(LATE);
	else
		return true;
	walk.over = true;
	return false;
}

/* Opens a directory one level down, if it can; the levels above stay open. */
static bool enter(int above, const char *name, size_t name_at)
{
	int fd = openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);

	if (directory) {
		levels[depth++] = (struct level){directory, name_at};
		return true;
	}
	if (fd >= 0)
		close(fd);
	if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP) /* is it gone? */
		note(CLOSED);
	return false;
}

static void go_down(int above, const char *name)
{
	size_t at = strlen(walk.path), len = strlen(name);

	if (depth == DEPTH_MAX || at + len + 2 > sizeof walk.path) {
		note(MANY);
		return;
	}
	snprintf(walk.path + at, sizeof walk.path - at, "%s/", name);
	if (!enter(above, name, at))
		walk.path[at] = '\0';
}

static void look_at(int above, const char *name, dev_t device)
{
	struct stat st;

	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
	    fstatat(above, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_dev != device)
		return;
	count(name, &st);
	if (S_ISDIR(st.st_mode))
		go_down(above, name);
}

/* Of a directory below another, or of that itself. */
static void measure(int above, const char *path, const char *shown)
{
	struct dirent *entry;
	struct stat st;

	snprintf(walk.path, sizeof walk.path, "%s%s", shown, shown[0] ? "/" : "");
	if (!enter(above, path, 0) || fstat(dirfd(levels[0].directory), &st) < 0)
		return; /* it is gone */
	while (depth > 0) {
		struct level *level = &levels[depth - 1];

		entry = goes_on() ? readdir(level->directory) : NULL;
		if (entry) {
			look_at(dirfd(level->directory), entry->d_name, st.st_dev);
			continue;
		}
		closedir(level->directory);
		walk.path[level->name_at] = '\0';
		depth--;
	}
}

int main(int argc, char **argv)
{
	walk.until = now() + SECONDS_MAX;
	measure(STDIN_FILENO, ".", "");
	for (int i = 1; i + 1 < argc; i += 2)
		measure(AT_FDCWD, argv[i], argv[i + 1]);
	printf("%llu %s\n", (unsigned long long)walk.bytes, reasons[walk.why]);
	for (int i = 0; i < LARGEST && largest[i].bytes; i++) {
		for (char *c = largest[i].path; *c; c++)
			if ((unsigned char)*c < ' ' || *c == 0x7f)
				*c = '?';
		printf("%llu %s\n", (unsigned long long)largest[i].bytes,
		       largest[i].path);
	}
	return fflush(stdout) == 0 ? 0 : 1;
}

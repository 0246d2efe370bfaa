// SPDX-License-Identifier: MIT
/*
 * vivarium-usage - measures what the files in some directories take of the disk.  It
 * walks what a kernel may be changing meanwhile: follows no link, leaves no file
 * system, and is bounded in entries, depth and time.
 *
 * usage: vivarium-usage DIRECTORY SHOWN [DIRECTORY SHOWN]...
 * Writes to standard output: "BYTES WHY" with WHY one of "all" (nothing was left out),
 * "late" (it took too long: there may be more), "many" (too many, or too deep),
 * "closed" (some may not be entered); then the largest files, "BYTES SHOWN/PATH" each,
 * with control characters as "?".
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

static void read_directory(int fd, dev_t device, int depth);

static void enter(int above, const char *name, dev_t device, int depth)
{
	size_t at = strlen(walk.path), len = strlen(name);

	if (depth > DEPTH_MAX || at + len + 2 > sizeof walk.path) {
		note(MANY);
		return;
	}
	int fd = openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP)
			note(CLOSED);
		return;
	}
	snprintf(walk.path + at, sizeof walk.path - at, "%s/", name);
	read_directory(fd, device, depth);
	walk.path[at] = '\0';
}

/* Consumes fd. */
static void read_directory(int fd, dev_t device, int depth)
{
	DIR *directory = fdopendir(fd);
	struct dirent *entry;
	struct stat st;

	if (!directory) {
		close(fd);
		note(CLOSED);
		return;
	}
	while ((entry = readdir(directory)) && goes_on()) {
		const char *name = entry->d_name;

		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
		    fstatat(dirfd(directory), name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    st.st_dev != device)
			continue;
		count(name, &st);
		if (S_ISDIR(st.st_mode))
			enter(dirfd(directory), name, device, depth + 1);
	}
	closedir(directory);
}

static void measure(const char *path, const char *shown)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0) {
		if (fd >= 0)
			close(fd);
		return; /* it is gone */
	}
	snprintf(walk.path, sizeof walk.path, "%s%s", shown, shown[0] ? "/" : "");
	read_directory(fd, st.st_dev, 0);
}

int main(int argc, char **argv)
{
	walk.until = now() + SECONDS_MAX;
	for (int i = 1; i + 1 < argc; i += 2)
		measure(argv[i], argv[i + 1]);
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

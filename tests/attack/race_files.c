// SPDX-License-Identifier: MIT
/*
 * race_files DIRECTORY COUNT [naive] - reads files of a workspace as the file tools do,
 * COUNT times, while a thread puts links, directories, FIFOs and devices in their
 * place; tells what came of it: "read N refused N leaked N listed N told N" ("told":
 * lists that named a file of outside).  naive: not by files.c but as many programs do
 * it, by realpath() and a look at the beginning: that this leaks shows that the race is
 * on.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernelmgr/files.h"
#include "wire/mem.h"

#define GOOD "good"
#define SECRET "secret of outside"

enum { RENAME_BOTH = 2 /* RENAME_EXCHANGE */, LIST_EVERY = 100, PNG_EVERY = 4 };

static atomic_bool over;
static char workspace[PATH_MAX]; /* as realpath() has it */
static struct {
	unsigned long read, refused, leaked, listed, told;
} counts;

static void die(const char *what)
{
	perror(what);
	exit(2);
}

static void put(const char *path, const char *text)
{
	owned(close_fd) int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		die(path);
}

/* Of each pair, the first lies in the workspace and is what it seems; the second is put
 * in its place and back, all the time. */
static const char *const pairs[][2] = {
    {"ws/file", "ws/.link"},  {"ws/directory", "ws/.directory"},
    {"ws/fifo", "ws/.fifo"},  {"ws/device", "ws/.device"},
    {"ws/moved", "away/dir"}, {"ws/process", "ws/.process"},
};
static const char *const paths[] = {
    "file",    "directory/f",   "fifo",    "device",
    "process", "moved/../file", "moved/f", "moved/../../outside/f",
};

/* One thread for all: more of them only wait for each other. */
static void *swap_all(void *arg)
{
	while (!over)
		for (size_t i = 0; i < COUNT_OF(pairs); i++)
			if (renameat2(AT_FDCWD, pairs[i][0], AT_FDCWD, pairs[i][1],
				      RENAME_BOTH) < 0)
				die(pairs[i][0]);
	return arg;
}

static void make_all(void)
{
	static const char *const dirs[] = {"ws",   "ws/directory", "ws/moved",
					   "away", "away/dir",     "outside"};

	for (size_t i = 0; i < COUNT_OF(dirs); i++)
		if (mkdir(dirs[i], 0700) < 0)
			die(dirs[i]);
	put("ws/file", GOOD);
	put("ws/directory/f", GOOD);
	put("ws/moved/f", GOOD);
	put("ws/fifo", GOOD);
	put("ws/device", GOOD);
	put("ws/process", GOOD);
	put("outside/f", SECRET);
	put("outside/named-outside", SECRET);
	put("away/dir/f", GOOD); /* comes in whole, as what it is */
	put("away/file", SECRET);
	if (symlink("../outside/f", "ws/.link") < 0 ||
	    symlink("../outside", "ws/.directory") < 0 ||
	    mkfifo("ws/.fifo", 0600) < 0 || symlink("/dev/zero", "ws/.device") < 0 ||
	    symlink("/proc/self/root/proc/self/environ", "ws/.process") < 0)
		die("link");
}

static void judge(const char *text)
{
	if (strcmp(text, GOOD) == 0)
		counts.read++;
	else
		counts.leaked++;
}

static void read_by_tool(const struct files *files, const char *path,
			 unsigned long turn)
{
	owned(files_text_finish) struct files_text text = {0};
	struct err err;
	char bytes[64] = "";
	int fd;

	if (turn % PNG_EVERY == 0) {
		if (files_open_png(files, path, strlen(path), &fd, &err) < 0) {
			counts.refused++;
			return;
		}
		if (read(fd, bytes, sizeof bytes - 1) >= 0)
			judge(bytes);
		close(fd);
	} else if (files_read_text(files, path, strlen(path), 0, 60, &text, &err) < 0) {
		counts.refused++;
	} else {
		judge(buf_str(&text.text));
	}
}

static void list_by_tool(const struct files *files)
{
	owned(files_scan_finish) struct files_scan scan = {0};
	struct err err;

	if (files_scan(files, 1000, &scan, &err) < 0)
		die(err.msg);
	counts.listed++;
	for (size_t i = 0; i < scan.count; i++)
		if (strstr(scan.entries[i].path, "named-outside"))
			counts.told++;
}

static void read_naively(const char *path)
{
	char whole[PATH_MAX * 2], real[PATH_MAX], bytes[64] = "";

	snprintf(whole, sizeof whole, "%s/%s", workspace, path);
	if (!realpath(whole, real) ||
	    strncmp(real, workspace, strlen(workspace)) != 0 ||
	    real[strlen(workspace)] != '/') {
		counts.refused++;
		return;
	}
	owned(close_fd) int fd = open(whole, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || read(fd, bytes, sizeof bytes - 1) <= 0)
		counts.refused++;
	else
		judge(bytes);
}

int main(int argc, char **argv)
{
	pthread_t thread;
	struct files *files = NULL;
	struct err err;

	if (argc < 3 || chdir(argv[1]) < 0)
		return 2;
	unsigned long count = strtoul(argv[2], NULL, 10);
	bool naive = argc > 3;
	make_all();
	if (!realpath("ws", workspace) || files_open(&files, "ws", &err) < 0)
		die("ws");
	if (pthread_create(&thread, NULL, swap_all, NULL))
		die("thread");
	for (unsigned long i = 0; i < count && !(naive && counts.leaked); i++) {
		const char *path = paths[i % COUNT_OF(paths)];

		if (naive)
			read_naively(path);
		else
			read_by_tool(files, path, i / COUNT_OF(paths));
		if (!naive && i % LIST_EVERY == 0)
			list_by_tool(files);
	}
	over = true;
	pthread_join(thread, NULL);
	files_close(&files);
	printf("read %lu refused %lu leaked %lu listed %lu told %lu\n", counts.read,
	       counts.refused, counts.leaked, counts.listed, counts.told);
	return 0;
}

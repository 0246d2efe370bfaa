// SPDX-License-Identifier: MIT
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernelmgr/files.h"
#include "kernelmgr/sweep.h"
#include "testing.h"
#include "wire/mem.h"

static char top[64]; /* a directory of the test's own, and its working directory */
static struct files *files; /* top/ws */

/* Stands before the C library's: fails as a full disk does, when it is told to. */
static int write_errno;

ssize_t write(int fd, const void *data, size_t size)
{
	if (write_errno) {
		errno = write_errno;
		return -1;
	}
	return syscall(SYS_write, fd, data, size);
}

static int begin(void **state)
{
	struct err err = {0};

	(void)state;
	umask(022);
	snprintf(top, sizeof top, P_tmpdir "/vivarium-write-XXXXXX");
	if (!mkdtemp(top) || chdir(top))
		return -1;
	write_errno = 0;
	return files_open(&files, "ws", &err);
}

static int finish(void **state)
{
	(void)state;
	files_close(&files);
	if (chdir("/"))
		return -1;
	sweep_tree(top);
	return access(top, F_OK) == 0;
}

static void check_content(const char *path, const char *wanted)
{
	owned(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[100] = "";

	assert_true(fd >= 0);
	assert_true(read(fd, text, sizeof text - 1) >= 0);
	assert_string_equal(text, wanted);
}

static void write_good(const char *path, const char *text, bool new)
{
	struct err err = {0};
	bool created = !new;

	if (files_write(files, path, strlen(path), text, strlen(text), &created, &err))
		fail_msg("%s: %s", path, err.msg);
	assert_int_equal(created, new);
}

static void check_refused(const char *path, size_t size, const char *words)
{
	struct err err = {0};
	bool created;

	assert_int_equal(files_write(files, path, size, "x", 1, &created, &err), -1);
	assert_string_equal(err.msg, words);
}
#define REFUSED(path, words) check_refused(path, strlen(path), words)

/* Is nothing in it, hidden or not? */
static bool is_empty(const char *path)
{
	return !rmdir(path) && !mkdir(path, 0700);
}

static mode_t mode_of(const char *path)
{
	struct stat status;

	assert_int_equal(stat(path, &status), 0);
	return status.st_mode & 07777;
}

CASE(a_file_is_made_and_replaced)
{
	write_good("a.txt", "one", true);
	check_content("ws/a.txt", "one");
	write_good("a.txt", "", false);
	check_content("ws/a.txt", "");
	assert_int_equal(mode_of("ws/a.txt"), 0644);
}

CASE(missing_folders_are_made)
{
	write_good("a/b//./c.txt", "deep", true);
	check_content("ws/a/b/c.txt", "deep");
	assert_int_equal(mode_of("ws/a/b"), 0755);
	write_good("a/b/d.txt", "there", true);
	check_content("ws/a/b/d.txt", "there");
}

CASE(a_file_keeps_its_mode)
{
	write_good("run.sh", "one", true);
	assert_int_equal(chmod("ws/run.sh", 0755), 0);
	write_good("run.sh", "two", false);
	assert_int_equal(mode_of("ws/run.sh"), 0755);
	assert_int_equal(chmod("ws/run.sh", 0), 0);
	write_good("run.sh", "three", false);
	assert_int_equal(mode_of("ws/run.sh"), 0);
	/* A program that runs as somebody else has become another program. */
	assert_int_equal(chmod("ws/run.sh", 04755), 0);
	write_good("run.sh", "four", false);
	assert_int_equal(mode_of("ws/run.sh"), 0755);
}

CASE(where_a_group_writes_it_may_write_what_is_new)
{
	assert_int_equal(chmod("ws", 02770), 0);
	write_good("a.txt", "x", true);
	write_good("dir/b.txt", "x", true);
	assert_int_equal(mode_of("ws/a.txt"), 0664);
	assert_int_equal(mode_of("ws/dir"), 02775);
	assert_int_equal(mode_of("ws/dir/b.txt"), 0664);
}

CASE(nothing_is_written_through_a_link)
{
	assert_int_equal(mkdir("out", 0700), 0);
	assert_int_equal(mkdir("ws/dir", 0700), 0);
	assert_int_equal(symlink("../out", "ws/away"), 0);
	assert_int_equal(symlink("dir", "ws/inside"), 0);
	assert_int_equal(symlink("../out/new", "ws/link"), 0);
	REFUSED("away/x", "\"away/x\" leads through a link or a file: files are "
			  "written to real folders only");
	REFUSED("inside/x", "\"inside/x\" leads through a link or a file: files are "
			    "written to real folders only");
	REFUSED("link", "\"link\" is a link: name the file that it leads to");
	assert_true(is_empty("out"));
	assert_true(is_empty("ws/dir"));
}

CASE(a_path_that_is_none_in_the_workspace_is_refused)
{
	static char far[PATH_MAX + 1], name[NAME_MAX + 2];

	write_good("file", "x", true);
	memset(far, 'a', sizeof far - 1);
	memset(name, 'n', sizeof name - 1);
	REFUSED("", "the path is empty: name a file in the workspace");
	REFUSED("/etc/x",
		"\"/etc/x\" is an absolute path: give it relative to the workspace");
	REFUSED("../x", "\"../x\" goes up by \"..\": name a place in the workspace "
			"without it");
	REFUSED("a/../../x", "\"a/../../x\" goes up by \"..\": name a place in the "
			     "workspace without it");
	REFUSED("dir/..", "\"dir/..\" ends in no name: name a file in the folder");
	write_good("..a/b...", "a name like any other", true);
	REFUSED("..", "\"..\" ends in no name: name a file in the folder");
	REFUSED(".", "\".\" ends in no name: name a file in the folder");
	REFUSED("dir/", "\"dir/\" ends in no name: name a file in the folder");
	REFUSED("file/x", "\"file/x\" leads through a link or a file: files are "
			  "written to real folders only");
	check_refused("a\0b", 3,
		      "the path \"a\\x00b\" holds a NUL character: leave it out");
	for (size_t i = 0; i < 2; i++) {
		struct err err = {0};
		bool created;

		assert_int_equal(files_write(files, i ? far : name,
					     strlen(i ? far : name), "x", 1, &created,
					     &err),
				 -1);
		assert_int_equal(err.kind, ERR_ARGUMENT);
	}
}

CASE(what_is_no_file_is_not_replaced)
{
	assert_int_equal(mkdir("ws/dir", 0700), 0);
	assert_int_equal(mkfifo("ws/fifo", 0600), 0);
	REFUSED("dir", "\"dir\" is a directory: name a file in it");
	REFUSED("fifo", "\"fifo\" is not a regular file: name another");
	REFUSED("fifo/x", "\"fifo/x\" leads through a link or a file: files are "
			  "written to real folders only");
}

CASE(too_much_is_refused)
{
	struct err err = {0};
	bool created;
	char *much = xcalloc(1, FILES_WRITE_MAX + 1);

	assert_int_equal(
	    files_write(files, "a", 1, much, FILES_WRITE_MAX + 1, &created, &err), -1);
	assert_int_equal(err.kind, ERR_LIMIT);
	assert_string_equal(err.msg,
			    "2097153 bytes for \"a\" are over the limit of "
			    "2097152 for one call: write them with run_python");
	assert_int_equal(
	    files_write(files, "a", 1, much, FILES_WRITE_MAX, &created, &err), 0);
	free(much);
}

CASE(a_full_disk_leaves_the_old_file_and_nothing_else)
{
	write_good("a.txt", "old", true);
	write_errno = ENOSPC;
	REFUSED("a.txt", "no room is left for \"a.txt\": delete files first");
	write_errno = EIO;
	REFUSED("b.txt", "write \"b.txt\": Input/output error");
	write_errno = 0;
	check_content("ws/a.txt", "old");
	assert_int_equal(unlink("ws/a.txt"), 0);
	assert_true(is_empty("ws"));
}

CASE(a_folder_that_may_not_be_written_is_refused)
{
	if (!geteuid())
		skip(); /* root writes everywhere */
	assert_int_equal(mkdir("ws/closed", 0500), 0);
	REFUSED("closed/x", "\"closed/x\" may not be written there: change the "
			    "folder's mode, or write with run_python");
}

/* ---- others at the same time ---- */

static atomic_bool stop;

/* What code in a workspace could do all day: a folder, and a link in its place. */
static void *exchange(void *arg)
{
	(void)arg;
	while (!stop) {
		rename("ws/dir", "ws/real");
		if (symlink("../out", "ws/dir") == 0)
			unlink("ws/dir");
		rename("ws/real", "ws/dir");
	}
	return NULL;
}

CASE(a_folder_exchanged_for_a_link_never_leads_out)
{
	enum { TRIES = 20000 };
	pthread_t other;
	int written = 0;

	assert_int_equal(mkdir("out", 0700), 0);
	assert_int_equal(mkdir("ws/dir", 0700), 0);
	stop = false;
	assert_int_equal(pthread_create(&other, NULL, exchange, NULL), 0);
	for (int i = 0; i < TRIES; i++) {
		struct err err = {0};
		bool created;

		written += !files_write(files, "dir/a", 5, "secret", 6, &created, &err);
	}
	stop = true;
	pthread_join(other, NULL);
	assert_in_range(written, 1, TRIES);
	assert_true(is_empty("out"));
}

/* Who reads meanwhile sees one text or the other. */
static void *read_on(void *arg)
{
	int *broken = arg;

	while (!stop) {
		owned(files_text_finish) struct files_text text = {0};
		struct err err;

		if (files_read_text(files, "a", 1, 0, 100, &text, &err) ||
		    (strcmp(buf_str(&text.text), "first") != 0 &&
		     strcmp(buf_str(&text.text), "second") != 0))
			(*broken)++;
	}
	return NULL;
}

CASE(a_reader_sees_the_old_or_the_new)
{
	pthread_t other;
	int broken = 0;

	write_good("a", "first", true);
	stop = false;
	assert_int_equal(pthread_create(&other, NULL, read_on, &broken), 0);
	for (int i = 0; i < 5000; i++)
		write_good("a", i % 2 ? "first" : "second", false);
	stop = true;
	pthread_join(other, NULL);
	assert_int_equal(broken, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, finish)

RUN(TEST(a_file_is_made_and_replaced), TEST(missing_folders_are_made),
    TEST(a_file_keeps_its_mode), TEST(where_a_group_writes_it_may_write_what_is_new),
    TEST(nothing_is_written_through_a_link),
    TEST(a_path_that_is_none_in_the_workspace_is_refused),
    TEST(what_is_no_file_is_not_replaced), TEST(too_much_is_refused),
    TEST(a_full_disk_leaves_the_old_file_and_nothing_else),
    TEST(a_folder_that_may_not_be_written_is_refused),
    TEST(a_folder_exchanged_for_a_link_never_leads_out),
    TEST(a_reader_sees_the_old_or_the_new))

// SPDX-License-Identifier: MIT
#include "kernelmgr/files.h"
#include "kernelmgr/sweep.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "wire/mem.h"
#include "wire/utf8.h"

#define BAD "\xEF\xBF\xBD" /* U+FFFD */

enum { ALL = 1000 }; /* a limit in nobody's way */

static char top[64]; /* a directory of the test's own, and its working directory */
static struct files *files; /* top/ws */

/* Stands before the C library's, so that a test can count what is read, and come in
 * between. */
static size_t bytes_read;
static void (*before_read)(void);

ssize_t pread(int fd, void *data, size_t size, off_t at)
{
	if (before_read)
		before_read();
	long got = syscall(SYS_pread64, fd, data, size, at);
	if (got > 0)
		bytes_read += (size_t)got;
	return got;
}

/* ---- a workspace for each test ---- */

static int begin(void **state)
{
	struct err err = {0};

	(void)state;
	snprintf(top, sizeof top, P_tmpdir "/vivarium-files-XXXXXX");
	if (!mkdtemp(top) || chdir(top))
		return -1;
	before_read = NULL;
	bytes_read = 0;
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

static void put_bytes(const char *path, const char *text, size_t size)
{
	owned(close_fd) int fd =
	    open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, size), (ssize_t)size);
}

static void put(const char *path, const char *text)
{
	put_bytes(path, text, strlen(text));
}

/* Sets the time of the last change, in seconds. */
static void set_age(const char *path, time_t seconds)
{
	struct timespec times[] = {{seconds, 0}, {seconds, 0}};

	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void check_text(const char *path, size_t max_chars, const char *wanted, bool cut)
{
	owned(files_text_finish) struct files_text text = {0};
	struct err err = {0};

	if (files_read_text(files, path, strlen(path), 0, max_chars, &text, &err))
		fail_msg("%s: %s", path, err.msg);
	assert_string_equal(buf_str(&text.text), wanted);
	assert_int_equal(text.cut, cut);
}

static void check_refused_bytes(const char *path, size_t size, const char *words)
{
	struct files_text text = {0};
	struct err err = {0};
	int fd = -1;

	assert_int_equal(files_read_text(files, path, size, 0, 100, &text, &err), -1);
	assert_string_equal(err.msg, words);
	assert_int_equal(err.kind, ERR_ARGUMENT);
	assert_null(text.text.data);
	/* A picture is opened by the same rules. */
	err = (struct err){0};
	assert_int_equal(files_open_png(files, path, size, &fd, &err), -1);
	assert_string_equal(err.msg, words);
	assert_int_equal(fd, -1);
}

static void check_refused(const char *path, const char *words)
{
	check_refused_bytes(path, strlen(path), words);
}

/* ---- opening ---- */

static void a_missing_workspace_is_created_for_its_owner_alone(void **state)
{
	struct files *self = NULL;
	struct err err = {0};
	struct stat status;

	(void)state;
	umask(0);
	assert_int_equal(files_open(&self, "a/b//c/", &err), 0);
	assert_int_equal(stat("a/b/c", &status), 0);
	assert_int_equal(status.st_mode & 07777, 0700);
	assert_int_equal(stat("a", &status), 0);
	assert_int_equal(status.st_mode & 07777, 0700);
	assert_int_equal(fcntl(files_fd(self), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	files_close(&self);
	assert_null(self);
	files_close(&self);
	assert_int_equal(files_open(&self, "a/b/c", &err), 0);
	files_close(&self);
}

static void a_workspace_that_is_a_file_is_refused(void **state)
{
	struct files *self = NULL;
	struct err err = {0};

	(void)state;
	put("file", "");
	assert_int_equal(files_open(&self, "file", &err), -1);
	assert_string_equal(err.msg, "open the directory file: Not a directory");
	assert_int_equal(files_open(&self, "file/ws", &err), -1);
	assert_int_equal(err.kind, ERR_SYSTEM);
	assert_null(self);
}

/* ---- reading ---- */

static void a_text_is_read_whole(void **state)
{
	(void)state;
	put("ws/a.txt", "one\r\ntwo\n");
	put("ws/empty", "");
	assert_int_equal(mkdir("ws/dir", 0700), 0);
	put("ws/dir/b c.txt", "deep");
	check_text("a.txt", 100, "one\r\ntwo\n", false);
	check_text("empty", 100, "", false);
	check_text("dir/b c.txt", 100, "deep", false);
	check_text("./dir/../dir//b c.txt", 100, "deep", false);
}

static void a_text_is_cut_between_characters(void **state)
{
	(void)state;
	put("ws/a", "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80z");
	check_text("a", 0, "", true);
	check_text("a", 2, "a\xC3\xA9", true);
	check_text("a", 4, "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", true);
	check_text("a", 5, "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80z", false);
	check_text("a", SIZE_MAX, "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80z", false);
}

static void broken_bytes_are_shown_as_such_and_counted_once(void **state)
{
	(void)state;
	put("ws/mixed", "caf\xE9 \xE2\x82 \xC3\xA9");
	check_text("mixed", 100, "caf" BAD " " BAD " \xC3\xA9", false);
	check_text("mixed", 4, "caf" BAD, true);
}

static void rewrite(void);

static void check_part(const char *path, size_t offset, size_t chars,
		       const char *wanted, bool cut)
{
	owned(files_text_finish) struct files_text text = {0};
	struct err err = {0};

	if (files_read_text(files, path, strlen(path), offset, chars, &text, &err))
		fail_msg("%s: %s", path, err.msg);
	assert_string_equal(buf_str(&text.text), wanted);
	assert_int_equal(text.cut, cut);
	assert_int_equal(text.next, offset + utf8_count(wanted, strlen(wanted)));
}

static void a_part_begins_at_a_character(void **state)
{
	(void)state;
	put("ws/a", "\xEF\xBB\xBF"
		    "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80z");
	check_part("a", 0, 2, "a\xC3\xA9", true); /* the mark is no character */
	check_part("a", 1, 2, "\xC3\xA9\xE2\x82\xAC", true);
	check_part("a", 3, 9, "\xF0\x9F\x98\x80z", false);
	check_part("a", 5, 9, "", false);
	put_bytes("ws/b",
		  "\xFF\xFE"
		  "a\0\x3D\xD8\x00\xDE\xE9\0z\0",
		  12);
	check_part("b", 0, 9, "a\xF0\x9F\x98\x80\xC3\xA9z", false);
	check_part("b", 1, 2, "\xF0\x9F\x98\x80\xC3\xA9", true);
	check_part("b", 4, 1, "", false);
	put("ws/c", "caf\xE9 cr\xE8me");
	check_part("c", 3, 4, "\xC3\xA9 cr", true);
}

static void an_offset_behind_the_end_is_refused(void **state)
{
	struct files_text text = {0};
	struct err err = {0};

	(void)state;
	put("ws/a", "\xC3\xA9\xC3\xA9");
	assert_int_equal(files_read_text(files, "a", 1, 3, 9, &text, &err), -1);
	assert_string_equal(err.msg, "offset is 3, but \"a\" has only 2 characters");
	put("ws/far", "");
	assert_int_equal(truncate("ws/far", 1 << 30), 0);
	put("ws/text", "text");
	assert_int_equal(truncate("ws/text", 4), 0);
	assert_int_equal(files_read_text(files, "text", 4, SIZE_MAX, 9, &text, &err),
			 -1);
	assert_string_equal(err.msg, "offset is 18446744073709551615, but \"text\" has "
				     "only 4 characters");
}

static void an_offset_far_inside_is_not_looked_for(void **state)
{
	static char block[1 << 16];
	struct files_text text = {0};
	struct err err = {0};
	owned(close_fd) int fd = open("ws/big", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	(void)state;
	memset(block, 'a', sizeof block);
	for (size_t i = 0; i < 2 * FILES_SKIP_MAX / sizeof block; i++)
		assert_int_equal(write(fd, block, sizeof block), sizeof block);
	assert_int_equal(
	    files_read_text(files, "big", 3, FILES_SKIP_MAX / 2, 2, &text, &err), 0);
	assert_string_equal(buf_str(&text.text), "aa");
	files_text_finish(&text);
	bytes_read = 0;
	assert_int_equal(
	    files_read_text(files, "big", 3, 2 * FILES_SKIP_MAX, 2, &text, &err), -1);
	assert_string_equal(err.msg,
			    "offset 134217728 lies more than 64 MiB inside \"big\": "
			    "read there with run_python");
	assert_in_range(bytes_read, FILES_SKIP_MAX, FILES_SKIP_MAX + (1 << 18));
}

/* Parts of any size, one after the other, are the whole. */
static void parts_make_the_whole(void **state)
{
	static const char *const codings[] = {"", "\xEF\xBB\xBF"};
	static char wide[3 * 40000 + 1];

	(void)state;
	for (size_t i = 0; i < 40000; i++)
		memcpy(wide + i * 3, i % 3 ? "\xE2\x82\xAC" : "\xC3\xA9!", 3);
	size_t all = utf8_count(wide, strlen(wide));
	for (size_t c = 0; c < COUNT_OF(codings); c++) {
		owned(free_text) char *content = xasprintf("%s%s", codings[c], wide);
		owned(buf_finish) struct buf whole = {0};
		size_t at = 0;
		bool cut = true;

		put("ws/a", content);
		while (cut) {
			owned(files_text_finish) struct files_text text = {0};
			struct err err = {0};

			assert_int_equal(
			    files_read_text(files, "a", 1, at, 7001, &text, &err), 0);
			buf_add(&whole, buf_str(&text.text), text.text.size);
			at = (size_t)text.next;
			cut = text.cut;
		}
		assert_int_equal(at, all);
		assert_string_equal(buf_str(&whole), wide);
	}
}

static void a_file_is_looked_at(void **state)
{
	struct files_look look;
	struct err err = {0};

	(void)state;
	put_bytes("ws/p", "\x89PNG\r\n\x1a\n\0\0", 10);
	put("ws/t", "text");
	assert_int_equal(files_look(files, "p", 1, &look, &err), 0);
	assert_string_equal(look.kind->words, "a PNG picture");
	assert_int_equal(look.size, 10);
	assert_int_equal(files_look(files, "t", 1, &look, &err), 0);
	assert_null(look.kind);
	assert_int_equal(files_look(files, "../t", 4, &look, &err), -1);
	assert_int_equal(err.kind, ERR_ARGUMENT);
}

static void all_bytes_of_a_file_are_read_up_to_a_limit(void **state)
{
	owned(buf_finish) struct buf bytes = {0}, more = {0};
	struct err err = {0};

	(void)state;
	put_bytes("ws/a", "\0\xFF\0x", 4);
	assert_int_equal(files_read_bytes(files, "a", 1, 4, &bytes, &err), 0);
	assert_int_equal(bytes.size, 4);
	assert_memory_equal(bytes.data, "\0\xFF\0x", 4);
	assert_int_equal(files_read_bytes(files, "a", 1, 3, &more, &err), -1);
	assert_int_equal(err.kind, ERR_LIMIT);
	assert_string_equal(err.msg, "\"a\" of 4 bytes is over the limit of 3 for one "
				     "answer: read parts of it with run_python");
	before_read = rewrite;
	assert_int_equal(files_read_bytes(files, "a", 1, 9, &more, &err), -1);
	assert_string_equal(err.msg,
			    "\"a\" changes while it is read: call again when it rests");
	assert_int_equal(more.size, 0);
}

/* Cuts at every place around the end of what is read at a time. */
static void a_long_text_of_wide_characters_is_cut_right(void **state)
{
	enum { CHARS = 5000 };
	static char wide[CHARS * 4 + 1];

	(void)state;
	for (size_t i = 0; i < CHARS; i++)
		memcpy(wide + i * 4, "\xF0\x9F\x98\x80", 4);
	put("ws/wide", wide);
	for (size_t chars = CHARS - 3; chars <= CHARS + 3; chars++) {
		owned(files_text_finish) struct files_text text = {0};
		struct err err = {0};

		assert_int_equal(
		    files_read_text(files, "wide", 4, 0, chars, &text, &err), 0);
		assert_int_equal(text.text.size, 4 * (chars < CHARS ? chars : CHARS));
		assert_int_equal(text.cut, chars < CHARS);
		assert_int_equal(utf8_valid_up_to(text.text.data, text.text.size),
				 text.text.size);
	}
}

static void a_large_file_costs_only_what_is_shown(void **state)
{
	owned(files_text_finish) struct files_text text = {0};
	struct err err = {0};
	static char line[20000];

	(void)state;
	memset(line, 'a', sizeof line - 1);
	put("ws/log", line);
	assert_int_equal(truncate("ws/log", 1 << 30), 0);
	assert_int_equal(files_read_text(files, "log", 3, 0, 100, &text, &err), 0);
	assert_int_equal(text.text.size, 100);
	assert_true(text.cut);
	assert_int_equal(text.size, 1 << 30);
	assert_in_range(bytes_read, 100, 8192);
	assert_in_range(text.text.room, 100, 8192);
}

static void a_binary_file_is_refused(void **state)
{
	static char late[9000];
	struct files_text text = {0};
	struct err err = {0};

	(void)state;
	put_bytes("ws/data.pkl", "\x80\x04\x95\0\0", 5);
	assert_int_equal(files_read_text(files, "data.pkl", 8, 0, 9, &text, &err), -1);
	assert_string_equal(err.msg, "\"data.pkl\" is a binary file of 5 bytes: read "
				     "it with run_python");
	memset(late, 'a', sizeof late);
	late[8191] = '\0';
	put_bytes("ws/late", late, sizeof late);
	assert_int_equal(files_read_text(files, "late", 4, 0, 9, &text, &err), -1);
	/* Behind the first 8 KiB nobody looks. */
	late[8191] = 'a';
	late[8192] = '\0';
	put_bytes("ws/late", late, sizeof late);
	check_text("late", 2, "aa", true);
}

static void a_path_out_of_the_workspace_is_refused(void **state)
{
	(void)state;
	put("secret", "secret");
	assert_int_equal(mkdir("ws/dir", 0700), 0);
	assert_int_equal(symlink("../secret", "ws/link"), 0);
	assert_int_equal(symlink("..", "ws/up"), 0);
	assert_int_equal(symlink("/etc/hostname", "ws/far"), 0);
	assert_int_equal(symlink("/proc/self/cwd/secret", "ws/magic"), 0);
	check_refused("../secret",
		      "\"../secret\" leads out of the workspace (by \"..\" or a "
		      "link): copy what is needed into it with run_python");
	check_refused("dir/../../secret",
		      "\"dir/../../secret\" leads out of the workspace (by \"..\" or a "
		      "link): copy what is needed into it with run_python");
	check_refused("link", "\"link\" leads out of the workspace (by \"..\" or a "
			      "link): copy what is needed into it with run_python");
	check_refused("up/secret",
		      "\"up/secret\" leads out of the workspace (by \"..\" or a "
		      "link): copy what is needed into it with run_python");
	check_refused("far", "\"far\" leads out of the workspace (by \"..\" or a "
			     "link): copy what is needed into it with run_python");
	check_refused("magic", "\"magic\" leads out of the workspace (by \"..\" or a "
			       "link): copy what is needed into it with run_python");
	check_refused("/etc/hostname", "\"/etc/hostname\" is an absolute path: give it "
				       "relative to the workspace");
	check_refused("../ws/dir", "\"../ws/dir\" leads out of the workspace (by "
				   "\"..\" or a link): copy what is needed into it "
				   "with run_python");
}

static void a_link_that_stays_inside_is_followed(void **state)
{
	(void)state;
	assert_int_equal(mkdir("ws/dir", 0700), 0);
	put("ws/a", "text");
	assert_int_equal(symlink("../a", "ws/dir/link"), 0);
	assert_int_equal(symlink("dir", "ws/other"), 0);
	check_text("other/link", 9, "text", false);
}

static void a_path_that_is_no_path_is_refused(void **state)
{
	static char far[PATH_MAX + 1];

	(void)state;
	put("ws/a", "text");
	check_refused("", "the path is empty: name a file in the workspace");
	check_refused_bytes("a\0b", 3,
			    "the path \"a\\x00b\" holds a NUL character: "
			    "leave it out");
	memset(far, 'x', PATH_MAX);
	check_refused(far, "the path \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
			   "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...\" "
			   "of 4096 bytes is over the limit of 4095");
	check_refused_bytes(far, 300,
			    "the path \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
			    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
			    "xxxxxxxxxxxxxxx...\" is too long");
	check_refused("b\n\xFF", "there is no file \"b\\n" BAD "\" in the workspace: "
				 "list_files shows what is there");
	check_refused("a/b", "there is no file \"a/b\" in the workspace: list_files "
			     "shows what is there");
}

static void a_message_stays_valid_text_however_long_the_path(void **state)
{
	static char far[PATH_MAX + 1];

	(void)state;
	for (size_t i = 0; i < PATH_MAX / 4; i++)
		memcpy(far + i * 4, "\xF0\x9F\x98\x80", 4);
	for (size_t start = 0; start < 4; start++) {
		struct files_text text = {0};
		struct err err = {0};

		assert_int_equal(files_read_text(files, far + start, PATH_MAX - start,
						 0, 9, &text, &err),
				 -1);
		assert_int_equal(utf8_valid_up_to(err.msg, strlen(err.msg)),
				 strlen(err.msg));
		assert_in_range(strlen(err.msg), 100, sizeof err.msg - 2);
	}
}

static void what_is_no_regular_file_is_refused_without_waiting(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "ws/socket"};
	owned(close_fd) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)state;
	assert_int_equal(mkfifo("ws/fifo", 0600), 0);
	assert_int_equal(mkdir("ws/dir", 0700), 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof address),
			 0);
	assert_int_equal(symlink("loop", "ws/loop"), 0);
	check_refused("fifo", "\"fifo\" is not a regular file: name one");
	check_refused("socket", "\"socket\" is not a regular file: name one");
	check_refused("dir", "\"dir\" is a directory: list_files shows the files in "
			     "it");
	check_refused(".", "\".\" is a directory: list_files shows the files in it");
	check_refused("loop", "\"loop\" is a link that leads nowhere: name the file");
	/* Making a device takes a right that the tests may not have. */
	if (!mknod("ws/zero", S_IFCHR | 0600, makedev(1, 5)))
		check_refused("zero", "\"zero\" is not a regular file: name one");
}

static void a_file_that_may_not_be_read_is_refused(void **state)
{
	(void)state;
	put("ws/closed", "text");
	assert_int_equal(chmod("ws/closed", 0), 0);
	if (!geteuid())
		skip(); /* root reads everything */
	check_refused("closed",
		      "\"closed\" may not be read: change its mode with run_python");
}

static void shrink(void)
{
	static int calls;

	if (!calls++)
		return; /* all is read by then, and the end is looked for */
	before_read = NULL;
	assert_int_equal(truncate("ws/a", 10), 0);
	set_age("ws/a", 1000); /* as when two changes fall into one tick */
}

static void rewrite(void)
{
	static time_t age = 1000000;

	set_age("ws/a", age++);
}

static void grow(void)
{
	owned(close_fd) int fd = open("ws/a", O_WRONLY | O_APPEND | O_CLOEXEC);

	assert_int_equal(write(fd, "more\n", 5), 5);
}

static void replace(void)
{
	put("ws/new", "a new text");
	assert_int_equal(rename("ws/new", "ws/a"), 0);
}

static void drop(void)
{
	unlink("ws/a");
}

static void a_file_that_changes_meanwhile_is_refused(void **state)
{
	struct files_text text = {0};
	struct err err = {0};

	(void)state;
	put("ws/a", "a text of some length");
	before_read = rewrite;
	assert_int_equal(files_read_text(files, "a", 1, 0, 99, &text, &err), -1);
	assert_string_equal(err.msg,
			    "\"a\" changes while it is read: call again when it rests");
	/* Where it rests, the second try reads what it is now. */
	set_age("ws/a", 1000);
	before_read = shrink;
	check_text("a", 99, "a text of ", false);
}

static void a_file_that_grows_meanwhile_is_read(void **state)
{
	(void)state;
	put("ws/a", "line\n");
	before_read = grow;
	check_text("a", 5, "line\n", true);
}

static void a_file_that_is_replaced_or_deleted_meanwhile_is_read_as_it_was(void **state)
{
	(void)state;
	put("ws/a", "the old text");
	before_read = replace;
	check_text("a", 99, "the old text", false);
	check_text("a", 99, "a new text", false);
	before_read = drop;
	check_text("a", 99, "a new text", false);
	before_read = NULL;
	check_refused("a", "there is no file \"a\" in the workspace: list_files shows "
			   "what is there");
}

static atomic_bool stop;

/* What the kernel of a workspace could do all day. */
static void *exchange(void *arg)
{
	(void)arg;
	while (!stop) {
		syscall(SYS_renameat2, AT_FDCWD, "ws/dir", AT_FDCWD, "ws/link",
			2 /* RENAME_EXCHANGE */);
		syscall(SYS_renameat2, AT_FDCWD, "ws/file", AT_FDCWD, "ws/filelink", 2);
	}
	return NULL;
}

static void a_directory_exchanged_for_a_link_never_leads_out(void **state)
{
	pthread_t thread;
	int inside = 0;

	(void)state;
	assert_int_equal(mkdir("out", 0700), 0);
	put("out/a", "a secret");
	assert_int_equal(mkdir("ws/dir", 0700), 0);
	put("ws/dir/a", "public");
	assert_int_equal(symlink("../out", "ws/link"), 0);
	put("ws/file", "public");
	assert_int_equal(symlink("../out/a", "ws/filelink"), 0);
	stop = false;
	assert_int_equal(pthread_create(&thread, NULL, exchange, NULL), 0);
	for (int i = 0; i < 5000 || !inside; i++) {
		owned(files_text_finish) struct files_text text = {0};
		owned(files_scan_finish) struct files_scan scan = {0};
		struct err err = {0};

		if (!files_read_text(files, "dir/a", 5, 0, 99, &text, &err)) {
			assert_string_equal(buf_str(&text.text), "public");
			inside++;
		}
		if (i % 10 == 0) {
			assert_int_equal(files_scan(files, ALL, &scan, &err), 0);
			for (size_t j = 0; j < scan.count; j++)
				assert_int_equal(scan.entries[j].size, 6);
			assert_in_range(scan.count, 0, 4);
		}
	}
	stop = true;
	pthread_join(thread, NULL);
}

static void a_picture_is_opened_for_reading_only_up_to_its_cap(void **state)
{
	owned(close_fd) int fd = -1;
	struct err err = {0};
	int none = -1;

	(void)state;
	put("ws/a.png", "png");
	assert_int_equal(files_open_png(files, "a.png", 5, &fd, &err), 0);
	assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_int_equal(truncate("ws/a.png", FILES_PNG_MAX + 1), 0);
	assert_int_equal(files_open_png(files, "a.png", 5, &none, &err), -1);
	assert_int_equal(err.kind, ERR_LIMIT);
	assert_string_equal(err.msg, "\"a.png\" of 67108865 bytes is over the limit of "
				     "67108864 for a picture: save a smaller one");
}

/* ---- listing ---- */

static struct files_scan scan_all(size_t limit)
{
	struct files_scan scan = {0};
	struct err err = {0};

	if (files_scan(files, limit, &scan, &err))
		fail_msg("%s", err.msg);
	return scan;
}

static void the_files_are_listed_by_path(void **state)
{
	(void)state;
	assert_int_equal(mkdir("ws/sub", 0700), 0);
	assert_int_equal(mkdir("ws/sub/deep", 0700), 0);
	assert_int_equal(mkdir("ws/empty", 0700), 0);
	assert_int_equal(mkdir("ws/sub/__pycache__", 0700), 0);
	assert_int_equal(mkdir("ws/.git", 0700), 0);
	assert_int_equal(mkdir("out", 0700), 0);
	put("out/outside", "");
	put("ws/z", "12345");
	put("ws/a.csv", "");
	put("ws/sub/b", "x");
	put("ws/sub/__pycache__/c.pyc", "");
	put("ws/.git/config", "");
	put("ws/.hidden", "");
	assert_int_equal(symlink("z", "ws/link"), 0);
	assert_int_equal(symlink("../out", "ws/outlink"), 0);
	assert_int_equal(symlink("sub", "ws/sublink"), 0);
	assert_int_equal(mkfifo("ws/fifo", 0600), 0);
	set_age("ws/z", 1234567);
	owned(files_scan_finish) struct files_scan scan = scan_all(ALL);
	assert_int_equal(scan.count, 3);
	assert_false(scan.more);
	assert_string_equal(scan.entries[0].path, "a.csv");
	assert_string_equal(scan.entries[1].path, "sub/b");
	assert_string_equal(scan.entries[2].path, "z");
	assert_int_equal(scan.entries[2].size, 5);
	assert_int_equal(scan.entries[2].mtime_ns, 1234567LL * 1000000000);
	struct stat status;
	assert_int_equal(stat("ws/z", &status), 0);
	assert_int_equal(scan.entries[2].inode, status.st_ino);
	assert_int_equal(scan.folder_count, 3);
	assert_string_equal(scan.folders[0], "empty");
	assert_string_equal(scan.folders[1], "sub");
	assert_string_equal(scan.folders[2], "sub/deep");
}

static void an_empty_workspace_has_no_files(void **state)
{
	owned(files_scan_finish) struct files_scan scan = scan_all(ALL);
	owned(buf_finish) struct buf out = {0};

	(void)state;
	assert_int_equal(scan.count, 0);
	assert_false(scan.more);
	files_show_summary(&out, &scan, 3);
	assert_string_equal(buf_str(&out), "no files");
}

static void a_limit_keeps_the_files_nearest_to_the_top(void **state)
{
	char name[32];

	(void)state;
	assert_int_equal(mkdir("ws/a", 0700), 0);
	put("ws/a/deep", "");
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof name, "ws/f%02d", i);
		put(name, "");
	}
	owned(files_scan_finish) struct files_scan cut = scan_all(20);
	assert_int_equal(cut.count, 20);
	assert_true(cut.more);
	assert_string_equal(cut.entries[0].path, "f00");
	owned(files_scan_finish) struct files_scan whole = scan_all(21);
	assert_int_equal(whole.count, 21);
	assert_false(whole.more);
	owned(files_scan_finish) struct files_scan none = scan_all(0);
	assert_int_equal(none.count, 0);
	assert_true(none.more);
}

static void names_that_are_left_out_do_not_keep_a_scan_busy(void **state)
{
	char name[32];

	(void)state;
	for (int i = 0; i < 1100; i++) {
		snprintf(name, sizeof name, "ws/.%d", i);
		put(name, "");
	}
	owned(files_scan_finish) struct files_scan cut = scan_all(1);
	assert_true(cut.more);
	owned(files_scan_finish) struct files_scan whole = scan_all(ALL);
	assert_int_equal(whole.count, 0);
	assert_false(whole.more);
}

static void a_deep_tree_is_scanned_to_its_limit(void **state)
{
	char path[PATH_MAX] = "ws";

	(void)state;
	for (int depth = 1; depth <= FILES_DEPTH_MAX; depth++) {
		strncat(path, "/d", sizeof path - strlen(path) - 1);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	strncat(path, "/f", sizeof path - strlen(path) - 1);
	put(path, "");
	owned(files_scan_finish) struct files_scan scan = scan_all(ALL);
	assert_int_equal(scan.count, 1);
	assert_false(scan.more);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	strncat(path, "/g", sizeof path - strlen(path) - 1);
	put(path, "");
	owned(files_scan_finish) struct files_scan cut = scan_all(ALL);
	assert_int_equal(cut.count, 0);
	assert_true(cut.more);
}

/* In a child, since mounting takes a name space of its own: 0 when all is well, 2 where
 * the machine has none to give. */
static int scan_with_a_mount(void)
{
	struct files_scan scan = {0};
	struct err err = {0};

	if ((geteuid() ? unshare(CLONE_NEWUSER | CLONE_NEWNS) : unshare(CLONE_NEWNS)) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("out", "ws/mnt", NULL, MS_BIND, NULL))
		return 2;
	/* The descriptor still shows the old name space's tree. */
	files_close(&files);
	if (files_open(&files, "ws", &err) || files_scan(files, ALL, &scan, &err))
		return 1;
	bool well = scan.count == 1 && !strcmp(scan.entries[0].path, "own");
	files_scan_finish(&scan);
	files_close(&files);
	return well ? 0 : 1;
}

static void a_scan_stays_on_its_file_system(void **state)
{
	int status = 0;

	(void)state;
	assert_int_equal(mkdir("ws/mnt", 0700), 0);
	assert_int_equal(mkdir("out", 0700), 0);
	put("out/foreign", "");
	put("ws/own", "");
	pid_t pid = fork();
	if (!pid)
		_exit(scan_with_a_mount());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 2)
		skip(); /* may not mount here */
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_workspace_that_is_gone_has_no_files(void **state)
{
	struct files_scan scan = {0};
	struct err err = {0};

	(void)state;
	assert_int_equal(rmdir("ws"), 0);
	assert_int_equal(files_scan(files, ALL, &scan, &err), 0);
	assert_int_equal(scan.count, 0);
	check_refused("a", "there is no file \"a\" in the workspace: list_files shows "
			   "what is there");
}

static void new_and_changed_files_are_found(void **state)
{
	owned(files_list_finish) struct files_list list = {0};
	owned(buf_finish) struct buf out = {0};

	(void)state;
	put("ws/same", "1");
	put("ws/gone", "1");
	put("ws/larger", "1");
	put("ws/newer", "1");
	put("ws/replaced", "1");
	set_age("ws/replaced", 1000);
	owned(files_scan_finish) struct files_scan before = scan_all(ALL);
	unlink("ws/gone");
	put("ws/larger", "22");
	set_age("ws/newer", 1000);
	put("ws/other", "2");
	set_age("ws/other", 1000);
	assert_int_equal(rename("ws/other", "ws/replaced"), 0);
	put("ws/a new one", "1");
	put("ws/z new one", "1");
	owned(files_scan_finish) struct files_scan after = scan_all(ALL);
	files_diff(&before, &after, &list);
	files_show_list(&out, &list, 99);
	assert_string_equal(buf_str(&out), "a new one (1B), larger (2B), newer (1B), "
					   "replaced (1B), z new one (1B)");
	files_list_finish(&list);
	files_diff(&after, &after, &list);
	assert_int_equal(list.count, 0);
	files_list_finish(&list);
	files_diff(&(struct files_scan){0}, &after, &list);
	assert_int_equal(list.count, after.count);
}

static void a_file_that_a_cut_scan_lacked_is_new_only_when_it_is(void **state)
{
	owned(files_list_finish) struct files_list list = {0};

	(void)state;
	put("ws/old", "1");
	set_age("ws/old", 1000);
	owned(files_scan_finish) struct files_scan before = scan_all(0);
	put("ws/new", "1");
	owned(files_scan_finish) struct files_scan after = scan_all(ALL);
	files_diff(&before, &after, &list);
	assert_int_equal(list.count, 1);
	assert_string_equal(list.at[0]->path, "new");
}

/* ---- in words ---- */

static void sizes_are_short(void **state)
{
	static const struct {
		uint64_t size;
		const char *text;
	} rows[] = {
	    {0, "0B"},           {812, "812B"},     {1023, "1023B"},
	    {1024, "1.0K"},      {9932, "9.7K"},    {10188, "9.9K"},
	    {10189, "10K"},      {65536, "64K"},    {1048063, "1023K"},
	    {1048064, "1.0M"},   {4404019, "4.2M"}, {UINT64_C(1) << 40, "1.0T"},
	    {UINT64_MAX, "16E"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		char text[FILES_SIZE_TEXT];

		files_size_text(text, rows[i].size);
		assert_string_equal(text, rows[i].text);
	}
}

static void the_summary_names_the_newest(void **state)
{
	owned(buf_finish) struct buf out = {0};

	(void)state;
	put("ws/old.csv", "");
	set_age("ws/old.csv", 1000);
	{
		owned(files_scan_finish) struct files_scan scan = scan_all(ALL);
		files_show_summary(&out, &scan, 2);
	}
	assert_string_equal(buf_str(&out), "1 file, newest: old.csv");
	put("ws/fx.png", "");
	set_age("ws/fx.png", 3000);
	put("ws/b", "");
	set_age("ws/b", 2000);
	put("ws/a", "");
	set_age("ws/a", 2000);
	owned(files_scan_finish) struct files_scan scan = scan_all(ALL);
	buf_finish(&out);
	files_show_summary(&out, &scan, 3);
	assert_string_equal(buf_str(&out), "4 files, newest: fx.png, a, b");
	buf_finish(&out);
	files_show_summary(&out, &scan, 0);
	assert_string_equal(buf_str(&out), "4 files");
	scan.more = true;
	buf_finish(&out);
	files_show_summary(&out, &scan, 1);
	assert_string_equal(buf_str(&out), "4+ files, newest: fx.png");
}

static void a_list_says_how_much_it_leaves_out(void **state)
{
	owned(files_list_finish) struct files_list list = {0};
	owned(buf_finish) struct buf out = {0};

	(void)state;
	put("ws/a\nb\xFF", "1");
	put("ws/c.PNG", "333");
	put("ws/d", "");
	owned(files_scan_finish) struct files_scan scan = scan_all(ALL);
	files_diff(&(struct files_scan){0}, &scan, &list);
	files_show_list(&out, &list, 2);
	assert_string_equal(buf_str(&out), "a\\nb" BAD " (1B), c.PNG (3B), +1 more");
	buf_finish(&out);
	files_show_list(&out, &list, 0);
	assert_string_equal(buf_str(&out), "+3 more");
	assert_true(files_is_png(list.at[1]));
	assert_false(files_is_png(list.at[2]));
}

static int open_descriptors(void)
{
	int count = 0;

	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void no_descriptor_is_left_open(void **state)
{
	int before = open_descriptors();

	(void)state;
	assert_int_equal(mkfifo("ws/fifo", 0600), 0);
	assert_int_equal(mkdir("ws/dir", 0700), 0);
	put("ws/a", "text");
	check_text("a", 9, "text", false);
	check_refused("fifo", "\"fifo\" is not a regular file: name one");
	check_refused("dir", "\"dir\" is a directory: list_files shows the files in "
			     "it");
	owned(files_scan_finish) struct files_scan scan = scan_all(ALL);
	assert_int_equal(open_descriptors(), before);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, finish)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(a_missing_workspace_is_created_for_its_owner_alone),
	    TEST(a_workspace_that_is_a_file_is_refused),
	    TEST(a_text_is_read_whole),
	    TEST(a_text_is_cut_between_characters),
	    TEST(broken_bytes_are_shown_as_such_and_counted_once),
	    TEST(a_long_text_of_wide_characters_is_cut_right),
	    TEST(a_large_file_costs_only_what_is_shown),
	    TEST(a_binary_file_is_refused),
	    TEST(a_path_out_of_the_workspace_is_refused),
	    TEST(a_link_that_stays_inside_is_followed),
	    TEST(a_path_that_is_no_path_is_refused),
	    TEST(a_message_stays_valid_text_however_long_the_path),
	    TEST(what_is_no_regular_file_is_refused_without_waiting),
	    TEST(a_file_that_may_not_be_read_is_refused),
	    TEST(a_file_that_changes_meanwhile_is_refused),
	    TEST(a_file_that_grows_meanwhile_is_read),
	    TEST(a_file_that_is_replaced_or_deleted_meanwhile_is_read_as_it_was),
	    TEST(a_directory_exchanged_for_a_link_never_leads_out),
	    TEST(a_picture_is_opened_for_reading_only_up_to_its_cap),
	    TEST(the_files_are_listed_by_path),
	    TEST(a_part_begins_at_a_character),
	    TEST(an_offset_behind_the_end_is_refused),
	    TEST(an_offset_far_inside_is_not_looked_for),
	    TEST(parts_make_the_whole),
	    TEST(a_file_is_looked_at),
	    TEST(all_bytes_of_a_file_are_read_up_to_a_limit),
	    TEST(an_empty_workspace_has_no_files),
	    TEST(a_limit_keeps_the_files_nearest_to_the_top),
	    TEST(names_that_are_left_out_do_not_keep_a_scan_busy),
	    TEST(a_deep_tree_is_scanned_to_its_limit),
	    TEST(a_scan_stays_on_its_file_system),
	    TEST(a_workspace_that_is_gone_has_no_files),
	    TEST(new_and_changed_files_are_found),
	    TEST(a_file_that_a_cut_scan_lacked_is_new_only_when_it_is),
	    TEST(sizes_are_short),
	    TEST(the_summary_names_the_newest),
	    TEST(a_list_says_how_much_it_leaves_out),
	    TEST(no_descriptor_is_left_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: MIT
#include "kernelmgr/usage.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernelmgr/files.h"
#include "wire/buf.h"
#include "wire/mem.h"

enum {
	ANSWER_MAX = 16 * 1024,
	LATE_US = 30 * 1000 * 1000, /* it should have ended by itself */
};

struct usage {
	struct child *child;
	int answer; /* owned: the file that it writes to */
	struct loop_timer deadline;
	usage_fn *done;
	void *arg;
};

void usage_destroy(struct usage **self)
{
	struct usage *dead = take(self);

	if (!dead)
		return;
	loop_timer_stop(&dead->deadline);
	if (dead->child)
		child_kill(dead->child);
	child_forget(&dead->child);
	close_fd(&dead->answer);
	free(dead);
}

static const char *unclear(const char *why)
{
	if (strcmp(why, "many") == 0)
		return "too many files, or too deep directories, to be measured";
	if (strcmp(why, "closed") == 0)
		return "directories that cannot be read";
	return "";
}

static void list_largest(char *lines, struct buf *out)
{
	char *line, *end, size[FILES_SIZE_TEXT];

	while ((line = strsep(&lines, "\n")) && *line) {
		files_size_text(size, strtoull(line, &end, 10));
		buf_text(out, out->size ? ", " : "");
		files_show_name(out, end + (*end == ' '));
		buf_printf(out, " (%s)", size);
	}
}

static void on_ended(int status, void *arg)
{
	owned(usage_destroy) struct usage *self = arg;
	owned(buf_finish) struct buf largest = {0};
	char text[ANSWER_MAX + 1], why[16] = "";
	ssize_t len = pread(self->answer, text, ANSWER_MAX, 0);
	unsigned long long bytes;

	self->child = NULL;
	text[len > 0 ? len : 0] = '\0';
	if (status != 0 || sscanf(text, "%llu %15s", &bytes, why) != 2) {
		self->done(NULL, self->arg);
		return;
	}
	list_largest(text + strcspn(text, "\n") + 1, &largest);
	const struct usage_found found = {
	    .bytes = bytes, .unclear = unclear(why), .largest = buf_str(&largest)};
	self->done(&found, self->arg);
}

static void on_late(void *arg)
{
	child_kill(((struct usage *)arg)->child);
}

int usage_start(struct usage **out, struct loop *loop, const struct launch_paths *paths,
		int workspace, const struct usage_place *places, size_t count,
		usage_fn *done, void *arg, struct err *err)
{
	const char *argv[2 + 2 * USAGE_PLACES_MAX] = {paths->usage};
	const char *const env[] = {NULL};
	owned(usage_destroy) struct usage *self = xcalloc(1, sizeof *self);
	owned(close_fd) int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (size_t i = 0; i < count; i++) {
		argv[1 + 2 * i] = places[i].dir;
		argv[2 + 2 * i] = places[i].shown;
	}
	self->answer = memfd_create("usage", MFD_CLOEXEC);
	if (self->answer < 0 || null < 0)
		return err_set(err, ERR_SYSTEM, "make a memory file");
	const struct launch what = {
	    .argv = argv,
	    .env = env,
	    .fds = (const int[]){workspace, self->answer, null},
	    .fd_count = 3,
	};
	if (launch_child(&self->child, loop, &what, on_ended, self, err) < 0)
		return -1;
	self->done = done;
	self->arg = arg;
	loop_timer_start(loop, &self->deadline, LATE_US, on_late, self);
	*out = take(&self);
	return 0;
}

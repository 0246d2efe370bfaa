// SPDX-License-Identifier: MIT
#include "kernelmgr/pictures.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "wire/buf.h"
#include "wire/mem.h"
#include "wire/utf8.h"

enum {
	BATCH_MAX = 64,
	EACH_US = 10 * 1000 * 1000, /* then the helper is killed */
	PROBLEM_MAX = 300,          /* bytes read of what a helper says */
};

struct pictures {
	struct loop *loop;
	const struct launch_paths *paths;
	char max_side[24], max_bytes[24];
	int fds[BATCH_MAX];
	struct picture all[BATCH_MAX];
	size_t count, next; /* next: the one at work */
	size_t kept;        /* results at the front of all */
	struct child *child;
	struct loop_timer timer;
	int result, words; /* memory files that the helper at work writes to */
	pictures_done_fn *done;
	void *arg;
};

static void work(void *arg);

void picture_finish(struct picture *self)
{
	free(self->path);
	free(self->png);
	free(self->problem);
	*self = (struct picture){0};
}

struct pictures *pictures_create(struct loop *loop, const struct launch_paths *paths,
				 size_t max_side, size_t max_bytes)
{
	struct pictures *self = xcalloc(1, sizeof *self);

	self->loop = loop;
	self->paths = paths;
	self->result = self->words = -1;
	snprintf(self->max_side, sizeof self->max_side, "%zu", max_side);
	snprintf(self->max_bytes, sizeof self->max_bytes, "%zu", max_bytes);
	return self;
}

void pictures_destroy(struct pictures **self)
{
	struct pictures *dead = take(self);

	if (!dead)
		return;
	if (dead->child) {
		child_kill(dead->child);
		child_forget(&dead->child);
	}
	loop_timer_stop(&dead->timer);
	close_fd(&dead->result);
	close_fd(&dead->words);
	for (size_t i = 0; i < dead->count; i++) {
		close_fd(&dead->fds[i]);
		picture_finish(&dead->all[i]);
	}
	free(dead);
}

void pictures_add(struct pictures *self, int fd, const char *path)
{
	if (self->count == BATCH_MAX) {
		close(fd);
		return;
	}
	self->fds[self->count] = fd;
	self->all[self->count++].path = xstrdup(path);
}

int pictures_add_memory(struct pictures *self, const void *png, size_t size,
			struct err *err)
{
	owned(close_fd) int fd = memfd_create("picture", MFD_CLOEXEC);

	if (fd < 0 || write(fd, png, size) != (ssize_t)size ||
	    lseek(fd, 0, SEEK_SET) < 0)
		return err_set(err, ERR_SYSTEM, "hold a picture of %zu bytes", size);
	pictures_add(self, fd, NULL);
	fd = -1; /* consumed */
	return 0;
}

size_t pictures_count(const struct pictures *self)
{
	return self->count;
}

const struct picture *pictures_results(const struct pictures *self, size_t *count)
{
	*count = self->kept;
	return self->all;
}

/* All of a memory file.  Caller owns; NULL when it is empty. */
static unsigned char *read_all(int fd, size_t max, size_t *size)
{
	struct stat st;

	*size = 0;
	if (fstat(fd, &st) < 0 || st.st_size <= 0)
		return NULL;
	size_t want = (size_t)st.st_size < max ? (size_t)st.st_size : max;
	unsigned char *data = xcalloc(1, want + 1);
	ssize_t got = pread(fd, data, want, 0);
	if (got > 0) {
		*size = (size_t)got;
		return data;
	}
	free(data);
	return NULL;
}

static void set_problem(struct pictures *self, struct picture *picture, int status)
{
	owned(buf_finish) struct buf shown = {0};
	size_t size;
	unsigned char *words = read_all(self->words, PROBLEM_MAX, &size);

	while (size && words[size - 1] == '\n')
		size--;
	if (size)
		utf8_show(&shown, (const char *)words, size);
	else if (WIFSIGNALED(status))
		buf_printf(&shown, "the image helper was killed by signal %d",
			   WTERMSIG(status));
	else
		buf_printf(&shown, "the image helper failed");
	free(words);
	picture->problem = xstrdup(buf_str(&shown));
}

/* The same picture may be in two files, such as a display and what was saved: the
 * helper says how each looks.  The one that has a name is kept. */
static bool seen_before(struct pictures *self, struct picture *picture)
{
	for (size_t i = 0; i < self->kept; i++) {
		struct picture *kept = &self->all[i];

		if (!kept->png || strcmp(kept->look, picture->look) != 0)
			continue;
		if (!kept->path)
			kept->path = take(&picture->path);
		return true;
	}
	return false;
}

static void read_look(struct pictures *self, struct picture *picture)
{
	ssize_t got = pread(self->words, picture->look, sizeof picture->look - 1, 0);

	picture->look[got > 0 ? got : 0] = '\0';
}

static void on_child_ended(int status, void *arg)
{
	struct pictures *self = arg;
	struct picture picture = self->all[self->next];

	self->child = NULL;
	loop_timer_stop(&self->timer);
	self->all[self->next++] = (struct picture){0};
	if (status == 0)
		picture.png = read_all(self->result, SIZE_MAX, &picture.size);
	if (picture.png)
		read_look(self, &picture);
	else
		set_problem(self, &picture, status);
	close_fd(&self->result);
	close_fd(&self->words);
	if (picture.png && seen_before(self, &picture))
		picture_finish(&picture);
	else
		self->all[self->kept++] = picture;
	work(self);
}

static void on_late(void *arg)
{
	struct pictures *self = arg;

	child_kill(self->child);
}

static int start_next(struct pictures *self, struct err *err)
{
	const char *const argv[] = {self->paths->image, self->max_side, self->max_bytes,
				    NULL};
	const char *const env[] = {NULL};

	self->result = memfd_create("result", MFD_CLOEXEC);
	self->words = memfd_create("words", MFD_CLOEXEC);
	if (self->result < 0 || self->words < 0)
		return err_set(err, ERR_SYSTEM, "make a memory file");
	const int fds[] = {self->fds[self->next], self->result, self->words};
	const struct launch what = {
	    .argv = argv, .env = env, .fds = fds, .fd_count = COUNT_OF(fds)};

	if (launch_child(&self->child, self->loop, &what, on_child_ended, self, err) <
	    0)
		return -1;
	close_fd(&self->fds[self->next]);
	loop_timer_start(self->loop, &self->timer, EACH_US, on_late, self);
	return 0;
}

/* Starts on the next picture, or ends the batch. */
static void work(void *arg)
{
	struct pictures *self = arg;
	struct err err;

	while (self->next < self->count) {
		if (start_next(self, &err) == 0)
			return;
		struct picture failed = self->all[self->next];

		self->all[self->next++] = (struct picture){0};
		failed.problem = xstrdup(err.msg);
		self->all[self->kept++] = failed;
		close_fd(&self->result);
		close_fd(&self->words);
	}
	self->done(self->arg);
}

void pictures_start(struct pictures *self, pictures_done_fn *done, void *arg)
{
	self->done = done;
	self->arg = arg;
	loop_timer_start(self->loop, &self->timer, 1, work, self);
}

// SPDX-License-Identifier: MIT
#include "wire/filewatch.h"

#include <stdbool.h>
#include <string.h>

enum { LOOK_US = 200 * 1000 };

/* A file that is not there has no inode. */
static void look(const struct filewatch *self, struct stat out[])
{
	for (int i = 0; i < FILEWATCH_FILES_MAX; i++)
		if (!self->paths[i] || stat(self->paths[i], &out[i]) < 0)
			memset(&out[i], 0, sizeof out[i]);
}

/* The time of the inode's change is there because mode and owner matter too. */
static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev &&
	       a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
	       a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static bool are_same(const struct stat a[], const struct stat b[])
{
	for (int i = 0; i < FILEWATCH_FILES_MAX; i++)
		if (!is_same(&a[i], &b[i]))
			return false;
	return true;
}

static void on_timer(void *arg)
{
	struct filewatch *self = arg;
	struct stat now[FILEWATCH_FILES_MAX];

	loop_timer_start(self->loop, &self->timer, LOOK_US, on_timer, self);
	look(self, now);
	bool stands_still = are_same(now, self->latest);
	memcpy(self->latest, now, sizeof now);
	if (!stands_still || are_same(now, self->known))
		return;
	memcpy(self->known, now, sizeof now);
	self->changed(self->arg);
}

void filewatch_begin(struct filewatch *self, struct loop *loop, const char *path,
		     const char *second, loop_fn *changed, void *arg)
{
	*self = (struct filewatch){
	    .loop = loop, .paths = {path, second}, .changed = changed, .arg = arg};
	look(self, self->known);
	memcpy(self->latest, self->known, sizeof self->known);
	loop_timer_start(loop, &self->timer, LOOK_US, on_timer, self);
}

void filewatch_end(struct filewatch *self)
{
	if (self->loop)
		loop_timer_stop(&self->timer);
}

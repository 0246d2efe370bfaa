/*
 * filewatch - notices that files have changed, by looking a few times a second: that
 * works on every file system, through links and bind mounts, and costs microseconds.
 * A change is told when it has stood still for one look, so that nobody reads a file
 * while it is being written, nor a certificate before its key has come.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef WIRE_FILEWATCH_H
#define WIRE_FILEWATCH_H

#include <sys/stat.h>

#include "wire/loop.h"

enum { FILEWATCH_FILES_MAX = 2 };

struct filewatch { /* embed it */
	/* borrowed */
	struct loop *loop;
	const char *paths[FILEWATCH_FILES_MAX]; /* NULL: no such file */
	loop_fn *changed;
	void *arg;
	/* own */
	struct stat known[FILEWATCH_FILES_MAX], latest[FILEWATCH_FILES_MAX];
	struct loop_timer timer;
};

/* What there is now is known.  Borrows all until filewatch_end(). */
void filewatch_begin(struct filewatch *self, struct loop *loop, const char *path,
		     const char *second, loop_fn *changed, void *arg);
/* Harmless if it was never begun. */
void filewatch_end(struct filewatch *self);

#endif

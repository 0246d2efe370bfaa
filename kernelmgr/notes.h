/*
 * notes - a small file of lines in the state directory that a daemon which is killed
 * leaves to the next one: each line is there as soon as it is added.  When the file
 * has grown long, or is opened, only what still counts is written anew, and the new
 * file is put in place whole.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef KERNELMGR_NOTES_H
#define KERNELMGR_NOTES_H

#include <limits.h>
#include <stdio.h>

#include "wire/err.h"

/* One whole line of the file of before, without its end. */
typedef void notes_read_fn(const char *line, void *arg);
/* Writes all that still counts, by fprintf(). */
typedef void notes_write_fn(FILE *to, void *arg);

struct notes { /* embed it; zero takes no notes */
	char path[PATH_MAX];
	FILE *file;          /* owned */
	long written, added; /* bytes: anew; since then */
	notes_write_fn *write;
	void *arg;
};

/* Reads what is there, then writes it anew. */
int notes_open(struct notes *self, const char *dir, const char *name,
	       notes_read_fn *read, notes_write_fn *write, void *arg,
	       struct err *err) must_check;
void notes_close(struct notes *self);
/* Adds a line; a failure is only logged. */
void notes_add(struct notes *self, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif

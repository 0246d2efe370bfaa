/*
 * fuzz - what every driver includes.  A driver is one file, fuzz_<name>.c: it feeds one
 * parser with bytes a stranger could send, through real objects, and checks afterwards
 * what must hold whatever they were.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/err.h"
#include "wire/mem.h"

/* The driver: always returns 0.  Called by libFuzzer, and by replay.c. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Also in builds without assert(). */
#define MUST(condition)                                                                \
	((condition) ? (void)0                                                         \
		     : (fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__,     \
				#condition),                                           \
			abort()))

struct input { /* bytes still to be used */
	const uint8_t *at;
	size_t left;
};

/* 0 when nothing is left. */
static inline uint8_t input_byte(struct input *self)
{
	if (!self->left)
		return 0;
	self->left--;
	return *self->at++;
}

/* The next size bytes, or fewer, in memory of their own: a sanitizer sees a read past
 * the end.  A NUL follows them if text.  Caller owns. */
static inline char *input_copy(struct input *self, size_t size, bool text)
{
	size_t room = size + text;
	char *copy = malloc(room ? room : 1); /* for nothing: a byte nobody may read */

	MUST(copy && size <= self->left);
	memcpy(copy, self->at, size);
	if (text)
		copy[size] = '\0';
	self->at += size;
	self->left -= size;
	return copy;
}

/* Up to the next newline, which is skipped.  Caller owns. */
static inline char *input_line(struct input *self)
{
	const uint8_t *end = self->left ? memchr(self->at, '\n', self->left) : NULL;
	char *line =
	    input_copy(self, end ? (size_t)(end - self->at) : self->left, true);

	input_byte(self);
	return line;
}

#endif

/*
 * pictures - pictures made fit for an answer, one after the other, each in a
 * short-lived vivarium-image process (wire/image.h says what it checks and scales).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef KERNELMGR_PICTURES_H
#define KERNELMGR_PICTURES_H

#include <stdbool.h>
#include <stddef.h>

#include "kernelmgr/launch.h"
#include "wire/err.h"
#include "wire/loop.h"

struct picture {
	char *path;         /* owned: the file in the workspace; NULL for a display */
	unsigned char *png; /* owned: ready to send; NULL if it is broken */
	size_t size;
	char look[20]; /* equal for pictures that look alike */
	char *problem; /* owned: why there is no png */
};
void picture_finish(struct picture *self);

struct pictures; /* a batch in work */
/* Every picture has come out, in order; the batch is over. */
typedef void pictures_done_fn(void *arg);

/* Starts an empty batch.  Each result takes at most max_bytes and max_side pixels. */
struct pictures *pictures_create(struct loop *loop, const struct launch_paths *paths,
				 size_t max_side, size_t max_bytes);
/* Adds the PNG that fd can be read from.  Consumes fd; path is copied. */
void pictures_add(struct pictures *self, int fd, const char *path);
/* The same from memory. */
int pictures_add_memory(struct pictures *self, const void *png, size_t size,
			struct err *err) must_check;
size_t pictures_count(const struct pictures *self);
/* Works through the batch; done(arg) comes from the loop, also for an empty batch. */
void pictures_start(struct pictures *self, pictures_done_fn *done, void *arg);
/* The results so far.  Pictures that look alike are there once only.  Borrows. */
const struct picture *pictures_results(const struct pictures *self, size_t *count);
/* Kills what is still at work. */
void pictures_destroy(struct pictures **self);

#endif

/*
 * pixels - a picture in memory.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef WIRE_PIXELS_H
#define WIRE_PIXELS_H

#include <stdbool.h>
#include <stddef.h>

struct pixels {                           /* 8 bits a channel of sRGB */
	unsigned char *memory;            /* owned */
	unsigned char *data;              /* in it: the first row */
	size_t stride;                    /* bytes from row to row */
	unsigned width, height, channels; /* 1 gray, 2 with alpha, 3 RGB, 4 RGBA */
};

/* Gets memory for the width, height and channels that are set, with gap bytes before
 * each row.  False when there is none. */
bool pixels_init(struct pixels *self, size_t gap) __attribute__((warn_unused_result));
/* Frees and clears; fits owned(). */
void pixels_finish(struct pixels *self);
/* Bytes of a row, without its gap. */
size_t pixels_row(const struct pixels *self);

/* Memory that may be large and is all written to: in huge pages, where there are any,
 * since page faults take longer than what is done with a chart.  Caller owns; NULL
 * when there is none. */
unsigned char *bytes_get(size_t size) __attribute__((warn_unused_result));
/* Frees and clears; fits owned(). */
void bytes_free(unsigned char **self);

#endif

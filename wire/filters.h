/*
 * filters - how PNG writes a row: as its difference from what its neighbours let
 * expect (the PNG standard, chapter 9).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef WIRE_FILTERS_H
#define WIRE_FILTERS_H

#include <stddef.h>

enum filter { FILTER_NONE, FILTER_LEFT, FILTER_UP, FILTER_MEAN, FILTER_PAETH, FILTERS };

/* out becomes the row of size bytes, n a pixel (1 to 4), as filtered; above is the row
 * over it, or zeros. */
void filter_apply(enum filter filter, unsigned char *out, const unsigned char *row,
		  const unsigned char *above, size_t size, size_t n);
/* The way back, in place. */
void filter_undo(enum filter filter, unsigned char *row, const unsigned char *above,
		 size_t size, size_t n);

#endif

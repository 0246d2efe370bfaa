// SPDX-License-Identifier: MIT
#include "wire/filters.h"

#include <stdlib.h>
#include <string.h>

/* Each use of these is compiled for a filter and a pixel's size that it knows. */
#define CONSTANT static inline __attribute__((always_inline))

CONSTANT int expected(enum filter filter, int left, int up, int corner)
{
	int to_left = abs(up - corner), to_up = abs(left - corner);
	int to_corner = abs(left + up - 2 * corner);

	if (filter == FILTER_LEFT)
		return left;
	if (filter == FILTER_MEAN)
		return (left + up) / 2;
	if (to_left <= to_up && to_left <= to_corner)
		return left;
	return to_up <= to_corner ? up : corner;
}

CONSTANT void apply(enum filter filter, unsigned char *out, const unsigned char *row,
		    const unsigned char *above, size_t size, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = (unsigned char)(row[i] - expected(filter, 0, above[i], 0));
	for (size_t i = n; i < size; i++)
		out[i] = (unsigned char)(row[i] - expected(filter, row[i - n], above[i],
							   above[i - n]));
}

CONSTANT void undo(enum filter filter, unsigned char *row, const unsigned char *above,
		   size_t size, size_t n)
{
	int left[4] = {0}, corner[4] = {0};

	for (size_t i = 0; i < size; i += n) {
		for (size_t c = 0; c < n; c++) {
			int up = above[i + c];

			left[c] =
			    (row[i + c] + expected(filter, left[c], up, corner[c])) &
			    255;
			row[i + c] = (unsigned char)left[c];
			corner[c] = up;
		}
	}
}

CONSTANT void undo_by(enum filter filter, unsigned char *row,
		      const unsigned char *above, size_t size, size_t n)
{
	if (n == 4)
		undo(filter, row, above, size, 4);
	else if (n == 3)
		undo(filter, row, above, size, 3);
	else if (n == 2)
		undo(filter, row, above, size, 2);
	else
		undo(filter, row, above, size, 1);
}

void filter_apply(enum filter filter, unsigned char *out, const unsigned char *row,
		  const unsigned char *above, size_t size, size_t n)
{
	if (filter == FILTER_NONE)
		memcpy(out, row, size);
	for (size_t i = 0; filter == FILTER_UP && i < size; i++)
		out[i] = (unsigned char)(row[i] - above[i]);
	if (filter == FILTER_LEFT)
		apply(FILTER_LEFT, out, row, above, size, n);
	if (filter == FILTER_MEAN)
		apply(FILTER_MEAN, out, row, above, size, n);
	if (filter == FILTER_PAETH)
		apply(FILTER_PAETH, out, row, above, size, n);
}

void filter_undo(enum filter filter, unsigned char *row, const unsigned char *above,
		 size_t size, size_t n)
{
	for (size_t i = 0; filter == FILTER_UP && i < size; i++)
		row[i] = (unsigned char)(row[i] + above[i]);
	if (filter == FILTER_LEFT)
		undo_by(FILTER_LEFT, row, above, size, n);
	if (filter == FILTER_MEAN)
		undo_by(FILTER_MEAN, row, above, size, n);
	if (filter == FILTER_PAETH)
		undo_by(FILTER_PAETH, row, above, size, n);
}

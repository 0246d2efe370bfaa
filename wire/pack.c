// SPDX-License-Identifier: MIT
#include "wire/pack.h"

#include <libdeflate.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/err.h"
#include "wire/filters.h"

enum {
	FAST_LEVEL = 2,     /* level 1 of libdeflate is slower on charts */
	THOROUGH_LEVEL = 9, /* the last one that does not take many times as long */
	SIGNATURE = 8,
	HEADER = 13,
	CHUNK = 12, /* its size, name and checksum */
};

static void put_number(unsigned char *at, size_t number)
{
	for (int i = 0; i < 4; i++)
		at[i] = (unsigned char)(number >> (24 - 8 * i));
}

/* Puts what belongs around the data of a chunk, which stands at at + 8; past it. */
static unsigned char *close_chunk(unsigned char *at, const char *name, size_t size)
{
	put_number(at, size);
	memcpy(at + 4, name, 4);
	put_number(at + 8 + size, libdeflate_crc32(0, at + 4, size + 4));
	return at + CHUNK + size;
}

static unsigned char *put_head(unsigned char *at, const struct pixels *pixels)
{
	static const unsigned char types[] = {0, 0, 4, 2, 6};
	const unsigned char form[] = {8, types[pixels->channels], 0, 0, 0};

	memcpy(at, "\x89PNG\r\n\x1a\n", SIGNATURE);
	at += SIGNATURE;
	put_number(at + 8, pixels->width);
	put_number(at + 12, pixels->height);
	memcpy(at + 16, form, sizeof form);
	return close_chunk(at, "IHDR", HEADER);
}

/* ---- filtering ---- */

/* What a filtered row is likely to take: the sum of its bytes as signed numbers. */
static size_t weight_of(const unsigned char *row, size_t size)
{
	size_t sum = 0;

	for (size_t i = 0; i < size; i++)
		sum += (size_t)abs((signed char)row[i]);
	return sum;
}

/* The filter's number, then the row by the lightest of them. */
static void put_lightest(unsigned char *out, const unsigned char *row,
			 const unsigned char *above, size_t size, size_t n)
{
	size_t least = SIZE_MAX;
	enum filter best = FILTER_NONE;

	for (enum filter filter = FILTER_NONE; filter < FILTERS; filter++) {
		filter_apply(filter, out + 1, row, above, size, n);
		size_t weight = weight_of(out + 1, size);
		if (weight < least)
			best = filter;
		if (weight < least)
			least = weight;
	}
	out[0] = (unsigned char)best;
	filter_apply(best, out + 1, row, above, size, n);
}

/* All rows as they are packed.  Caller owns. */
static unsigned char *filtered(const struct pixels *pixels, bool thorough, size_t *size)
{
	size_t n = pixels->channels, row_size = pixels_row(pixels);
	owned(bytes_free) unsigned char *none = calloc(1, row_size);
	const unsigned char *row = pixels->data, *above = none;

	*size = (row_size + 1) * pixels->height;
	unsigned char *out = none ? bytes_get(*size) : NULL, *at = out;
	for (unsigned y = 0; out && y < pixels->height; y++, at += row_size + 1) {
		at[0] = FILTER_UP;
		if (thorough)
			put_lightest(at, row, above, row_size, n);
		else
			filter_apply(FILTER_UP, at + 1, row, above, row_size, n);
		above = row;
		row += pixels->stride;
	}
	return out;
}

unsigned char *pack_png(const struct pixels *pixels, bool thorough, size_t *size)
{
	int level = thorough ? THOROUGH_LEVEL : FAST_LEVEL;
	size_t plain_size, room, packed = 0;
	owned(bytes_free) unsigned char *plain =
	    filtered(pixels, thorough, &plain_size);
	struct libdeflate_compressor *tool =
	    plain ? libdeflate_alloc_compressor(level) : NULL;

	if (!tool)
		return NULL;
	room = libdeflate_zlib_compress_bound(tool, plain_size);
	unsigned char *out = bytes_get(SIGNATURE + HEADER + room + 3ul * CHUNK);
	if (out) {
		unsigned char *at = put_head(out, pixels);

		packed =
		    libdeflate_zlib_compress(tool, plain, plain_size, at + 8, room);
		at = close_chunk(at, "IDAT", packed);
		at = close_chunk(at, "IEND", 0);
		*size = (size_t)(at - out);
	}
	libdeflate_free_compressor(tool);
	return out;
}

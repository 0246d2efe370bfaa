// SPDX-License-Identifier: MIT
#include "wire/plain.h"

#include <libdeflate.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/err.h"
#include "wire/filters.h"
#include "wire/image.h"

enum {
	SIGNATURE = 8,
	CHUNK = 12, /* its size, name and checksum */
	HEADER = 13,
	FARTHEST = 32768, /* how far back deflate's matches reach */
};

struct chunk {
	const unsigned char *name, *data;
	size_t size;
};

struct reader {
	const unsigned char *png; /* borrowed */
	size_t size, at;
	unsigned char *packed; /* owned: what all IDAT chunks hold */
	size_t packed_size;
};

static void reader_finish(struct reader *self)
{
	free(self->packed);
}

static uint32_t number_at(const unsigned char *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 |
	       at[3];
}

static bool is_named(const struct chunk *chunk, const char *name)
{
	return memcmp(chunk->name, name, 4) == 0;
}

/* The next chunk, its checksum tried. */
static bool next_chunk(struct reader *self, struct chunk *out)
{
	const unsigned char *at = self->png + self->at;

	if (self->size - self->at < CHUNK ||
	    self->size - self->at - CHUNK < number_at(at))
		return false;
	*out = (struct chunk){at + 4, at + 8, number_at(at)};
	self->at += CHUNK + out->size;
	return libdeflate_crc32(0, out->name, out->size + 4) ==
	       number_at(out->data + out->size);
}

static bool read_header(struct reader *self, struct pixels *out)
{
	static const unsigned char channels[] = {1, 0, 3, 0, 2, 0, 4};
	struct chunk head;

	if (!next_chunk(self, &head) || !is_named(&head, "IHDR") || head.size != HEADER)
		return false;
	const unsigned char *form = head.data + 8;
	if (form[0] != 8 || form[1] > 6 || form[2] || form[3] || form[4])
		return false;
	out->width = number_at(head.data);
	out->height = number_at(head.data + 4);
	out->channels = channels[form[1]];
	return out->channels && out->width && out->width <= IMAGE_SIDE_MAX &&
	       out->height && out->height <= IMAGE_SIDE_MAX;
}

/* Chunks that libpng would skip too, and one that says what is taken for granted. */
static bool changes_nothing(const struct chunk *chunk)
{
	static const char names[][5] = {"tEXt", "pHYs", "tIME", "iTXt",
					"zTXt", "eXIf", "sRGB"};

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (is_named(chunk, names[i]))
			return i + 1 < sizeof names / sizeof names[0] ||
			       (chunk->size == 1 && chunk->data[0] < 4);
	return false;
}

/* Collects the pixels' chunks, which must follow one another, up to the end. */
static bool read_chunks(struct reader *self)
{
	struct chunk chunk;
	bool began = false, over = false;

	self->packed = malloc(self->size);
	while (self->packed && next_chunk(self, &chunk)) {
		if (is_named(&chunk, "IEND"))
			return chunk.size == 0 && began;
		over = over || (began && !is_named(&chunk, "IDAT"));
		if (!is_named(&chunk, "IDAT")) {
			if (!changes_nothing(&chunk) ||
			    (over && is_named(&chunk, "sRGB")))
				return false;
			continue;
		}
		if (over)
			return false;
		began = true;
		memcpy(self->packed + self->packed_size, chunk.data, chunk.size);
		self->packed_size += chunk.size;
	}
	return false;
}

static bool unpack(const struct reader *self, unsigned char *out, size_t size)
{
	/* libdeflate does not mind matches beyond the window that the data names. */
	size_t window = self->packed_size ? 256ul << (self->packed[0] >> 4) : 0;

	if (window < FARTHEST && window < size)
		return false;
	struct libdeflate_decompressor *tool = libdeflate_alloc_decompressor();
	bool done =
	    tool && libdeflate_zlib_decompress(tool, self->packed, self->packed_size,
					       out, size, NULL) == LIBDEFLATE_SUCCESS;
	libdeflate_free_decompressor(tool);
	return done;
}

/* Each row has its filter's number before it. */
static bool undo_filters(struct pixels *pixels)
{
	owned(bytes_free) unsigned char *none = calloc(1, pixels_row(pixels));
	const unsigned char *above = none;
	unsigned char *row = pixels->data;

	for (unsigned y = 0; none && y < pixels->height; y++) {
		if (row[-1] >= FILTERS)
			return false;
		filter_undo(row[-1], row, above, pixels_row(pixels), pixels->channels);
		above = row;
		row += pixels->stride;
	}
	return none != NULL;
}

bool plain_read(const unsigned char *png, size_t size, struct pixels *out, size_t *end)
{
	owned(reader_finish) struct reader reader = {
	    .png = png, .size = size, .at = SIGNATURE};
	owned(pixels_finish) struct pixels pixels = {0};

	if (size < SIGNATURE || memcmp(png, "\x89PNG\r\n\x1a\n", SIGNATURE) != 0 ||
	    !read_header(&reader, &pixels) || !read_chunks(&reader) ||
	    !pixels_init(&pixels, 1) ||
	    !unpack(&reader, pixels.memory, pixels.stride * pixels.height) ||
	    !undo_filters(&pixels))
		return false;
	*out = pixels;
	pixels = (struct pixels){0};
	*end = reader.at;
	return true;
}

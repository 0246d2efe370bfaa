// SPDX-License-Identifier: MIT
/*
 * PNG files.  Input: the file; its last two bytes are also the limits, and if the last
 * one is odd, the driver makes the checksums of the chunks right, so that what they
 * guard is reached.  Files with many pixels are left out: they are only slow.
 */
#include "wire/image.h"

#include <png.h>
#include <zlib.h>

#include "fuzz.h"
#include "wire/plain.h"

enum {
	SIGNATURE = 8,
	CHUNK = 12, /* its size, name and checksum */
	WIDTH_AT = 16,
	HEIGHT_AT = 20,
	HEAD = 33,
	PIXELS_MAX = 1 << 18,
};

static uint32_t number_at(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 |
	       at[3];
}

static bool is_chunk(const uint8_t *data, size_t size, size_t at)
{
	return at < size && size - at >= CHUNK &&
	       number_at(data + at) <= size - at - CHUNK;
}

/* IEND is the last chunk.  (libpng lets it have data.) */
static bool ends_with_its_end(const uint8_t *data, size_t size)
{
	size_t at = SIGNATURE, last = SIGNATURE;

	while (is_chunk(data, size, at)) {
		last = at;
		at += CHUNK + number_at(data + at);
	}
	return at == size && memcmp(data + last + 4, "IEND", 4) == 0;
}

static void put_checksums(uint8_t *data, size_t size)
{
	size_t at = SIGNATURE;

	while (is_chunk(data, size, at)) {
		size_t length = number_at(data + at);
		unsigned long crc = crc32(0, data + at + 4, (unsigned)length + 4);

		for (size_t i = 0; i < 4; i++)
			data[at + 8 + length + i] = (uint8_t)(crc >> (24 - 8 * i));
		at += CHUNK + length;
	}
}

static bool is_small(const uint8_t *data, size_t size)
{
	if (size < HEAD)
		return true;
	uint64_t width = number_at(data + WIDTH_AT),
		 height = number_at(data + HEIGHT_AT);
	return width > IMAGE_SIDE_MAX || height > IMAGE_SIDE_MAX ||
	       width * height <= PIXELS_MAX;
}

static void check_image(const uint8_t *png, size_t size, unsigned max_side,
			size_t max_bytes)
{
	owned(image_finish) struct image image = {0}, again = {0};
	struct err err = {0};

	if (image_fit(png, size, max_side, max_bytes, &image, &err) < 0) {
		MUST(err.kind == ERR_ARGUMENT || err.kind == ERR_LIMIT);
		MUST(!image.memory);
		return;
	}
	MUST(image.width && image.width <= max_side);
	MUST(image.height && image.height <= max_side);
	MUST(image.size >= HEAD && image.size <= max_bytes);
	MUST(memcmp(image.data, "\x89PNG\r\n\x1a\n", SIGNATURE) == 0);
	MUST(ends_with_its_end(image.data, image.size));
	MUST(image.width == number_at(image.data + WIDTH_AT));
	MUST(image.height == number_at(image.data + HEIGHT_AT));
	MUST(image.memory || (image.data == png && image.size <= size));
	/* What fits is sound, and is left alone. */
	MUST(image_fit(image.data, image.size, max_side, max_bytes, &again, &err) == 0);
	MUST(again.data == image.data && again.size == image.size);
}

/* What the fast reader takes, libpng takes too, and it sees the same. */
static void compare_readers(const uint8_t *png, size_t size)
{
	owned(pixels_finish) struct pixels mine = {0};
	static const unsigned formats[] = {0, PNG_FORMAT_GRAY, PNG_FORMAT_GA,
					   PNG_FORMAT_RGB, PNG_FORMAT_RGBA};
	png_image theirs = {.version = PNG_IMAGE_VERSION};
	size_t end = 0;

	if (!plain_read(png, size, &mine, &end))
		return;
	MUST(end <= size);
	MUST(png_image_begin_read_from_memory(&theirs, png, size));
	theirs.format = formats[mine.channels];
	MUST(theirs.width == mine.width && theirs.height == mine.height);
	uint8_t *pixels = malloc(PNG_IMAGE_SIZE(theirs));
	MUST(pixels && png_image_finish_read(&theirs, NULL, pixels, 0, NULL));
	for (unsigned y = 0; y < mine.height; y++)
		MUST(memcmp(mine.data + y * mine.stride, pixels + y * pixels_row(&mine),
			    pixels_row(&mine)) == 0);
	free(pixels);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	unsigned side = size > 1 ? data[size - 2] : 64, odd = size ? data[size - 1] : 0;
	owned(free_text) char *copy = input_copy(&input, size, false);
	uint8_t *png = (uint8_t *)copy;

	if (odd % 2)
		put_checksums(png, size);
	if (is_small(png, size)) {
		compare_readers(png, size);
		check_image(png, size, 1 + side % 128, 64 + (size_t)odd * 16);
	}
	return 0;
}

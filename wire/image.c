// SPDX-License-Identifier: MIT
#include "wire/image.h"

#include <assert.h>
#include <math.h>
#include <png.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "wire/pack.h"
#include "wire/plain.h"
#include "wire/scale.h"

enum {
	SIGNATURE_SIZE = 8,
	HEADER_SIZE = 33, /* the signature and the IHDR chunk, which comes first */
	WIDTH_AT = 16,
	HEIGHT_AT = 20,
	HASHED = 1024, /* pixels at a time */
};

/* What one run of libpng works on.  It lives in memory, not in locals of the function
 * that calls setjmp, so nothing is lost when libpng jumps back there. */
struct coder {
	png_structp png;         /* owned */
	png_infop info;          /* owned */
	const unsigned char *in; /* borrowed */
	size_t in_size, in_at;
	struct pixels *pixels; /* borrowed */
	struct err *err;
};

typedef void coder_fn(struct coder *self);

static unsigned longer_side(const struct pixels *self)
{
	return self->width > self->height ? self->width : self->height;
}

static int no_memory_for(const struct pixels *self, struct err *err)
{
	return err_set(err, ERR_LIMIT, "no memory for a picture of %u x %u pixels",
		       self->width, self->height);
}

/* ---- libpng's callbacks ---- */

static void on_error(png_structp png, png_const_charp text)
{
	struct coder *self = png_get_error_ptr(png);

	err_set(self->err, ERR_ARGUMENT, "the PNG file is broken: %s", text);
	png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp text)
{
	(void)png;
	(void)text; /* what libpng can live with is no matter for the caller */
}

static void on_read(png_structp png, png_bytep data, size_t size)
{
	struct coder *self = png_get_io_ptr(png);

	if (self->in_size - self->in_at < size)
		png_error(png, "it ends too early");
	memcpy(data, self->in + self->in_at, size);
	self->in_at += size;
}

/* ---- running libpng ---- */

static int coder_init(struct coder *self)
{
	self->png =
	    png_create_read_struct(PNG_LIBPNG_VER_STRING, self, on_error, on_warning);
	if (self->png)
		self->info = png_create_info_struct(self->png);
	if (!self->info)
		return err_set(self->err, ERR_LIMIT, "no memory to start libpng");
	png_set_read_fn(self->png, self, on_read);
	return 0;
}

static void coder_finish(struct coder *self)
{
	png_destroy_read_struct(&self->png, &self->info, NULL);
}

/* Runs work until it returns or libpng gives up on it; the only setjmp. */
static int guarded(struct coder *self, coder_fn *work)
{
	if (setjmp(png_jmpbuf(self->png)))
		return -1; /* on_error has said why */
	work(self);
	return 0;
}

/* ---- decoding ---- */

/* Chunks that do not change the pixels here are skipped unparsed: most of libpng's
 * faults were in reading them. */
static void skip_comments(png_structp png)
{
	static const png_byte names[] =
	    "bKGD\0cHRM\0eXIf\0hIST\0iCCP\0iTXt\0oFFs\0pCAL\0"
	    "pHYs\0sBIT\0sCAL\0sPLT\0sTER\0tEXt\0tIME\0zTXt";

	png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, names,
				    (int)(sizeof names / 5));
}

static void read_head(struct coder *self)
{
	png_structp png = self->png;

	png_set_user_limits(png, IMAGE_SIDE_MAX, IMAGE_SIDE_MAX);
	png_set_chunk_malloc_max(png, IMAGE_CHUNK_MAX);
	png_set_chunk_cache_max(png, IMAGE_CHUNK_COUNT_MAX);
	png_set_crc_action(png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
	skip_comments(png);
	png_read_info(png, self->info);
	png_set_expand(png); /* to 8 bits at least, palette to RGB, tRNS to alpha */
	png_set_scale_16(png);
	/* After the header: what the file says of its gamma goes first. */
	png_set_alpha_mode(png, PNG_ALPHA_PNG, PNG_DEFAULT_sRGB);
	png_set_interlace_handling(png);
	png_read_update_info(png, self->info);
	self->pixels->width = png_get_image_width(png, self->info);
	self->pixels->height = png_get_image_height(png, self->info);
	self->pixels->channels = png_get_channels(png, self->info);
	if (png_get_rowbytes(png, self->info) != pixels_row(self->pixels))
		png_error(png, "its rows have an unknown form");
}

static void read_rows(struct coder *self)
{
	bool interlaced =
	    png_get_interlace_type(self->png, self->info) != PNG_INTERLACE_NONE;
	int passes = interlaced ? PNG_INTERLACE_ADAM7_PASSES : 1;

	for (int pass = 0; pass < passes; pass++) {
		unsigned char *row = self->pixels->data;

		for (unsigned y = 0; y < self->pixels->height; y++) {
			png_read_row(self->png, row, NULL);
			row += self->pixels->stride;
		}
	}
	png_read_end(self->png, NULL);
}

static unsigned number_at(const unsigned char *p)
{
	return (unsigned)p[0] << 24 | (unsigned)p[1] << 16 | (unsigned)p[2] << 8 | p[3];
}

/* libpng would refuse these too, but not in words that say what to do. */
static int check_head(const unsigned char *png, size_t size, struct err *err)
{
	if (size < SIGNATURE_SIZE || png_sig_cmp(png, 0, SIGNATURE_SIZE))
		return err_set(err, ERR_ARGUMENT, "not a PNG file");
	if (size < HEADER_SIZE)
		return err_set(err, ERR_ARGUMENT,
			       "the PNG file is broken: it ends too early");
	if (size > IMAGE_FILE_MAX)
		return err_set(err, ERR_LIMIT,
			       "file of %zu bytes is over the limit of %d bytes", size,
			       IMAGE_FILE_MAX);
	unsigned width = number_at(png + WIDTH_AT), height = number_at(png + HEIGHT_AT);
	if (width > IMAGE_SIDE_MAX)
		return err_set(err, ERR_LIMIT,
			       "width %u is over the limit of %d pixels", width,
			       IMAGE_SIDE_MAX);
	if (height > IMAGE_SIDE_MAX)
		return err_set(err, ERR_LIMIT,
			       "height %u is over the limit of %d pixels", height,
			       IMAGE_SIDE_MAX);
	return 0;
}

static int decode_rest(struct coder *coder)
{
	struct pixels *pixels = coder->pixels;

	if (!pixels_init(pixels, 0))
		return no_memory_for(pixels, coder->err);
	/* An interlaced picture is put together in several passes. */
	memset(pixels->data, 0, pixels->stride * pixels->height);
	return guarded(coder, read_rows);
}

/* Reads all of the picture; *end is how many bytes of png it took. */
static int decode(const unsigned char *png, size_t size, struct pixels *out,
		  size_t *end, struct err *err)
{
	owned(coder_finish) struct coder coder = {
	    .in = png, .in_size = size, .pixels = out, .err = err};

	if (check_head(png, size, err))
		return -1;
	if (plain_read(png, size, out, end))
		return 0;
	if (coder_init(&coder) || guarded(&coder, read_head) || decode_rest(&coder))
		return -1;
	*end = coder.in_at;
	return 0;
}

static int encode(struct pixels *pixels, bool thorough, struct image *out,
		  struct err *err)
{
	image_finish(out);
	out->memory = pack_png(pixels, thorough, &out->size);
	if (!out->memory)
		return no_memory_for(pixels, err);
	out->data = out->memory;
	out->width = pixels->width;
	out->height = pixels->height;
	return 0;
}

/* ---- scaling ---- */

static unsigned in_proportion(unsigned side, unsigned new_longer, unsigned longer)
{
	uint64_t scaled = ((uint64_t)side * new_longer + longer / 2) / longer;

	return scaled ? (unsigned)scaled : 1;
}

static bool is_opaque_row(const unsigned char *row, size_t size, unsigned channels)
{
	unsigned char all = 255;
	uint32_t pixels = UINT32_MAX, pixel;

	for (size_t i = 0; channels == 4 && i < size; i += sizeof pixel) {
		memcpy(&pixel, row + i, sizeof pixel);
		pixels &= pixel;
	}
	memcpy(&pixel, "\0\0\0\377", sizeof pixel);
	for (size_t i = 1; channels == 2 && i < size; i += 2)
		all &= row[i];
	return (pixels & pixel) == pixel && all == 255;
}

/* Alpha that hides nothing, as charts have it: it need not be sent. */
static bool is_opaque(const struct pixels *pixels)
{
	const unsigned char *row = pixels->data;

	for (unsigned y = 0; y < pixels->height; y++, row += pixels->stride)
		if (!is_opaque_row(row, pixels_row(pixels), pixels->channels))
			return false;
	return pixels->channels % 2 == 0;
}

static int scaled(const struct pixels *from, unsigned side, struct pixels *out,
		  struct err *err)
{
	unsigned longer = longer_side(from);

	assert(longer); /* neither reader takes a picture without pixels */
	out->width = in_proportion(from->width, side, longer);
	out->height = in_proportion(from->height, side, longer);
	out->channels = from->channels - is_opaque(from);
	if (!pixels_init(out, 0) || !scale_down(from, out))
		return no_memory_for(out, err);
	return 0;
}

/* The side to try next: as if bytes went with the area, a little less for safety. */
static unsigned next_side(unsigned side, size_t size, size_t max_bytes)
{
	double share = 0.95 * sqrt((double)max_bytes / (double)size);
	unsigned next = (unsigned)(side * (share < 0.25 ? 0.25 : share));

	return next ? next : 1;
}

/* Encodes at full size, first quickly and then well, then smaller and smaller. */
static int encode_within(struct pixels *source, size_t max_bytes, struct image *out,
			 struct err *err)
{
	unsigned side = longer_side(source);

	if (encode(source, false, out, err))
		return -1;
	if (out->size > max_bytes && encode(source, true, out, err))
		return -1;
	while (out->size > max_bytes) {
		owned(pixels_finish) struct pixels smaller = {0};

		if (side == 1)
			return err_set(err, ERR_LIMIT,
				       "the smallest picture takes %zu bytes, over the "
				       "limit of %zu",
				       out->size, max_bytes);
		side = next_side(side, out->size, max_bytes);
		if (scaled(source, side, &smaller, err) ||
		    encode(&smaller, true, out, err))
			return -1;
	}
	return 0;
}

/* Gray, with or without alpha, and RGB count as what they look like in RGBA. */
static uint32_t as_rgba(const unsigned char *p, unsigned channels)
{
	unsigned color = channels >= 3
			     ? p[0] | (unsigned)p[1] << 8 | (unsigned)p[2] << 16
			     : p[0] * 0x10101u;

	return color | (channels % 2 ? 255u : (unsigned)p[channels - 1]) << 24;
}

static uint64_t look_of_row(const unsigned char *row, unsigned width, unsigned channels,
			    uint64_t look)
{
	uint32_t part[HASHED];

	for (unsigned x = 0, count; x < width; x += count) {
		const unsigned char *p = row + (size_t)x * channels;

		count = width - x < HASHED ? width - x : HASHED;
		for (unsigned i = 0; channels < 4 && i < count; i++)
			part[i] = as_rgba(p + (size_t)i * channels, channels);
		look = XXH3_64bits_withSeed(channels < 4 ? (const void *)part : p,
					    count * sizeof *part, look);
	}
	return look;
}

/* No one has a reason to forge it: it only tells a picture that came twice. */
static uint64_t look_of(const struct pixels *pixels)
{
	const unsigned char *row = pixels->data;
	uint64_t look = (uint64_t)pixels->width << 32 | pixels->height;

	for (unsigned y = 0; y < pixels->height; y++, row += pixels->stride)
		look = look_of_row(row, pixels->width, pixels->channels, look);
	return look;
}

int image_fit(const unsigned char *png, size_t size, unsigned max_side,
	      size_t max_bytes, struct image *out, struct err *err)
{
	owned(pixels_finish) struct pixels source = {0};
	owned(image_finish) struct image image = {0};
	size_t end = 0;

	if (!max_side || !max_bytes)
		return err_set(err, ERR_ARGUMENT, "a limit of 0 leaves no picture");
	if (decode(png, size, &source, &end, err))
		return -1;
	uint64_t look = look_of(&source);
	if (longer_side(&source) <= max_side && end <= max_bytes) {
		*out = (struct image){.data = png,
				      .size = end,
				      .width = source.width,
				      .height = source.height,
				      .look = look};
		return 0;
	}
	if (longer_side(&source) > max_side) {
		struct pixels smaller = {0};
		int rc = scaled(&source, max_side, &smaller, err);

		pixels_finish(&source);
		source = smaller;
		if (rc)
			return -1;
	}
	if (encode_within(&source, max_bytes, &image, err))
		return -1;
	*out = image;
	out->look = look;
	image = (struct image){0};
	return 0;
}

void image_finish(struct image *self)
{
	free(self->memory);
	*self = (struct image){0};
}

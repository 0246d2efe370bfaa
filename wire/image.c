// SPDX-License-Identifier: MIT
#include "wire/image.h"

#include <math.h>
#include <png.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/scale.h"

enum {
	SIGNATURE_SIZE = 8,
	HEADER_SIZE = 33, /* the signature and the IHDR chunk, which comes first */
	WIDTH_AT = 16,
	HEIGHT_AT = 20,
	FAST_LEVEL = 3, /* of zlib's: the last of its fast ones */
};

/* What one run of libpng works on.  It lives in memory, not in locals of the function
 * that calls setjmp, so nothing is lost when libpng jumps back there. */
struct coder {
	png_structp png; /* owned */
	png_infop info;  /* owned */
	bool writes, thorough;
	const unsigned char *in; /* reading: borrowed */
	size_t in_size, in_at;
	unsigned char *out; /* writing: owned */
	size_t out_size, out_room;
	struct pixels *pixels; /* borrowed */
	struct err *err;
};

typedef void coder_fn(struct coder *self);

static void pixels_finish(struct pixels *self)
{
	free(self->data);
	*self = (struct pixels){0};
}

static size_t row_size(const struct pixels *self)
{
	return (size_t)self->width * self->channels;
}

static unsigned longer_side(const struct pixels *self)
{
	return self->width > self->height ? self->width : self->height;
}

static int pixels_init(struct pixels *self, struct err *err)
{
	/* Zeroed: an interlaced picture is put together in several passes. */
	self->data = calloc(self->height, row_size(self));
	if (!self->data)
		return err_set(err, ERR_LIMIT,
			       "no memory for a picture of %u x %u pixels", self->width,
			       self->height);
	return 0;
}

/* ---- libpng's callbacks ---- */

static void on_error(png_structp png, png_const_charp text)
{
	struct coder *self = png_get_error_ptr(png);

	err_set(self->err, ERR_ARGUMENT, "%s: %s",
		self->writes ? "encode the scaled PNG" : "the PNG file is broken",
		text);
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

static void on_write(png_structp png, png_bytep data, size_t size)
{
	struct coder *self = png_get_io_ptr(png);

	if (self->out_room - self->out_size < size) {
		size_t room = (self->out_size + size) * 2;
		unsigned char *out = realloc(self->out, room);

		if (!out)
			png_error(png, "no memory");
		self->out = out;
		self->out_room = room;
	}
	memcpy(self->out + self->out_size, data, size);
	self->out_size += size;
}

static void on_flush(png_structp png)
{
	(void)png;
}

/* ---- running libpng ---- */

static int coder_init(struct coder *self)
{
	self->png = self->writes ? png_create_write_struct(PNG_LIBPNG_VER_STRING, self,
							   on_error, on_warning)
				 : png_create_read_struct(PNG_LIBPNG_VER_STRING, self,
							  on_error, on_warning);
	if (self->png)
		self->info = png_create_info_struct(self->png);
	if (!self->info)
		return err_set(self->err, ERR_LIMIT, "no memory to start libpng");
	if (self->writes)
		png_set_write_fn(self->png, self, on_write, on_flush);
	else
		png_set_read_fn(self->png, self, on_read);
	return 0;
}

static void coder_finish(struct coder *self)
{
	if (self->writes)
		png_destroy_write_struct(&self->png, &self->info);
	else
		png_destroy_read_struct(&self->png, &self->info, NULL);
	free(self->out);
	self->out = NULL;
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
	if (png_get_rowbytes(png, self->info) != row_size(self->pixels))
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
			row += row_size(self->pixels);
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

/* Reads all of the picture; *end is how many bytes of png it took. */
static int decode(const unsigned char *png, size_t size, struct pixels *out,
		  size_t *end, struct err *err)
{
	owned(coder_finish) struct coder coder = {
	    .in = png, .in_size = size, .pixels = out, .err = err};

	if (check_head(png, size, err) || coder_init(&coder) ||
	    guarded(&coder, read_head) || pixels_init(out, err) ||
	    guarded(&coder, read_rows))
		return -1;
	*end = coder.in_at;
	return 0;
}

/* ---- encoding ---- */

static void write_all(struct coder *self)
{
	static const int types[] = {0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA,
				    PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA};
	const struct pixels *pixels = self->pixels;
	const unsigned char *row = pixels->data;

	png_set_IHDR(self->png, self->info, pixels->width, pixels->height, 8,
		     types[pixels->channels], PNG_INTERLACE_NONE,
		     PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
	if (!self->thorough) { /* a fourth of the time for a tenth more bytes */
		png_set_filter(self->png, PNG_FILTER_TYPE_BASE, PNG_FILTER_UP);
		png_set_compression_level(self->png, FAST_LEVEL);
	}
	png_write_info(self->png, self->info);
	for (unsigned y = 0; y < pixels->height; y++, row += row_size(pixels))
		png_write_row(self->png, row);
	png_write_end(self->png, NULL);
}

static int encode(struct pixels *pixels, bool thorough, struct image *out,
		  struct err *err)
{
	owned(coder_finish) struct coder coder = {
	    .writes = true, .thorough = thorough, .pixels = pixels, .err = err};

	if (coder_init(&coder) || guarded(&coder, write_all))
		return -1;
	image_finish(out);
	out->memory = take(&coder.out);
	out->data = out->memory;
	out->size = coder.out_size;
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

/* Alpha that hides nothing, as charts have it: it need not be sent. */
static bool is_opaque(const struct pixels *pixels)
{
	size_t size = pixels->height * row_size(pixels), channels = pixels->channels;

	for (size_t i = channels - 1; i < size; i += channels)
		if (pixels->data[i] != 255)
			return false;
	return channels % 2 == 0;
}

static int scaled(const struct pixels *from, unsigned side, struct pixels *out,
		  struct err *err)
{
	unsigned longer = longer_side(from);

	out->width = in_proportion(from->width, side, longer);
	out->height = in_proportion(from->height, side, longer);
	out->channels = from->channels - is_opaque(from);
	if (pixels_init(out, err))
		return -1;
	if (!scale_down(from, out))
		return err_set(err, ERR_LIMIT, "no memory to scale a picture");
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
static uint64_t as_rgba(const unsigned char *p, unsigned channels)
{
	unsigned color = channels >= 3
			     ? p[0] | (unsigned)p[1] << 8 | (unsigned)p[2] << 16
			     : p[0] * 0x10101u;

	return color | (channels % 2 ? 255u : (unsigned)p[channels - 1]) << 24;
}

/* No one has a reason to forge it: it only tells a picture that came twice. */
static uint64_t look_of(const struct pixels *pixels)
{
	size_t count = (size_t)pixels->width * pixels->height;
	unsigned channels = pixels->channels;
	uint64_t look = (uint64_t)pixels->width << 32 | pixels->height;

	for (size_t i = 0; i < count; i += 2) {
		const unsigned char *p = pixels->data + i * channels;
		uint64_t word = as_rgba(p, channels);

		if (i + 1 < count)
			word |= as_rgba(p + channels, channels) << 32;
		look = (look ^ word) * 0x9e3779b97f4a7c15u;
		look ^= look >> 32;
	}
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

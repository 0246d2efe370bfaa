// SPDX-License-Identifier: MIT
#include "wire/image.h"

#include <errno.h>
#include <fcntl.h>
#include <png.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "wire/mem.h"

enum {
	PLENTY = 1 << 24,     /* a max_bytes that is in nobody's way */
	HEAD_SIZE = 33,       /* signature and IHDR */
	SMALLEST_PIPE = 4096, /* bytes that fit in one */
};

#ifdef __SANITIZE_ADDRESS__
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

struct bytes {               /* a PNG in the making */
	unsigned char *data; /* owned */
	size_t size;
};

struct picture { /* what a PNG should look like */
	unsigned width, height;
	int depth, type;
	int filters; /* PNG_FILTER_*; 0 for libpng's choice */
	bool interlaced;
	bool transparent; /* adds tRNS that makes the pixel value 0 clear */
	char *comment;    /* text of a zTXt chunk, or NULL */
	double gamma;     /* gAMA; 0 for none */
	/* Sets one row; 16-bit values are big-endian. */
	void (*draw)(const struct picture *picture, unsigned y, unsigned char *row);
};

static void bytes_finish(struct bytes *self)
{
	free(self->data);
}

static void bytes_add(struct bytes *self, const void *data, size_t size)
{
	self->data = xrealloc(self->data, self->size + size + 1);
	memcpy(self->data + self->size, data, size);
	self->size += size;
}

static void on_write(png_structp png, png_bytep data, size_t size)
{
	bytes_add(png_get_io_ptr(png), data, size);
}

static void add_extras(png_structp png, png_infop info, const struct picture *picture)
{
	static const png_color colors[] = {{0, 0, 0}, {255, 0, 0}};
	static const png_byte clear = 0;
	static char key[] = "Comment";
	static const png_color_16 zero = {0, 0, 0, 0, 0};

	if (picture->type == PNG_COLOR_TYPE_PALETTE)
		png_set_PLTE(png, info, colors, 2);
	if (picture->transparent)
		png_set_tRNS(png, info, &clear, 1, &zero);
	if (picture->comment)
		png_set_text(png, info,
			     &(png_text){.compression = PNG_TEXT_COMPRESSION_zTXt,
					 .key = key,
					 .text = picture->comment},
			     1);
	if (picture->gamma > 0)
		png_set_gAMA(png, info, picture->gamma);
}

/* A PNG as the reference library writes it. */
static struct bytes make(struct picture picture)
{
	struct bytes out = {0};
	png_structp png =
	    png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
	png_infop info = png_create_info_struct(png);
	unsigned char *row = xcalloc(picture.width, 8);

	png_set_write_fn(png, &out, on_write, NULL);
	png_set_IHDR(png, info, picture.width, picture.height, picture.depth,
		     picture.type, picture.interlaced, 0, 0);
	add_extras(png, info, &picture);
	png_set_compression_level(png, 1);
	if (picture.filters)
		png_set_filter(png, 0, picture.filters);
	png_write_info(png, info);
	int passes = png_set_interlace_handling(png);
	while (passes--) {
		for (unsigned y = 0; y < picture.height; y++) {
			picture.draw(&picture, y, row);
			png_write_row(png, row);
		}
	}
	png_write_end(png, info);
	png_destroy_write_struct(&png, &info);
	free(row);
	return out;
}

static void put_number(unsigned char *at, size_t number)
{
	for (int i = 0; i < 4; i++)
		at[i] = (unsigned char)(number >> (24 - 8 * i));
}

/* The PNG standard, appendix D, one bit at a time. */
static uint32_t crc_of(const unsigned char *data, size_t size)
{
	uint32_t crc = UINT32_MAX;

	for (size_t i = 0; i < size * 8; i++) {
		uint32_t bit = (crc ^ (uint32_t)data[i / 8] >> (i % 8)) & 1;
		crc = crc >> 1 ^ (bit ? 0xEDB88320u : 0);
	}
	return ~crc;
}

/* Puts a chunk behind IHDR. */
static void insert_chunk(struct bytes *png, const char *name, const void *data,
			 size_t size)
{
	struct bytes out = {0};
	unsigned char number[4];

	bytes_add(&out, png->data, HEAD_SIZE);
	put_number(number, size);
	bytes_add(&out, number, 4);
	bytes_add(&out, name, 4);
	bytes_add(&out, data, size);
	put_number(number, crc_of(out.data + HEAD_SIZE + 4, size + 4));
	bytes_add(&out, number, 4);
	bytes_add(&out, png->data + HEAD_SIZE, png->size - HEAD_SIZE);
	bytes_finish(png);
	*png = out;
}

/* ---- drawings ---- */

static void draw_nothing(const struct picture *picture, unsigned y, unsigned char *row)
{
	(void)picture;
	(void)y;
	(void)row;
}

static unsigned channels_of(int type)
{
	unsigned color = 1;

	if (type != PNG_COLOR_TYPE_PALETTE && type & PNG_COLOR_MASK_COLOR)
		color = 3;
	return type & PNG_COLOR_MASK_ALPHA ? color + 1 : color;
}

/* Every bit of one pixel set, of the next one none; a palette's entries 1 and 0. */
static void draw_checkerboard(const struct picture *picture, unsigned y,
			      unsigned char *row)
{
	unsigned bits = channels_of(picture->type) * (unsigned)picture->depth;
	bool palette = picture->type == PNG_COLOR_TYPE_PALETTE;

	memset(row, 0, (size_t)picture->width * 8);
	for (unsigned x = y % 2; x < picture->width; x += 2) {
		for (unsigned bit = palette ? bits - 1 : 0; bit < bits; bit++) {
			unsigned at = x * bits + bit;
			row[at / 8] = (unsigned char)(row[at / 8] | 0x80u >> (at % 8));
		}
	}
}

static void draw_red_and_clear_green(const struct picture *picture, unsigned y,
				     unsigned char *row)
{
	static const unsigned char red[] = {255, 0, 0, 255}, green[] = {0, 255, 0, 0};

	for (unsigned x = 0; x < picture->width; x++)
		memcpy(row + (size_t)x * 4, (x + y) % 2 ? red : green, 4);
}

static void draw_noise(const struct picture *picture, unsigned y, unsigned char *row)
{
	uint32_t seed = y * 2654435761u + 1;

	for (unsigned i = 0; i < picture->width * channels_of(picture->type); i++) {
		seed = seed * 1664525u + 1013904223u;
		row[i] = (unsigned char)(seed >> 24);
	}
}

static void draw_gray(const struct picture *picture, unsigned y, unsigned char *row)
{
	(void)y;
	memset(row, 128, (size_t)picture->width * 8);
}

/* ---- checks ---- */

struct color {
	int r, g, b, a;
};

/* The pixel in the middle, as a browser reads it. */
static struct color middle(const unsigned char *data, size_t size)
{
	png_image png = {.version = PNG_IMAGE_VERSION};

	assert_true(png_image_begin_read_from_memory(&png, data, size));
	png.format = PNG_FORMAT_RGBA;
	unsigned char *pixels = xcalloc(PNG_IMAGE_SIZE(png), 1);
	assert_true(png_image_finish_read(&png, NULL, pixels, 0, NULL));
	const unsigned char *p =
	    pixels + ((size_t)png.height / 2 * png.width + png.width / 2) * 4;
	struct color color = {p[0], p[1], p[2], p[3]};
	free(pixels);
	return color;
}

#define assert_near(value, wanted) assert_in_range(value, (wanted)-2, (wanted) + 2)

static void check_refused(const void *png, size_t size, enum err_kind kind,
			  const char *words)
{
	struct image out = {0};
	struct err err = {0};

	assert_int_equal(image_fit(png, size, 1280, PLENTY, &out, &err), -1);
	assert_int_equal(err.kind, kind);
	assert_string_equal(err.msg, words);
	assert_null(out.memory);
}

/* Scales to max_side and shows the middle. */
static struct color scaled_middle(struct picture picture, unsigned max_side)
{
	owned(bytes_finish) struct bytes png = make(picture);
	owned(image_finish) struct image out = {0};
	struct err err = {0};

	if (image_fit(png.data, png.size, max_side, PLENTY, &out, &err))
		fail_msg("%s", err.msg);
	assert_non_null(out.memory);
	assert_int_equal(out.width > out.height ? out.width : out.height, max_side);
	return middle(out.data, out.size);
}

static const struct picture small = {.width = 64,
				     .height = 48,
				     .depth = 8,
				     .type = PNG_COLOR_TYPE_RGB,
				     .draw = draw_noise};

/* ---- tests ---- */

static void what_fits_comes_back_as_it_is(void **state)
{
	owned(bytes_finish) struct bytes png = make(small);
	struct image out = {0};
	struct err err = {0};

	(void)state;
	assert_int_equal(image_fit(png.data, png.size, 64, png.size, &out, &err), 0);
	assert_ptr_equal(out.data, png.data);
	assert_int_equal(out.size, png.size);
	assert_int_equal(out.width, 64);
	assert_int_equal(out.height, 48);
	assert_null(out.memory);
}

static void what_follows_the_picture_is_left_out(void **state)
{
	owned(bytes_finish) struct bytes png = make(small);
	size_t size = png.size;
	struct image out = {0};
	struct err err = {0};

	(void)state;
	bytes_add(&png, "<script>", 8);
	assert_int_equal(image_fit(png.data, png.size, 64, size, &out, &err), 0);
	assert_int_equal(out.size, size);
}

/* Black and white in equal parts emit half the light of white: 188 in sRGB.  A mean
 * of the stored numbers would be 128 and too dark. */
static void every_kind_of_png_is_scaled_in_linear_light(void **state)
{
	static const struct {
		int type, depth;
	} kinds[] = {
	    {PNG_COLOR_TYPE_GRAY, 1},        {PNG_COLOR_TYPE_GRAY, 2},
	    {PNG_COLOR_TYPE_GRAY, 4},        {PNG_COLOR_TYPE_GRAY, 8},
	    {PNG_COLOR_TYPE_GRAY, 16},       {PNG_COLOR_TYPE_PALETTE, 1},
	    {PNG_COLOR_TYPE_PALETTE, 2},     {PNG_COLOR_TYPE_PALETTE, 4},
	    {PNG_COLOR_TYPE_PALETTE, 8},     {PNG_COLOR_TYPE_RGB, 8},
	    {PNG_COLOR_TYPE_RGB, 16},        {PNG_COLOR_TYPE_GRAY_ALPHA, 8},
	    {PNG_COLOR_TYPE_GRAY_ALPHA, 16}, {PNG_COLOR_TYPE_RGB_ALPHA, 8},
	    {PNG_COLOR_TYPE_RGB_ALPHA, 16},
	};

	(void)state;
	for (size_t i = 0; i < 4 * COUNT_OF(kinds); i++) {
		struct picture picture = {.width = 97,
					  .height = 64,
					  .type = kinds[i / 4].type,
					  .depth = kinds[i / 4].depth,
					  .interlaced = i % 2,
					  .transparent = i & 2,
					  .draw = draw_checkerboard};
		bool palette = picture.type == PNG_COLOR_TYPE_PALETTE;
		bool clear = picture.transparent || picture.type & PNG_COLOR_MASK_ALPHA;

		if (picture.transparent && picture.type & PNG_COLOR_MASK_ALPHA)
			continue;
		struct color color = scaled_middle(picture, 48);
		/* Half of it clear: what is seen keeps its colour. */
		assert_near(color.a, clear ? 128 : 255);
		assert_near(color.r, clear ? 255 : 188);
		assert_near(color.g, palette ? 2 : clear ? 255 : 188);
		assert_near(color.b, palette ? 2 : clear ? 255 : 188);
	}
}

static uint64_t look_of(struct picture picture)
{
	owned(bytes_finish) struct bytes png = make(picture);
	struct image out = {0};
	struct err err = {0};

	if (image_fit(png.data, png.size, picture.width, PLENTY, &out, &err))
		fail_msg("%s", err.msg);
	return out.look;
}

/* What is not interlaced is read by wire/plain.c, the rest by libpng. */
static void both_readers_see_the_same(void **state)
{
	static const int types[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA,
				    PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA};
	static const int filters[] = {PNG_FILTER_NONE,  PNG_FILTER_SUB,
				      PNG_FILTER_UP,    PNG_FILTER_AVG,
				      PNG_FILTER_PAETH, PNG_ALL_FILTERS};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(types) * COUNT_OF(filters); i++) {
		struct picture picture = {.width = 211, /* 32 KB, or deflate's window */
					  .height = 190, /* is a small one */
					  .depth = 8,
					  .type = types[i % COUNT_OF(types)],
					  .filters = filters[i / COUNT_OF(types)],
					  .draw = draw_noise};
		uint64_t look = look_of(picture);

		picture.interlaced = true;
		assert_int_equal(look, look_of(picture));
	}
}

static void the_colour_of_what_is_clear_does_not_bleed(void **state)
{
	struct picture picture = small;
	struct color color;

	(void)state;
	picture.type = PNG_COLOR_TYPE_RGB_ALPHA;
	picture.draw = draw_red_and_clear_green;
	color = scaled_middle(picture, 32);
	assert_near(color.r, 255);
	assert_int_equal(color.g, 0);
	assert_near(color.a, 128);
}

static void a_file_that_names_its_gamma_is_read_by_it(void **state)
{
	struct picture picture = small;

	(void)state;
	picture.draw = draw_gray;
	assert_near(scaled_middle(picture, 32).r, 128);
	picture.gamma = 1.0;
	assert_near(scaled_middle(picture, 32).r, 188);
	picture.gamma = 1 / 2.2;
	assert_near(scaled_middle(picture, 32).r, 128);
}

static void a_line_stays_at_least_one_pixel_wide(void **state)
{
	struct picture picture = small;
	struct color color;

	(void)state;
	picture.width = IMAGE_SIDE_MAX;
	picture.height = 1;
	picture.draw = draw_gray;
	color = scaled_middle(picture, 100);
	assert_near(color.r, 128);
	picture.width = 1;
	picture.height = IMAGE_SIDE_MAX;
	color = scaled_middle(picture, 1);
	assert_near(color.r, 128);
}

static void too_many_bytes_make_it_smaller_until_it_fits(void **state)
{
	static const size_t limits[] = {20000, 5000, 1000, 200};
	owned(bytes_finish) struct bytes png = make((struct picture){
	    .width = 200, .height = 100, .depth = 8, .type = 6, .draw = draw_noise});
	struct err err = {0};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(limits); i++) {
		owned(image_finish) struct image out = {0};

		if (image_fit(png.data, png.size, 200, limits[i], &out, &err))
			fail_msg("%s", err.msg);
		assert_in_range(out.size, limits[i] / 3, limits[i]);
		assert_in_range(out.width, out.height, 2 * out.height + 1);
	}
}

static void a_wasteful_file_is_first_written_better(void **state)
{
	owned(bytes_finish) struct bytes png = make(small);
	owned(image_finish) struct image out = {0};
	char comment[10000] = "Comment";
	struct err err = {0};
	size_t size = png.size;

	(void)state;
	insert_chunk(&png, "tEXt", comment, sizeof comment);
	assert_int_equal(image_fit(png.data, png.size, 64, size + 50, &out, &err), 0);
	assert_int_equal(out.width, 64);
	assert_true(out.size <= size + 50);
}

static void a_limit_that_no_picture_meets_is_told(void **state)
{
	owned(bytes_finish) struct bytes png = make(small);
	struct image out = {0};
	struct err err = {0};

	(void)state;
	assert_int_equal(image_fit(png.data, png.size, 64, 60, &out, &err), -1);
	assert_int_equal(err.kind, ERR_LIMIT);
	assert_string_equal(
	    err.msg, "the smallest picture takes 72 bytes, over the limit of 60");
	assert_int_equal(image_fit(png.data, png.size, 0, 60, &out, &err), -1);
	assert_int_equal(image_fit(png.data, png.size, 64, 0, &out, &err), -1);
	assert_string_equal(err.msg, "a limit of 0 leaves no picture");
}

static void what_is_not_a_png_is_refused(void **state)
{
	(void)state;
	check_refused("", 0, ERR_ARGUMENT, "not a PNG file");
	check_refused("\x89PNG", 4, ERR_ARGUMENT, "not a PNG file");
	check_refused("GIF89a, and more of it", 22, ERR_ARGUMENT, "not a PNG file");
	check_refused("\x89PNG\r\n\x1a\n", 8, ERR_ARGUMENT,
		      "the PNG file is broken: it ends too early");
}

static void a_side_over_the_limit_is_named(void **state)
{
	struct picture picture = small;

	(void)state;
	picture.draw = draw_nothing;
	picture.width = 9000;
	owned(bytes_finish) struct bytes wide = make(picture);
	check_refused(wide.data, wide.size, ERR_LIMIT,
		      "width 9000 is over the limit of 8192 pixels");
	picture.width = 1;
	picture.height = 8193;
	owned(bytes_finish) struct bytes high = make(picture);
	check_refused(high.data, high.size, ERR_LIMIT,
		      "height 8193 is over the limit of 8192 pixels");
}

static void a_file_cut_anywhere_is_refused(void **state)
{
	(void)state;
	for (int interlaced = 0; interlaced < 2; interlaced++) {
		struct picture picture = small;

		picture.width = picture.height = 9;
		picture.interlaced = interlaced;
		owned(bytes_finish) struct bytes png = make(picture);
		for (size_t size = 0; size < png.size; size++) {
			struct image out = {0};
			struct err err = {0};
			/* A copy of its own size, so that reading on is noticed. */
			unsigned char *part = xcalloc(size + 1, 1);

			memcpy(part, png.data, size);
			part = xrealloc(part, size ? size : 1);
			assert_int_equal(image_fit(part, size, 99, 9999, &out, &err),
					 -1);
			assert_int_equal(err.kind, ERR_ARGUMENT);
			free(part);
		}
	}
}

static void a_file_with_any_bit_turned_is_refused(void **state)
{
	struct picture picture = small;

	(void)state;
	picture.width = picture.height = 9;
	picture.type = PNG_COLOR_TYPE_PALETTE;
	picture.transparent = true;
	picture.draw = draw_checkerboard;
	owned(bytes_finish) struct bytes png = make(picture);
	for (size_t bit = 0; bit < png.size * 8; bit++) {
		struct image out = {0};
		struct err err = {0};

		png.data[bit / 8] ^= (unsigned char)(1u << bit % 8);
		assert_int_equal(image_fit(png.data, png.size, 4, 9999, &out, &err),
				 -1);
		assert_true(err.msg[0]);
		png.data[bit / 8] ^= (unsigned char)(1u << bit % 8);
	}
}

static void a_wrong_checksum_is_named(void **state)
{
	owned(bytes_finish) struct bytes png = make(small);

	(void)state;
	png.data[png.size / 2] ^= 1;
	check_refused(png.data, png.size, ERR_ARGUMENT,
		      "the PNG file is broken: IDAT: CRC error");
}

/* A few KB that become 256 MiB, which is the documented most.  (Gray, a quarter of it,
 * where a sanitizer makes everything slow.) */
static void the_largest_picture_is_scaled(void **state)
{
	struct picture picture = {.width = IMAGE_SIDE_MAX,
				  .height = IMAGE_SIDE_MAX,
				  .depth = 1,
				  .type = SANITIZED ? PNG_COLOR_TYPE_GRAY
						    : PNG_COLOR_TYPE_PALETTE,
				  .transparent = !SANITIZED,
				  .draw = draw_nothing};
	struct color color = scaled_middle(picture, 1280);

	(void)state;
	assert_int_equal(color.a, SANITIZED ? 255 : 0);
}

static void comments_are_not_unpacked(void **state)
{
	struct picture picture = small;
	enum { UNPACKED = 40 << 20 };
	struct image out = {0};
	struct err err = {0};

	(void)state;
	picture.comment = xcalloc(UNPACKED + 1, 1);
	memset(picture.comment, 'a', UNPACKED);
	owned(bytes_finish) struct bytes png = make(picture);
	free(picture.comment);
	insert_chunk(&png, "iCCP", "not a profile", 13);
	if (image_fit(png.data, png.size, 64, PLENTY, &out, &err))
		fail_msg("%s", err.msg);
	assert_null(out.memory);
}

static void an_unknown_chunk_is_skipped_whatever_its_size(void **state)
{
	owned(bytes_finish) struct bytes png = make(small);
	unsigned char *zeros = xcalloc(IMAGE_CHUNK_MAX + 1, 1);
	struct image out = {0};
	struct err err = {0};

	(void)state;
	insert_chunk(&png, "viVa", zeros, IMAGE_CHUNK_MAX + 1);
	if (image_fit(png.data, png.size, 64, PLENTY, &out, &err))
		fail_msg("%s", err.msg);
	insert_chunk(&png, "VIVA", zeros, 1);
	free(zeros);
	check_refused(png.data, png.size, ERR_ARGUMENT,
		      "the PNG file is broken: VIVA: unhandled critical chunk");
}

static void a_hundred_thousand_chunks_are_no_matter(void **state)
{
	owned(bytes_finish) struct bytes png = make(small);
	owned(bytes_finish) struct bytes many = {0};
	static const unsigned char empty[] = {0, 0, 0, 0, 't', 'E', 'X', 't'};
	unsigned char crc[4];
	struct image out = {0};
	struct err err = {0};

	(void)state;
	put_number(crc, crc_of(empty + 4, 4));
	bytes_add(&many, png.data, HEAD_SIZE);
	many.data = xrealloc(many.data, HEAD_SIZE + 1200000);
	for (int i = 0; i < 100000; i++) {
		memcpy(many.data + many.size, empty, 8);
		memcpy(many.data + many.size + 8, crc, 4);
		many.size += 12;
	}
	bytes_add(&many, png.data + HEAD_SIZE, png.size - HEAD_SIZE);
	assert_int_equal(image_fit(many.data, many.size, 64, PLENTY, &out, &err), 0);
}

/* ---- the helper as a process ---- */

struct helper {
	pid_t pid;
	int out, errors; /* owned */
};

static int memory_file(const void *data, size_t size)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	assert_int_equal(write(fd, data, size), (ssize_t)size);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

/* Consumes in. */
static struct helper start(int in, int out, const char *side, const char *bytes)
{
	const char *build = getenv("BUILD");
	char program[4096], a[32], b[32];
	char *argv[] = {program, a, b, NULL}, *no_environment[] = {NULL};
	struct helper self = {.out = out, .errors = memory_file("", 0)};
	posix_spawn_file_actions_t actions;

	snprintf(program, sizeof program, "%s/vivarium-image", build ? build : "build");
	snprintf(a, sizeof a, "%s", side);
	snprintf(b, sizeof b, "%s", bytes);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, in, 0);
	posix_spawn_file_actions_adddup2(&actions, out, 1);
	posix_spawn_file_actions_adddup2(&actions, self.errors, 2);
	assert_int_equal(
	    posix_spawn(&self.pid, program, &actions, NULL, argv, no_environment), 0);
	posix_spawn_file_actions_destroy(&actions);
	close(in);
	return self;
}

/* Waits for its end and compares what it wrote to stderr, which is how the picture
 * looks when all is well; returns the exit status. */
static int end(struct helper *self, const char *words)
{
	char text[400] = "";
	int status = 0;

	assert_int_equal(waitpid(self->pid, &status, 0), self->pid);
	assert_true(pread(self->errors, text, sizeof text - 1, 0) >= 0);
	assert_true(WIFEXITED(status));
	if (status == 0)
		assert_int_equal(strspn(text, "0123456789abcdef"), 16);
	else
		assert_string_equal(text, words);
	close_fd(&self->errors);
	return WEXITSTATUS(status);
}

static void check_helper_refuses(const void *data, size_t size, const char *side,
				 const char *bytes, const char *words)
{
	int out = memory_file("", 0);
	struct helper helper = start(memory_file(data, size), out, side, bytes);

	assert_int_equal(end(&helper, words), 1);
	assert_int_equal(lseek(out, 0, SEEK_END), 0);
	close(out);
}

static void the_helper_writes_what_fits(void **state)
{
	owned(bytes_finish) struct bytes png = make(small);
	unsigned char back[65536];

	(void)state;
	for (int i = 0; i < 2; i++) {
		int out = memory_file("", 0);
		struct helper helper = start(memory_file(png.data, png.size), out,
					     i ? "32" : "64", "60000");

		assert_int_equal(end(&helper, ""), 0);
		ssize_t size = pread(out, back, sizeof back, 0);
		assert_in_range(size, 100, 60000);
		if (i)
			assert_int_equal(back[19], 32); /* IHDR's width */
		else
			assert_memory_equal(back, png.data, png.size);
		close(out);
	}
}

static void the_helper_scales_large_pictures_behind_its_wall(void **state)
{
	owned(bytes_finish) struct bytes png =
	    make((struct picture){.width = 2500,
				  .height = 2000,
				  .depth = 16,
				  .type = 6,
				  .interlaced = true,
				  .draw = draw_gray});
	int out = memory_file("", 0);
	struct helper helper =
	    start(memory_file(png.data, png.size), out, "1280", "4194304");

	(void)state;
	assert_int_equal(end(&helper, ""), 0);
	close(out);
}

static void the_helper_says_in_one_line_what_is_wrong(void **state)
{
	owned(bytes_finish) struct bytes png = make(small);

	(void)state;
	check_helper_refuses("GIF89a", 6, "64", "9999", "not a PNG file\n");
	check_helper_refuses("", 0, "64", "9999", "not a PNG file\n");
	check_helper_refuses(png.data, png.size - 1, "64", "9999",
			     "the PNG file is broken: it ends too early\n");
	check_helper_refuses("", 0, "0", "9999",
			     "\"0\" is not a limit: give a number from 1 to "
			     "4294967295\n");
	check_helper_refuses("", 0, "64", "-1",
			     "\"-1\" is not a limit: give a number from 1 to "
			     "18446744073709551615\n");
}

static void the_helper_reads_no_more_than_its_cap(void **state)
{
	int in = memfd_create("test", MFD_CLOEXEC), out = memory_file("", 0);

	(void)state;
	assert_int_equal(ftruncate(in, 1 << 30), 0);
	assert_int_equal(pwrite(in, "\x89PNG\r\n\x1a\n", 8, 0), 8);
	struct helper helper = start(in, out, "64", "9999");
	assert_int_equal(end(&helper, "file of 67108865 bytes is over the limit of "
				      "67108864 bytes\n"),
			 1);
	close(out);
}

static void field(const char *text, const char *name, const char *wanted)
{
	const char *at = strstr(text, name);

	assert_non_null(at);
	assert_memory_equal(at + strlen(name), wanted, strlen(wanted));
}

static void read_proc(pid_t pid, const char *what, char *text, size_t size)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, what);
	owned(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, text, size - 1);
	assert_true(got > 0);
	text[got] = '\0';
}

/* A helper that has written to a full pipe waits there with its wall up: it can be
 * looked at, without a debugger and without a way to ask it in the program. */
static void the_wall_is_up_before_anything_is_decoded(void **state)
{
	char text[8192], first;
	int ends[2];

	(void)state;
	if (SANITIZED)
		skip(); /* sanitizers need system calls that the filter forbids */
	owned(bytes_finish) struct bytes png = make(small);
	assert_true(png.size > 2 * SMALLEST_PIPE);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(fcntl(ends[1], F_SETPIPE_SZ, SMALLEST_PIPE), SMALLEST_PIPE);
	struct helper helper =
	    start(memory_file(png.data, png.size), ends[1], "64", "60000");
	close(ends[1]);
	assert_int_equal(read(ends[0], &first, 1), 1);
	read_proc(helper.pid, "status", text, sizeof text);
	field(text, "\nSeccomp:\t", "2\n");
	field(text, "\nNoNewPrivs:\t", "1\n");
	read_proc(helper.pid, "limits", text, sizeof text);
	field(text, "\nMax open files", "            3 ");
	field(text, "\nMax address space", "         1610612736 ");
	field(text, "\nMax core file size", "        0 ");
	field(text, "\nMax cpu time", "              10 ");
	while (read(ends[0], text, sizeof text) > 0)
		continue;
	assert_int_equal(end(&helper, ""), 0);
	close(ends[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(what_fits_comes_back_as_it_is),
	    cmocka_unit_test(what_follows_the_picture_is_left_out),
	    cmocka_unit_test(every_kind_of_png_is_scaled_in_linear_light),
	    cmocka_unit_test(both_readers_see_the_same),
	    cmocka_unit_test(the_colour_of_what_is_clear_does_not_bleed),
	    cmocka_unit_test(a_file_that_names_its_gamma_is_read_by_it),
	    cmocka_unit_test(a_line_stays_at_least_one_pixel_wide),
	    cmocka_unit_test(too_many_bytes_make_it_smaller_until_it_fits),
	    cmocka_unit_test(a_wasteful_file_is_first_written_better),
	    cmocka_unit_test(a_limit_that_no_picture_meets_is_told),
	    cmocka_unit_test(what_is_not_a_png_is_refused),
	    cmocka_unit_test(a_side_over_the_limit_is_named),
	    cmocka_unit_test(a_file_cut_anywhere_is_refused),
	    cmocka_unit_test(a_file_with_any_bit_turned_is_refused),
	    cmocka_unit_test(a_wrong_checksum_is_named),
	    cmocka_unit_test(the_largest_picture_is_scaled),
	    cmocka_unit_test(comments_are_not_unpacked),
	    cmocka_unit_test(an_unknown_chunk_is_skipped_whatever_its_size),
	    cmocka_unit_test(a_hundred_thousand_chunks_are_no_matter),
	    cmocka_unit_test(the_helper_writes_what_fits),
	    cmocka_unit_test(the_helper_scales_large_pictures_behind_its_wall),
	    cmocka_unit_test(the_helper_says_in_one_line_what_is_wrong),
	    cmocka_unit_test(the_helper_reads_no_more_than_its_cap),
	    cmocka_unit_test(the_wall_is_up_before_anything_is_decoded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

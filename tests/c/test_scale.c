// SPDX-License-Identifier: MIT
#include "wire/scale.h"

#include <math.h>
#include <string.h>

#include "testing.h"

static struct pixels make(unsigned width, unsigned height, unsigned channels)
{
	struct pixels self = {.width = width, .height = height, .channels = channels};

	assert_true(pixels_init(&self, 0));
	memset(self.data, 0, self.stride * height);
	return self;
}

/* From a picture to one of this size; frees the source. */
static struct pixels scale(struct pixels *from, unsigned width, unsigned height,
			   unsigned channels)
{
	struct pixels to = make(width, height, channels);

	assert_true(scale_down(from, &to));
	pixels_finish(from);
	return to;
}

CASE(one_colour_stays_what_it_is)
{
	for (unsigned channels = 1; channels <= 4; channels++)
		for (unsigned level = 0; level < 256; level++) {
			struct pixels from = make(9, 7, channels);

			memset(from.data, (int)level, 9 * 7 * channels);
			for (unsigned i = channels - 1;
			     channels % 2 == 0 && i < 63 * channels; i += channels)
				from.data[i] = 255;
			struct pixels to = scale(&from, 4, 3, channels);
			assert_int_equal(to.data[0], level);
			assert_int_equal(to.data[(4 * 3 - 1) * channels], level);
			pixels_finish(&to);
		}
}

CASE(half_black_half_white_is_half_the_light)
{
	struct pixels from = make(64, 64, 1);

	for (unsigned y = 0; y < 64; y++)
		for (unsigned x = 0; x < 64; x++)
			from.data[y * 64 + x] = (x + y) % 2 ? 255 : 0;
	struct pixels to = scale(&from, 8, 8, 1);
	for (unsigned i = 0; i < 64; i++) /* 188, not 128: sRGB of one half */
		assert_in_range(to.data[i], 186, 190);
	pixels_finish(&to);
}

CASE(a_pixel_that_nobody_sees_lends_no_colour)
{
	struct pixels from = make(8, 8, 4);

	for (unsigned i = 0; i < 64; i++) {
		bool seen = i % 2;
		const unsigned char pixel[] = {seen ? 200 : 0, seen ? 100 : 255, 50,
					       seen ? 255 : 0};

		memcpy(from.data + 4 * i, pixel, 4);
	}
	struct pixels to = scale(&from, 2, 2, 4);
	for (unsigned i = 0; i < 4; i++) {
		assert_in_range(to.data[4 * i], 199, 201);
		assert_in_range(to.data[4 * i + 1], 99, 101);
		assert_in_range(to.data[4 * i + 3], 100, 155);
	}
	pixels_finish(&to);
}

CASE(alpha_that_hides_nothing_can_be_left_out)
{
	struct pixels from = make(6, 6, 4);

	for (unsigned i = 0; i < 36; i++)
		memcpy(from.data + 4 * i, "\x0a\x14\x1e\xff", 4);
	struct pixels to = scale(&from, 3, 3, 3);
	for (unsigned i = 0; i < 9; i++)
		assert_memory_equal(to.data + 3 * i, "\x0a\x14\x1e", 3);
	pixels_finish(&to);
}

CASE(an_edge_stays_where_it_is)
{
	struct pixels from = make(100, 10, 3);

	for (unsigned y = 0; y < 10; y++)
		memset(from.data + y * 300 + 150, 255, 150);
	struct pixels to = scale(&from, 50, 5, 3);
	assert_int_equal(to.data[3 * 20], 0);
	assert_int_equal(to.data[3 * 30], 255);
	pixels_finish(&to);
}

/* ---- against the definition, without any short cut ---- */

static double weight(double x)
{
	x = fabs(x);
	if (x < 1)
		return (7 * x * x * x - 12 * x * x + 16 / 3.0) / 6;
	return x < 2 ? (-7 / 3.0 * x * x * x + 12 * x * x - 20 * x + 32 / 3.0) / 6 : 0;
}

static double linear(double level)
{
	return level <= 0.04045 ? level / 12.92 : pow((level + 0.055) / 1.055, 2.4);
}

static double level(double light)
{
	return light <= 0.0031308 ? light * 12.92 : 1.055 * pow(light, 1 / 2.4) - 0.055;
}

static double defined(const struct pixels *from, const struct pixels *to, unsigned x,
		      unsigned y)
{
	double across = (double)from->width / to->width, sum = 0, weights = 0;
	double down = (double)from->height / to->height;

	for (unsigned j = 0; j < from->height; j++)
		for (unsigned i = 0; i < from->width; i++) {
			double w = weight((i + 0.5) / across - x - 0.5) *
				   weight((j + 0.5) / down - y - 0.5);

			weights += w;
			sum += w * linear(from->data[j * from->stride + i] / 255.0);
		}
	double light = sum / weights;
	return 255 * level(light < 0 ? 0 : light > 1 ? 1 : light);
}

/* A ground with dots, strokes and a bar: most of it looks like the row above. */
static void draw(struct pixels *pixels, unsigned seed)
{
	memset(pixels->data, 230, pixels->stride * pixels->height);
	for (unsigned i = 0; i < 25; i++) {
		seed = seed * 1664525u + 1013904223u;
		unsigned x = (seed >> 8) % pixels->width;
		unsigned y = (seed >> 16) % pixels->height;
		for (unsigned j = y; j < pixels->height && j < y + i % 7 * 3 + 1; j++)
			memset(pixels->data + j * pixels->stride + x, (int)(seed >> 24),
			       i % 5 && x < 30 ? 9 : 1);
	}
}

CASE(what_looks_like_the_row_above_is_as_right_as_the_rest)
{
	static const unsigned widths[] = {40, 31, 17, 6}, heights[] = {44, 20, 13, 5};

	for (unsigned seed = 1; seed <= 12; seed++) {
		struct pixels from = make(41, 45, 1);

		draw(&from, seed * 977);
		for (unsigned i = 0; i < 4; i++) {
			struct pixels to = make(widths[i], heights[(i + seed) % 4], 1);

			assert_true(scale_down(&from, &to));
			for (unsigned y = 0; y < to.height; y++)
				for (unsigned x = 0; x < to.width; x++)
					assert_true(fabs(to.data[y * to.stride + x] -
							 defined(&from, &to, x, y)) <
						    1.01);
			pixels_finish(&to);
		}
		pixels_finish(&from);
	}
}

CASE(any_size_becomes_any_smaller_one)
{
	static const unsigned sizes[] = {1, 2, 3, 5, 17, 64, 333};

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		for (size_t j = 0; j <= i; j++)
			for (size_t k = 0; k <= i; k++) {
				struct pixels from = make(sizes[i], sizes[i], 2);

				memset(from.data, 255, sizes[i] * sizes[i] * 2);
				struct pixels to = scale(&from, sizes[j], sizes[k], 2);
				for (unsigned p = 0; p < sizes[j] * sizes[k] * 2; p++)
					assert_int_equal(to.data[p], 255);
				pixels_finish(&to);
			}
}

RUN(cmocka_unit_test(one_colour_stays_what_it_is),
    cmocka_unit_test(half_black_half_white_is_half_the_light),
    cmocka_unit_test(a_pixel_that_nobody_sees_lends_no_colour),
    cmocka_unit_test(alpha_that_hides_nothing_can_be_left_out),
    cmocka_unit_test(an_edge_stays_where_it_is),
    cmocka_unit_test(what_looks_like_the_row_above_is_as_right_as_the_rest),
    cmocka_unit_test(any_size_becomes_any_smaller_one))

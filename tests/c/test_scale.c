// SPDX-License-Identifier: MIT
#include "wire/scale.h"

#include <stdlib.h>
#include <string.h>

#include "testing.h"
#include "wire/mem.h"

static struct pixels make(unsigned width, unsigned height, unsigned channels)
{
	return (struct pixels){xcalloc(width * height, channels), width, height,
			       channels};
}

/* From a picture to one of this size; frees the source. */
static struct pixels scale(struct pixels *from, unsigned width, unsigned height,
			   unsigned channels)
{
	struct pixels to = make(width, height, channels);

	assert_true(scale_down(from, &to));
	free(from->data);
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
			free(to.data);
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
	free(to.data);
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
	free(to.data);
}

CASE(alpha_that_hides_nothing_can_be_left_out)
{
	struct pixels from = make(6, 6, 4);

	for (unsigned i = 0; i < 36; i++)
		memcpy(from.data + 4 * i, "\x0a\x14\x1e\xff", 4);
	struct pixels to = scale(&from, 3, 3, 3);
	for (unsigned i = 0; i < 9; i++)
		assert_memory_equal(to.data + 3 * i, "\x0a\x14\x1e", 3);
	free(to.data);
}

CASE(an_edge_stays_where_it_is)
{
	struct pixels from = make(100, 10, 3);

	for (unsigned y = 0; y < 10; y++)
		memset(from.data + y * 300 + 150, 255, 150);
	struct pixels to = scale(&from, 50, 5, 3);
	assert_int_equal(to.data[3 * 20], 0);
	assert_int_equal(to.data[3 * 30], 255);
	free(to.data);
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
				free(to.data);
			}
}

RUN(cmocka_unit_test(one_colour_stays_what_it_is),
    cmocka_unit_test(half_black_half_white_is_half_the_light),
    cmocka_unit_test(a_pixel_that_nobody_sees_lends_no_colour),
    cmocka_unit_test(alpha_that_hides_nothing_can_be_left_out),
    cmocka_unit_test(an_edge_stays_where_it_is),
    cmocka_unit_test(any_size_becomes_any_smaller_one))

// SPDX-License-Identifier: MIT
#include "kernelmgr/clip.h"

#include "testing.h"
#include "wire/err.h"

static void check(const struct clip *clip, const char *want)
{
	owned(buf_finish) struct buf out = {0};

	clip_render(clip, &out);
	assert_string_equal(buf_str(&out), want);
}

static void add(struct clip *clip, const char *text)
{
	clip_add(clip, text, strlen(text));
}

CASE(short_text_comes_back_as_it_was)
{
	struct clip clip = {.limit = 1200};

	check(&clip, "");
	add(&clip, "h\xc3\xa9llo ");
	add(&clip, "world\n");
	check(&clip, "h\xc3\xa9llo world\n");
	clip_finish(&clip);
}

CASE(exactly_the_limit_is_kept_and_one_more_is_not)
{
	struct clip clip = {.limit = 1200};
	owned(buf_finish) struct buf out = {0};

	for (int i = 0; i < 1200; i++)
		add(&clip, "x");
	clip_render(&clip, &out);
	assert_int_equal(out.size, 1200);
	add(&clip, "y");
	buf_finish(&out);
	clip_render(&clip, &out);
	assert_non_null(strstr(out.data, "[... 1 of 1201 characters left out ...]"));
	assert_int_equal(out.data[out.size - 1], 'y');
	clip_finish(&clip);
}

CASE(head_and_tail_stay_and_the_rest_is_counted)
{
	struct clip clip = {.limit = 1200};
	owned(buf_finish) struct buf out = {0};
	char line[32];

	for (int i = 0; i < 100000; i++) {
		snprintf(line, sizeof line, "\xe2\x82\xac%06d\n", i); /* 8 characters */
		add(&clip, line);
	}
	assert_int_equal(clip.total, 800000);
	clip_render(&clip, &out);
	assert_memory_equal(out.data,
			    "\xe2\x82\xac"
			    "000000\n",
			    10);
	assert_non_null(
	    strstr(out.data, "[... 798800 of 800000 characters left out ...]"));
	assert_string_equal(out.data + out.size - 7, "099999\n");
	assert_true(clip.tail.room < 4096); /* memory follows the limit */
	clip_finish(&clip);
}

CASE(one_huge_piece_costs_no_more_than_the_limit)
{
	struct clip clip = {.limit = 1200};
	size_t size = 10 << 20;
	char *huge = malloc(size);

	memset(huge, 'z', size);
	clip_add(&clip, huge, size);
	assert_true(clip.tail.room + clip.head.room < 8192);
	assert_int_equal(clip.total, size);
	free(huge);
	clip_finish(&clip);
}

CASE(a_line_is_ended_once)
{
	struct clip clip = {.limit = 1200};

	clip_end_line(&clip);
	check(&clip, "");
	add(&clip, "a");
	clip_end_line(&clip);
	clip_end_line(&clip);
	check(&clip, "a\n");
	clip_finish(&clip);
}

CASE(colours_are_taken_out)
{
	struct clip clip = {.limit = 1200};

	add(&clip,
	    "\x1b[0;31mred\x1b[0m \x1b]8;;http://x\x1b\\link\x1b]8;;\a\x1b(B.\x1b");
	check(&clip, "red linkB.");
	clip_finish(&clip);
}

CASE(a_colour_where_the_head_ends_is_taken_out)
{
	struct clip clip = {.limit = 1200};
	char text[1100];

	snprintf(text, sizeof text, "%0998d\x1b[0;31mred", 0);
	add(&clip, text);
	snprintf(text, sizeof text, "%0998dred", 0);
	check(&clip, text);
	clip_finish(&clip);
}

CASE(a_broken_sequence_takes_nothing_with_it)
{
	struct clip clip = {.limit = 1200};

	add(&clip, "\x1b[1;\xc3\xa9\x1b[3\n\x1b]0;title\nmore");
	check(&clip, "\xc3\xa9\n\nmore");
	clip_finish(&clip);
}

RUN(cmocka_unit_test(short_text_comes_back_as_it_was),
    cmocka_unit_test(exactly_the_limit_is_kept_and_one_more_is_not),
    cmocka_unit_test(head_and_tail_stay_and_the_rest_is_counted),
    cmocka_unit_test(one_huge_piece_costs_no_more_than_the_limit),
    cmocka_unit_test(a_line_is_ended_once), cmocka_unit_test(colours_are_taken_out),
    cmocka_unit_test(a_colour_where_the_head_ends_is_taken_out),
    cmocka_unit_test(a_broken_sequence_takes_nothing_with_it))

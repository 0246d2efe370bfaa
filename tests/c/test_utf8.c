// SPDX-License-Identifier: MIT
#include "wire/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire/err.h"
#include "wire/mem.h"

#define BAD "\xEF\xBF\xBD" /* U+FFFD */

static void check_clean(const char *text, size_t size, const char *wanted)
{
	owned(buf_finish) struct buf out = {0};

	utf8_clean(&out, text, size);
	assert_string_equal(buf_str(&out), wanted);
}

#define CLEAN(text, wanted) check_clean(text, sizeof text - 1, wanted)

static void valid_text_stays_as_it_is(void **state)
{
	(void)state;
	CLEAN("", "");
	CLEAN("plain ASCII, longer than one word of eight", "plain ASCII, longer than "
							    "one word of eight");
	CLEAN("\xC2\x80 \xDF\xBF \xE0\xA0\x80 \xEF\xBF\xBF \xF0\x90\x80\x80",
	      "\xC2\x80 \xDF\xBF \xE0\xA0\x80 \xEF\xBF\xBF \xF0\x90\x80\x80");
	CLEAN("\xED\x9F\xBF\xEE\x80\x80\xF4\x8F\xBF\xBF",
	      "\xED\x9F\xBF\xEE\x80\x80\xF4\x8F\xBF\xBF");
}

static void a_nul_is_a_character_like_others(void **state)
{
	owned(buf_finish) struct buf out = {0};

	(void)state;
	assert_int_equal(utf8_clean(&out, "a\0b", 3), 0);
	assert_int_equal(out.size, 3);
	assert_memory_equal(out.data, "a\0b", 3);
	assert_int_equal(utf8_count("a\0b", 3), 3);
}

/* The Unicode standard, section 3.9, tables 3-8 to 3-11, and what they imply. */
static void a_broken_sequence_becomes_one_mark_for_each_maximal_subpart(void **state)
{
	(void)state;
	CLEAN("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41",
	      BAD BAD BAD BAD BAD BAD BAD BAD "A");
	CLEAN("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41",
	      BAD BAD BAD BAD BAD BAD BAD BAD "A");
	CLEAN("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42",
	      BAD BAD BAD BAD BAD "A" BAD BAD "B");
	CLEAN("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", BAD BAD BAD BAD "A");
	CLEAN("\xE2\x82", BAD);
	CLEAN("\xF0\x9F\x98", BAD);
	CLEAN("x\xE2\x82y", "x" BAD "y");
	CLEAN("\xFE\xFF", BAD BAD);
	CLEAN("\xF5\x80\x80\x80", BAD BAD BAD BAD);
}

static void the_number_of_replacements_is_told(void **state)
{
	owned(buf_finish) struct buf out = {0};

	(void)state;
	assert_int_equal(utf8_clean(&out, "a\xFF\xE2\x82z", 5), 2);
	assert_int_equal(utf8_clean(&out, "b", 1), 0);
	assert_string_equal(buf_str(&out), "a" BAD BAD "zb");
}

static void characters_are_counted_not_bytes(void **state)
{
	(void)state;
	assert_int_equal(utf8_count("", 0), 0);
	assert_int_equal(utf8_count("\xE2\x82\xAC 5", 5), 3);
	assert_int_equal(utf8_count("\xF0\x9F\x98\x80\xFFz", 6), 3);
}

static void a_prefix_ends_between_characters(void **state)
{
	static const char text[] = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80z";
	static const size_t wanted[] = {0, 1, 3, 6, 10, 11, 11};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(wanted); i++)
		assert_int_equal(utf8_prefix(text, 11, i), wanted[i]);
	assert_int_equal(utf8_prefix(text, 11, SIZE_MAX), 11);
	assert_int_equal(utf8_prefix("0123456789abcdef", 16, 9), 9);
}

static void a_suffix_begins_between_characters(void **state)
{
	static const char text[] = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80z";
	static const size_t wanted[] = {0, 1, 5, 8, 10, 11, 11};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(wanted); i++)
		assert_int_equal(utf8_suffix(text, 11, i), wanted[i]);
	assert_int_equal(utf8_suffix(text, 11, SIZE_MAX), 11);
}

static void the_valid_beginning_is_measured(void **state)
{
	(void)state;
	assert_int_equal(utf8_valid_up_to("", 0), 0);
	assert_int_equal(utf8_valid_up_to("abc\xC3\xA9", 5), 5);
	assert_int_equal(utf8_valid_up_to("abcdefghij\xFFz", 12), 10);
	assert_int_equal(utf8_valid_up_to("\xED\xA0\x80", 3), 0);
}

static void an_unfinished_character_at_the_end_is_found(void **state)
{
	(void)state;
	assert_int_equal(utf8_unfinished("", 0), 0);
	assert_int_equal(utf8_unfinished("a", 1), 0);
	assert_int_equal(utf8_unfinished("a\xC3", 2), 1);
	assert_int_equal(utf8_unfinished("a\xC3\xA9", 3), 0);
	assert_int_equal(utf8_unfinished("a\xE2\x82", 3), 2);
	assert_int_equal(utf8_unfinished("\xF0\x9F\x98", 3), 3);
	assert_int_equal(utf8_unfinished("\xF0\x9F\x98\x80", 4), 0);
	assert_int_equal(utf8_unfinished("a\xFF", 2), 0);
	assert_int_equal(utf8_unfinished("\xE0\x80", 2), 0);
	assert_int_equal(utf8_unfinished("\x80\x80\x80\x80", 4), 0);
}

static void text_in_pieces_comes_out_as_if_it_were_whole(void **state)
{
	static const char text[] = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80z";

	(void)state;
	for (size_t cut = 0; cut <= 11; cut++) {
		owned(buf_finish) struct buf out = {0};
		size_t first = cut - utf8_unfinished(text, cut);

		utf8_clean(&out, text, first);
		utf8_clean(&out, text + first, 11 - first);
		assert_string_equal(buf_str(&out), text);
	}
}

/* What must hold for any bytes. */
static void check_laws(const char *text, size_t size)
{
	owned(buf_finish) struct buf out = {0};
	size_t count = utf8_count(text, size), replaced, sum = 0;

	replaced = utf8_clean(&out, text, size);
	assert_int_equal(utf8_valid_up_to(buf_str(&out), out.size), out.size);
	assert_int_equal(utf8_count(buf_str(&out), out.size), count);
	assert_int_equal(replaced == 0, utf8_valid_up_to(text, size) == size);
	for (size_t i = 0; i <= count; i++) {
		size_t front = utf8_prefix(text, size, i);

		sum = utf8_suffix(text, size, count - i);
		assert_int_equal(front + sum, size);
		assert_int_equal(utf8_count(text, front), i);
	}
}

static void all_functions_count_alike_whatever_the_bytes(void **state)
{
	static const unsigned char edges[] = {
	    0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2,
	    0xDF, 0xE0, 0xE1, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF};
	enum { EDGES = sizeof edges };
	char text[5];

	(void)state;
	for (size_t n = 0; n < EDGES * EDGES * EDGES * EDGES; n++) {
		text[0] = (char)edges[n % EDGES];
		text[1] = (char)edges[n / EDGES % EDGES];
		text[2] = (char)edges[n / EDGES / EDGES % EDGES];
		text[3] = (char)edges[n / EDGES / EDGES / EDGES];
		text[4] = (char)edges[n % 7 * 3];
		check_laws(text, 1 + n % 5);
	}
}

static void a_name_is_shown_on_one_line(void **state)
{
	owned(buf_finish) struct buf out = {0};
	static const char name[] = "a\nb\tc\r\x1B[31m\x7F\xC2\x9B \xE2\x80\xAE"
				   "gnp.exe\xFF \xC3\xA9\xF0\x9F\x98\x80";

	(void)state;
	utf8_show(&out, name, sizeof name - 1);
	assert_string_equal(buf_str(&out),
			    "a\\nb\\tc\\r\\x1b[31m\\x7f\\x9b \\u202egnp.exe" BAD
			    " \xC3\xA9\xF0\x9F\x98\x80");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(valid_text_stays_as_it_is),
	    cmocka_unit_test(a_nul_is_a_character_like_others),
	    cmocka_unit_test(
		a_broken_sequence_becomes_one_mark_for_each_maximal_subpart),
	    cmocka_unit_test(the_number_of_replacements_is_told),
	    cmocka_unit_test(characters_are_counted_not_bytes),
	    cmocka_unit_test(a_prefix_ends_between_characters),
	    cmocka_unit_test(a_suffix_begins_between_characters),
	    cmocka_unit_test(the_valid_beginning_is_measured),
	    cmocka_unit_test(an_unfinished_character_at_the_end_is_found),
	    cmocka_unit_test(text_in_pieces_comes_out_as_if_it_were_whole),
	    cmocka_unit_test(all_functions_count_alike_whatever_the_bytes),
	    cmocka_unit_test(a_name_is_shown_on_one_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: MIT
#include "kernelmgr/coding.h"

#include "testing.h"
#include "wire/err.h"
#include "wire/mem.h"

#define BYTES(text) text, sizeof(text) - 1
#define BAD "\xEF\xBF\xBD" /* U+FFFD */

static void check_guess(const char *head, size_t size, const char *wanted)
{
	enum coding coding;

	if (!wanted) {
		assert_false(coding_guess(head, size, &coding));
		return;
	}
	assert_true(coding_guess(head, size, &coding));
	assert_string_equal(coding_name(coding), wanted);
}

static void check_take(enum coding coding, const char *text, size_t size,
		       const char *wanted)
{
	owned(buf_finish) struct buf out = {0};
	size_t left = 100;

	assert_int_equal(coding_take(coding, text, size, true, &left, &out), size);
	assert_string_equal(buf_str(&out), wanted);
}

CASE(a_mark_tells_the_coding)
{
	static const struct {
		const char *text;
		size_t size, mark;
		const char *name;
	} rows[] = {
	    {BYTES("\xEF\xBB\xBFx"), 3, "utf-8"},
	    {BYTES("\xFF\xFEx\0"), 2, "utf-16le"},
	    {BYTES("\xFE\xFF\0x"), 2, "utf-16be"},
	    {BYTES("\xFF\xFE\0\0x\0\0\0"), 4, "utf-32le"},
	    {BYTES("\0\0\xFE\xFF\0\0\0x"), 4, "utf-32be"},
	    {BYTES("\xFF\xFE"), 2, "utf-16le"},
	    {BYTES("\xEF\xBB"), 0, "utf-8"},
	    {BYTES("\xFF"), 0, "utf-8"},
	    {BYTES(""), 0, "utf-8"},
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		enum coding coding;

		assert_int_equal(coding_mark(rows[i].text, rows[i].size, &coding),
				 rows[i].mark);
		assert_string_equal(coding_name(coding), rows[i].name);
	}
}

CASE(without_a_mark_the_bytes_tell)
{
	check_guess(BYTES(""), "utf-8");
	check_guess(BYTES("plain"), "utf-8");
	check_guess(BYTES("na\xC3\xAFve"), "utf-8");
	check_guess(BYTES("caf\xE9 cr\xE8me"), "windows-1252");
	check_guess(BYTES("10 \x80 \x96 20"), "windows-1252");
	/* Where something is UTF-8, the rest is broken; what means nothing too. */
	check_guess(BYTES("caf\xE9 na\xC3\xAFve"), "utf-8");
	check_guess(BYTES("caf\xE9 \x81"), "utf-8");
	/* A character that the end of what was read cuts in two is not broken. */
	check_guess(BYTES("na\xC3"), "utf-8");
	check_guess(BYTES("a\0b\0\r\0\n\0"), "utf-16le");
	check_guess(BYTES("\0a\0b\0\r\0\n"), "utf-16be");
	check_guess(BYTES("a\0b\0c\0\xAC\x20"), "utf-16le");
}

CASE(what_is_no_text_is_none)
{
	check_guess(BYTES("\0"), NULL);
	check_guess(BYTES("a\0"), NULL);
	check_guess(BYTES("a\0b"), NULL);
	check_guess(BYTES("\x80\x04\x95\0\0"), NULL);
	check_guess(BYTES("\1\0\2\0\3\0\4\0"), NULL); /* small numbers */
	check_guess(BYTES("\0\0\0\0\0\0\0\0"), NULL);
	check_guess(BYTES("\x7f"
			  "ELF\0\0\0\0"),
		    NULL);
}

CASE(each_coding_becomes_utf8)
{
	check_take(CODING_UTF_8, BYTES("\xF0\x9F\x98\x80\xFF"), "\xF0\x9F\x98\x80" BAD);
	check_take(CODING_UTF_16LE, BYTES("a\0\xE9\0\xAC\x20\x3D\xD8\x00\xDE"),
		   "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
	check_take(CODING_UTF_16BE, BYTES("\0a\0\xE9\x20\xAC\xD8\x3D\xDE\x00"),
		   "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
	check_take(CODING_UTF_32LE, BYTES("a\0\0\0\x00\xF6\x01\x00"),
		   "a\xF0\x9F\x98\x80");
	check_take(CODING_UTF_32BE, BYTES("\0\0\0a\0\x01\xF6\0"), "a\xF0\x9F\x98\x80");
	check_take(CODING_WINDOWS_1252, BYTES("\x80\x9F\xA0\xE9\xFF\x81"),
		   "\xE2\x82\xAC\xC5\xB8\xC2\xA0\xC3\xA9\xC3\xBF" BAD);
}

CASE(what_is_broken_is_one_character)
{
	check_take(CODING_UTF_16LE, BYTES("\x3D\xD8x\0"), BAD "x"); /* no second half */
	check_take(CODING_UTF_16LE, BYTES("\x00\xDEx\0"), BAD "x"); /* no first */
	check_take(CODING_UTF_16LE, BYTES("x\0y"), "x" BAD);
	check_take(CODING_UTF_16LE, BYTES("x\0\x3D\xD8"), "x" BAD);
	check_take(CODING_UTF_32LE, BYTES("\0\0\x11\0x\0\0\0"), BAD "x");
	check_take(CODING_UTF_32LE, BYTES("\0\xD8\0\0"), BAD);
	check_take(CODING_UTF_32BE, BYTES("\0\0\0"), BAD);
}

CASE(a_character_that_is_cut_waits_for_the_rest)
{
	static const struct {
		enum coding coding;
		const char *text;
		size_t size, used;
	} rows[] = {
	    {CODING_UTF_8, BYTES("x\xE2\x82"), 1},
	    {CODING_UTF_16LE, BYTES("x\0y"), 2},
	    {CODING_UTF_16LE, BYTES("x\0\x3D\xD8"), 2},
	    {CODING_UTF_16BE, BYTES("\0x\xD8\x3D\xDE"), 2},
	    {CODING_UTF_32BE, BYTES("\0\0\0x\0\0"), 4},
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		size_t left = 100;

		assert_int_equal(coding_take(rows[i].coding, rows[i].text, rows[i].size,
					     false, &left, NULL),
				 rows[i].used);
		assert_int_equal(left, 99);
	}
}

/* In whatever pieces a text comes, it is the same. */
CASE(pieces_make_the_whole)
{
	static const char text[] = "a\0\xE9\0\x3D\xD8\x00\xDE\xAC\x20\x3D\xD8z\0";
	size_t size = sizeof text - 1;

	for (size_t step = 4; step <= size; step++) {
		owned(buf_finish) struct buf out = {0};
		size_t left = 100;

		for (size_t at = 0; at < size;) {
			size_t part = size - at < step ? size - at : step;

			at += coding_take(CODING_UTF_16LE, text + at, part,
					  at + part == size, &left, &out);
		}
		assert_string_equal(buf_str(&out), "a\xC3\xA9\xF0\x9F\x98\x80"
						   "\xE2\x82\xAC" BAD "z");
		assert_int_equal(left, 94);
	}
}

CASE(no_more_is_taken_than_is_wanted)
{
	size_t left = 2;

	assert_int_equal(
	    coding_take(CODING_UTF_16LE, BYTES("a\0b\0c\0"), true, &left, NULL), 4);
	assert_int_equal(left, 0);
	assert_int_equal(
	    coding_take(CODING_UTF_16LE, BYTES("a\0b\0c\0"), true, &left, NULL), 0);
}

RUN(cmocka_unit_test(a_mark_tells_the_coding),
    cmocka_unit_test(without_a_mark_the_bytes_tell),
    cmocka_unit_test(what_is_no_text_is_none),
    cmocka_unit_test(each_coding_becomes_utf8),
    cmocka_unit_test(what_is_broken_is_one_character),
    cmocka_unit_test(a_character_that_is_cut_waits_for_the_rest),
    cmocka_unit_test(pieces_make_the_whole),
    cmocka_unit_test(no_more_is_taken_than_is_wanted))

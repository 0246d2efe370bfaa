// SPDX-License-Identifier: MIT
#include "kernelmgr/screen.h"

#include <string.h>

#include "testing.h"
#include "wire/err.h"
#include "wire/mem.h"

static void check_in(struct screen *screen, const char *want)
{
	owned(buf_finish) struct buf out = {0};

	screen_render(screen, &out);
	assert_string_equal(buf_str(&out), want);
}

/* Text, given in one piece and byte by byte where it is ASCII. */
static void check(const char *text, const char *want)
{
	struct screen whole = {.kept.limit = 2000}, pieces = {.kept.limit = 2000};
	bool ascii = true;

	for (const char *at = text; *at; at++)
		ascii = ascii && !(*at & 0x80);
	screen_add(&whole, text, strlen(text));
	check_in(&whole, want);
	check_in(&whole, want); /* rendering changes nothing */
	for (const char *at = text; ascii && *at; at++)
		screen_add(&pieces, at, 1);
	if (ascii)
		check_in(&pieces, want);
	screen_finish(&whole);
	screen_finish(&pieces);
}

CASE(plain_text_stays)
{
	check("", "");
	check("a", "a");
	check("a\nb\n", "a\nb\n");
	check("\n\n", "\n\n");
	check("\u00e4\u20ac\U0001f600\n", "\u00e4\u20ac\U0001f600\n");
	check("tab\there", "tab\there");
}

CASE(a_carriage_return_writes_over_the_line)
{
	check("abc\rx", "xbc");
	check("a\r\nb\r\n", "a\nb\n");
	check("  0%\r 50%\r100%\n", "100%\n");
	check("one\ntwo\rTWO\n", "one\nTWO\n");
	check("50%\r   \r", "");
	check("50%\r   \rx", "x");
	check("   \n", "   \n");
	check("\u20ac\u20ac\r\u00e4", "\u00e4\u20ac");
}

CASE(a_backspace_goes_back)
{
	check("ab\bc", "ac");
	check("\b\bx", "x");
}

CASE(the_cursor_moves_over_the_last_lines)
{
	check("a\nb\n\x1b[2Aone", "one\nb\n");
	check("a\nb\x1b[A\rx\ny", "x\ny");
	check("bar1\nbar2\x1b[A\rBAR1\n\rBAR2\n", "BAR1\nBAR2\n");
	check("a\x1b[9Ab", "ab");
	check("abc\x1b[2Dx", "axc");
	check("a\x1b[3Cb", "a   b");
	check("abc\x1b[1Gx", "xbc");
}

CASE(lines_are_erased)
{
	check("abc\r\x1b[Kx", "x");
	check("abc\x1b[2K\rx", "x");
	check("abc\x1b[1K", "   ");
	check("a\nb\nc\x1b[2A\r\x1b[Jx", "x");
}

CASE(colours_and_titles_are_no_text)
{
	check("\x1b[1;31mred\x1b[0m", "red");
	check("\x1b]0;title\x07text", "text");
	check("\x1b]0;title\x1b\\text", "text");
	check("\x1b]0;no end\ntext", "\ntext");
	check("\x1b(Btext\x1b", "Btext");
	check("\x1b[31\ntext", "\ntext");
}

CASE(a_line_too_long_to_change_loses_nothing)
{
	struct screen screen = {.kept.limit = 100000};
	owned(buf_finish) struct buf want = {0};

	for (int i = 0; i < 3 * SCREEN_COLUMNS; i++) {
		char digit = (char)('0' + i % 10);

		screen_add(&screen, &digit, 1);
		buf_add(&want, &digit, 1);
	}
	check_in(&screen, buf_str(&want));
	screen_finish(&screen);
}

CASE(many_lines_are_all_there_however_they_come)
{
	for (size_t step = 1; step < 4000; step = step * 3 + 1) {
		struct screen screen = {.kept.limit = 100000};
		owned(buf_finish) struct buf want = {0};

		for (int i = 0; i < 1000; i++)
			buf_printf(&want, "line %d\n", i);
		for (size_t at = 0; at < want.size; at += step)
			screen_add(&screen, want.data + at,
				   want.size - at < step ? want.size - at : step);
		check_in(&screen, want.data);
		screen_add(&screen, "\x1b[A\rLAST", 8);
		owned(buf_finish) struct buf out = {0};
		screen_render(&screen, &out);
		assert_non_null(strstr(buf_str(&out), "line 998\nLAST 999\n"));
		screen_finish(&screen);
	}
}

CASE(a_flood_without_lines_loses_nothing)
{
	struct screen screen = {.kept.limit = 1000000};
	owned(buf_finish) struct buf once = {0}, want = {0};

	for (int i = 0; i < 30000; i++)
		buf_text(&once, i % 3 ? "\u20ac" : "x");
	for (int i = 0; i < 2; i++) {
		screen_add(&screen, once.data, once.size);
		buf_add(&want, once.data, once.size);
		check_in(&screen, want.data);
	}
	screen_finish(&screen);
}

CASE(what_is_over_the_limit_is_counted)
{
	struct screen screen = {.kept.limit = 1200};
	owned(buf_finish) struct buf out = {0};

	for (int i = 0; i < 1000; i++)
		screen_add(&screen, "12345678\n", 9);
	screen_render(&screen, &out);
	assert_non_null(strstr(buf_str(&out), "[... 7800 of 9000 characters left"));
	screen_finish(&screen);
}

CASE(settled_text_changes_no_more)
{
	struct screen screen = {.kept.limit = 2000};

	screen_settle(&screen);
	assert_true(screen_is_empty(&screen));
	screen_add(&screen, "abc", 3);
	assert_false(screen_is_empty(&screen));
	screen_settle(&screen);
	screen_settle(&screen);
	screen_add(&screen, "\x1b[A\rx", 5);
	check_in(&screen, "abc\nx");
	screen_finish(&screen);
}

RUN(cmocka_unit_test(plain_text_stays),
    cmocka_unit_test(a_carriage_return_writes_over_the_line),
    cmocka_unit_test(a_backspace_goes_back),
    cmocka_unit_test(the_cursor_moves_over_the_last_lines),
    cmocka_unit_test(lines_are_erased),
    cmocka_unit_test(colours_and_titles_are_no_text),
    cmocka_unit_test(a_line_too_long_to_change_loses_nothing),
    cmocka_unit_test(many_lines_are_all_there_however_they_come),
    cmocka_unit_test(a_flood_without_lines_loses_nothing),
    cmocka_unit_test(what_is_over_the_limit_is_counted),
    cmocka_unit_test(settled_text_changes_no_more))

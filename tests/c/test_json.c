// SPDX-License-Identifier: MIT
#include "wire/json.h"

#include "testing.h"
#include "wire/mem.h"

#define FFFD "\xef\xbf\xbd"

static json_t *lossy(const char *text)
{
	json_t *value = NULL;
	struct err err;

	assert_int_equal(json_parse_lossy(&value, text, strlen(text), &err), 0);
	return value;
}

static void check_lossy(const char *text, const char *want)
{
	json_auto_t *value = lossy(text);

	assert_string_equal(json_string_value(value), want);
}

CASE(strict_parsing_names_the_place)
{
	json_t *value = NULL;
	struct err err;

	assert_int_equal(json_parse(&value, "{\"a\": nope}", 11, &err), -1);
	assert_int_equal(err.kind, ERR_PARSE);
	assert_non_null(strstr(err.msg, "at byte 10: invalid token near"));
	assert_int_equal(json_parse(&value, "\"\xff\"", 3, &err), -1);
	assert_int_equal(json_parse(&value, "", 0, &err), -1);
}

CASE(strict_parsing_keeps_nul)
{
	json_t *value = NULL;
	struct err err;

	assert_int_equal(json_parse(&value, "\"a\\u0000b\"", 10, &err), 0);
	assert_int_equal(json_string_length(value), 3);
	json_decref(value);
}

CASE(lossy_parsing_repairs_bytes_and_escapes)
{
	check_lossy("\"a\xff\"", "a" FFFD);
	check_lossy("\"a\\ud800b\"", "a" FFFD "b");
	check_lossy("\"a\\udc00b\"", "a" FFFD "b");
	check_lossy("\"a\\ud800\\ud800\\udc00b\"", "a" FFFD "\xf0\x90\x80\x80"
						   "b");
	check_lossy("\"\\ud83d\\ude00\"", "\xf0\x9f\x98\x80");
	check_lossy("\"x\\u0000y\"", "x" FFFD "y");
	/* A backslash before the u that is itself escaped is no escape. */
	check_lossy("\"\\\\u0000\"", "\\u0000");
	check_lossy("\"\xff\\\\ud800\"", FFFD "\\ud800");
	check_lossy("\"\xff\\n\"", FFFD "\n");
}

CASE(lossy_parsing_still_fails_on_what_is_not_json)
{
	static const char *const bad[] = {"{",    "\"\\ud800", "\"\\u", "[1,]",
					  "\xff", "\"\\uZZZZ", "\\"};
	json_t *value = NULL;
	struct err err;

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_int_equal(json_parse_lossy(&value, bad[i], strlen(bad[i]), &err),
				 -1);
}

static void check_writing(const char *text)
{
	owned(buf_finish) struct buf written = {0};
	json_auto_t *value = NULL;
	struct err err;

	buf_text(&written, "> "); /* it appends */
	assert_int_equal(json_parse(&value, text, strlen(text), &err), 0);
	json_write(&written, value);
	owned(free_text) char *wanted =
	    json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
	assert_string_equal(buf_str(&written) + 2, wanted);
}

CASE(what_is_written_is_what_jansson_writes)
{
	static const char *const texts[] = {
	    "{}",
	    "[]",
	    "[[],{},[{}]]",
	    "{\"a\":1,\"b\":[true,false,null],\"c\":{\"d\":\"e\"},\"\":\"\"}",
	    "[0,-1,10,9223372036854775807,-9223372036854775808]",
	    "[0.0,-0.5,1e300,1.5e-7,3.14159265358979]",
	    "\"\"",
	    "\"quote \\\" backslash \\\\ slash / \\b\\f\\n\\r\\t\"",
	    "\"\\u0000 \\u0001 \\u001f \\u007f \\u00e9 \\u2028 \\ud83d\\ude00\"",
	    "{\"\\n\\\"key\":\"\\\\\"}",
	};

	for (size_t i = 0; i < COUNT_OF(texts); i++)
		check_writing(texts[i]);
}

CASE(deep_nesting_is_refused_not_followed)
{
	static char deep[100000];
	json_t *value = NULL;
	struct err err;

	memset(deep, '[', sizeof deep);
	assert_int_equal(json_parse_lossy(&value, deep, sizeof deep, &err), -1);
}

CASE(any_bytes_become_a_string)
{
	json_auto_t *good = json_string_lossy("\xc3\xa9", 2);
	json_auto_t *bad = json_string_lossy("a\xc3", 2);

	assert_string_equal(json_string_value(good), "\xc3\xa9");
	assert_string_equal(json_string_value(bad), "a" FFFD);
}

RUN(cmocka_unit_test(strict_parsing_names_the_place),
    cmocka_unit_test(strict_parsing_keeps_nul),
    cmocka_unit_test(lossy_parsing_repairs_bytes_and_escapes),
    cmocka_unit_test(lossy_parsing_still_fails_on_what_is_not_json),
    cmocka_unit_test(what_is_written_is_what_jansson_writes),
    cmocka_unit_test(deep_nesting_is_refused_not_followed),
    cmocka_unit_test(any_bytes_become_a_string))

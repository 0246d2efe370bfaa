// SPDX-License-Identifier: MIT
#include "wire/json.h"

#include <stdlib.h>

#include "testing.h"
#include "wire/json_repair.h"
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
	check_lossy("\"a\\u00\"", "a" FFFD); /* nobody's escape swallows a quote */
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
	assert_int_equal(json_parse(&value, deep, sizeof deep, &err), -1);
}

CASE(what_lies_too_deep_is_left_out_and_the_rest_stays)
{
	owned(buf_finish) struct buf text = {0};

	buf_text(&text, "{\"data\":{\"text/plain\":\"kept\",\"x\":");
	for (int i = 0; i < 10000; i++)
		buf_text(&text, "[");
	for (int i = 0; i < 10000; i++)
		buf_text(&text, "]");
	buf_text(&text, "}}");
	json_auto_t *value = lossy(buf_str(&text));
	json_t *data = json_object_get(value, "data");
	assert_string_equal(json_text(data, "text/plain", ""), "kept");
	assert_true(json_is_array(json_object_get(data, "x")));
}

static void check_number(const char *number, bool holds)
{
	owned(free_text) char *text =
	    xasprintf("[\"a\",%s,{\"b\":%s}]", number, number);
	json_auto_t *value = lossy(text);

	assert_string_equal(json_string_value(json_array_get(value, 0)), "a");
	assert_int_equal(json_is_null(json_array_get(value, 1)), !holds);
	assert_int_equal(json_is_number(json_array_get(value, 1)), holds);
}

CASE(numbers_that_do_not_fit_become_null)
{
	static const char *const good[] = {"0",      "-1",    "9223372036854775807",
					   "1e-999", "1e308", "-9223372036854775808",
					   "0.5"};
	static const char *const bad[] = {
	    "9223372036854775808",         "1e999", "-1e999",   "1E+400",
	    "-99999999999999999999999999", "NaN",   "Infinity", "-Infinity"};

	for (size_t i = 0; i < COUNT_OF(good); i++)
		check_number(good[i], true);
	for (size_t i = 0; i < COUNT_OF(bad); i++)
		check_number(bad[i], false);
}

CASE(of_two_members_of_one_name_the_last_counts)
{
	json_auto_t *value = lossy("{\"a\":1,\"a\":2}");

	assert_int_equal(json_integer_of(value, "a", 0), 2);
	assert_int_equal(json_object_size(value), 1);
}

/* ---- bombs ---- */

static size_t taken, taken_max; /* bytes that jansson has from us */

static void *counted_malloc(size_t size)
{
	size_t *block = malloc(size + sizeof(max_align_t));

	if (!block)
		return NULL;
	*block = size;
	/* What the C library adds to each block. */
	taken += size + sizeof(size_t);
	taken_max = taken > taken_max ? taken : taken_max;
	return (char *)block + sizeof(max_align_t);
}

static void counted_free(void *data)
{
	if (!data)
		return;
	size_t *block = (void *)((char *)data - sizeof(max_align_t));
	taken -= *block + sizeof(size_t);
	free(block);
}

static void begin_counting(void)
{
	json_set_alloc_funcs(counted_malloc, counted_free);
	taken = taken_max = 0;
}

static void end_counting(void)
{
	assert_int_equal(taken, 0);
	json_set_alloc_funcs(malloc, free);
}

/* An array, or the members of an object, of one unit again and again. */
static void repeat(struct buf *out, const char *unit, size_t bytes, bool members)
{
	size_t count = bytes / strlen(unit);

	buf_text(out, members ? "{\"data\":{\"text/plain\":\"kept\",\"x\":[" : "[");
	for (size_t i = 0; i < count; i++) {
		buf_text(out, i ? "," : "");
		buf_text(out, unit);
	}
	buf_text(out, members ? "]}}" : "]");
}

static const char *const units[] = {
    "{}",   "[]",      "0",          "\"\"",
    "null", "1.5",     "{\"a\":0}",  "\"abcdefgh\"",
    "[0]",  "[[],[]]", "{\"a\":{}}", "{\"a\":0,\"b\":\"\"}"};

CASE(what_a_text_costs_is_known_before)
{
	for (size_t i = 0; i < COUNT_OF(units); i++) {
		owned(buf_finish) struct buf text = {0};
		json_t *value;
		struct err err;

		repeat(&text, units[i], 60000, false);
		begin_counting();
		assert_int_equal(json_parse(&value, text.data, text.size, &err), 0);
		json_decref(value);
		/* An array that grows is there twice for a moment. */
		size_t cost = json_cost(text.data, text.size) + 3 * text.size;
		if (taken_max > cost)
			fail_msg("%s: %zu taken, %zu said", units[i], taken_max, cost);
		end_counting();
	}
}

CASE(a_bomb_is_refused_before_it_takes_memory)
{
	for (size_t i = 0; i < COUNT_OF(units); i++) {
		owned(buf_finish) struct buf text = {0};
		json_t *value;
		struct err err;

		repeat(&text, units[i], 2 << 20, false);
		begin_counting();
		if (json_parse(&value, text.data, text.size, &err) == 0)
			json_decref(value);
		else
			assert_int_equal(err.kind, ERR_LIMIT);
		assert_true(taken_max <= JSON_TREE_MAX + 3 * text.size);
		end_counting();
	}
}

CASE(of_a_kernels_bomb_the_text_is_kept)
{
	for (size_t i = 0; i < COUNT_OF(units); i++) {
		owned(buf_finish) struct buf text = {0};

		repeat(&text, units[i], 2 << 20, true);
		begin_counting();
		json_t *value = lossy(text.data);
		json_t *data = json_object_get(value, "data");
		assert_string_equal(json_text(data, "text/plain", ""), "kept");
		json_decref(value);
		assert_true(taken_max <= JSON_TREE_MAX + 3 * text.size);
		end_counting();
	}
}

CASE(a_bomb_where_it_would_be_read_is_refused)
{
	owned(buf_finish) struct buf text = {0};
	json_t *value;
	struct err err;

	repeat(&text, "0", 2 << 20, false);
	assert_int_equal(json_parse_lossy(&value, text.data, text.size, &err), -1);
	assert_int_equal(err.kind, ERR_LIMIT);
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
    cmocka_unit_test(what_lies_too_deep_is_left_out_and_the_rest_stays),
    cmocka_unit_test(numbers_that_do_not_fit_become_null),
    cmocka_unit_test(of_two_members_of_one_name_the_last_counts),
    cmocka_unit_test(what_a_text_costs_is_known_before),
    cmocka_unit_test(a_bomb_is_refused_before_it_takes_memory),
    cmocka_unit_test(of_a_kernels_bomb_the_text_is_kept),
    cmocka_unit_test(a_bomb_where_it_would_be_read_is_refused),
    cmocka_unit_test(any_bytes_become_a_string))

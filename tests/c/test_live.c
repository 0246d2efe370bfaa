// SPDX-License-Identifier: MIT
#include "mcp/live.h"

#include "mcp/server.h"
#include "testing.h"
#include "wire/json.h"
#include "wire/mem.h"

static json_t *told; /* the params of what was sent, in order */
static bool reads = true;

static bool on_send(void *arg, json_t *message, bool must)
{
	(void)arg;
	assert_false(must);
	if (reads)
		json_array_append(told, json_object_get(message, "params"));
	return reads;
}

static struct server_context context = {.revision = MCP_2025_11_25,
					.outlet = {.send = on_send}};

static int begin(void **state)
{
	static struct live live;

	told = json_array();
	reads = true;
	context.log_level = LOG_NONE;
	context.progress_token = json_integer(7);
	live = (struct live){.context = &context, .began_us = loop_now_us()};
	*state = &live;
	return 0;
}

static int end(void **state)
{
	live_stop(*state);
	json_decref(context.progress_token);
	json_decref(told);
	return 0;
}

static void print(struct live *self, bool is_err, const char *text)
{
	live_print(is_err, text, strlen(text), self);
}

static const json_t *newest(void)
{
	return json_array_get(told, json_array_size(told) - 1);
}

static double progress(void)
{
	return json_number_value(json_object_get(newest(), "progress"));
}

static double total(void)
{
	const json_t *value = json_object_get(newest(), "total");

	return value ? json_number_value(value) : -1;
}

CASE(a_bar_is_told_with_its_total)
{
	print(*state, true, "\r 25%|##   | 1/4 [00:01<00:03]");
	live_tick(*state);
	assert_true(progress() == 1 && total() == 4);
	assert_string_equal(json_text(newest(), "message", ""),
			    "25%, 1/4 [00:01<00:03]");
	print(*state, true, "\r 50%|##   | 2/4 [00:01<00:03]\r 75%|##");
	live_tick(*state);
	assert_true(progress() == 2 && total() == 4);
	print(*state, true, "   | 3/4 [00:01<00:03]");
	live_tick(*state);
	assert_true(progress() == 3 && total() == 4);
}

CASE(progress_grows_whatever_is_printed)
{
	static const char *const texts[] = {
	    "\r 50%|##   | 2/4 [00:01<00:03]",
	    "",
	    "\r 50%|##   | 2/4 [00:01<00:03]",
	    "\r 100%|##   | 4/4 [00:01<00:03]\n",
	    "plain\n",
	    "\r 0%|##   | 0/9 [00:01<00:03]",
	    "\r 11%|##   | 1/9 [00:01<00:03]",
	    "\r 0%|##   | 0/9 [00:01<00:03]",
	    "\r 22%|##   | 2/9 [00:01<00:03]",
	    "\r3it [00:01, 1it/s]",
	};
	double last = -1;

	for (size_t i = 0; i < COUNT_OF(texts); i++) {
		print(*state, true, texts[i]);
		live_tick(*state);
		assert_int_equal(json_array_size(told), i + 1);
		assert_true(progress() > last);
		assert_true(total() < 0 || progress() <= total());
		last = progress();
	}
}

CASE(a_bar_inside_another_is_not_told)
{
	print(*state, true, "outer:  25%|##   | 1/4 [00:01<00:03]\n");
	live_tick(*state);
	print(*state, true, "inner:  50%|##   | 50/100 [00:01<00:03]");
	live_tick(*state);
	assert_true(total() == 4 && progress() < 2);
}

CASE(without_a_bar_time_and_lines_are_told)
{
	print(*state, false, "a\nb\r\nc");
	live_tick(*state);
	assert_true(total() < 0);
	assert_string_equal(json_text(newest(), "message", ""), "0 s, 2 lines so far");
}

static const char *data(void)
{
	return json_text(newest(), "data", "");
}

CASE(whole_lines_are_told_as_the_level_asks)
{
	json_decref(context.progress_token);
	context.progress_token = NULL;
	context.log_level = outlet_level("info");
	print(*state, false, "one\n\x1b[31mtwo\x1b[0m\nthr");
	live_tick(*state);
	assert_string_equal(data(), "one\ntwo");
	print(*state, false, "ee\rfour\n");
	print(*state, true, "bad\n");
	live_tick(*state);
	assert_int_equal(json_array_size(told), 3);
	assert_string_equal(data(), "bad");
	assert_string_equal(json_text(newest(), "level", ""), "warning");
	assert_string_equal(json_text(json_array_get(told, 1), "data", ""), "four");
	context.log_level = outlet_level("error");
	print(*state, true, "bad\n");
	live_tick(*state);
	assert_int_equal(json_array_size(told), 3);
}

CASE(a_client_that_does_not_read_is_told_what_it_missed)
{
	json_decref(context.progress_token);
	context.progress_token = NULL;
	context.log_level = outlet_level("debug");
	reads = false;
	for (int i = 0; i < 100000; i++) {
		print(*state, false, "a line of ordinary length, more or less\n");
		if (i % 1000 == 0)
			live_tick(*state);
	}
	print(*state, false, "last\n");
	reads = true;
	live_tick(*state);
	assert_int_equal(json_array_size(told), 1);
	assert_true(strlen(data()) < 9000);
	assert_non_null(strstr(data(), "lines left out"));
	assert_string_equal(strrchr(data(), '\n'), "\nlast");
	live_tick(*state);
	assert_int_equal(json_array_size(told), 1);
}

#define LIVE_CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)
RUN(LIVE_CASE(a_bar_is_told_with_its_total),
    LIVE_CASE(progress_grows_whatever_is_printed),
    LIVE_CASE(a_bar_inside_another_is_not_told),
    LIVE_CASE(without_a_bar_time_and_lines_are_told),
    LIVE_CASE(whole_lines_are_told_as_the_level_asks),
    LIVE_CASE(a_client_that_does_not_read_is_told_what_it_missed))

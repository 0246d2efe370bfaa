// SPDX-License-Identifier: MIT
#include "kernelmgr/outputs.h"

#include "testing.h"
#include "wire/err.h"

static struct outputs outputs;

static int set_up(void **state)
{
	(void)state;
	outputs_init(&outputs, 2000);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	outputs_finish(&outputs);
	return 0;
}

static struct jmsg message(const char *type, const char *content, const char *metadata)
{
	return (struct jmsg){.type = type,
			     .id = "i",
			     .parent_id = "p",
			     .content = json_loads(content, 0, NULL),
			     .metadata = json_loads(metadata, 0, NULL)};
}

static void broadcast(const char *type, const char *content)
{
	struct jmsg one = message(type, content, "{}");

	assert_non_null(one.content);
	outputs_add(&outputs, &one);
	jmsg_finish(&one);
}

static void reply(const char *content, const char *metadata)
{
	struct jmsg one = message("execute_reply", content, metadata);

	outputs_reply(&outputs, &one);
	jmsg_finish(&one);
}

static void check(const struct clip *clip, const char *want)
{
	owned(buf_finish) struct buf out = {0};

	clip_render(clip, &out);
	assert_string_equal(buf_str(&out), want);
}

CASE(streams_and_displays_keep_their_order)
{
	broadcast("stream", "{\"name\":\"stdout\",\"text\":\"a\"}");
	broadcast("display_data", "{\"data\":{\"text/plain\":\"D\"}}");
	broadcast("stream", "{\"name\":\"stdout\",\"text\":\"b\\n\"}");
	broadcast("stream", "{\"name\":\"stderr\",\"text\":\"e\"}");
	broadcast("execute_result", "{\"data\":{\"text/plain\":\"42\"}}");
	check(&outputs.out, "a\nD\nb\n");
	check(&outputs.err, "e");
	check(&outputs.result, "42");
}

CASE(a_picture_replaces_its_text)
{
	broadcast("display_data", "{\"data\":{\"image/png\":\"aGVs\\nbG8=\\n\",\"text/"
				  "plain\":\"<Figure>\"}}");
	assert_int_equal(outputs.display_count, 1);
	assert_int_equal(outputs.displays[0].size, 5);
	assert_memory_equal(outputs.displays[0].png, "hello", 5);
	check(&outputs.out, "");
}

CASE(what_is_no_base64_is_dropped_and_counted)
{
	broadcast("display_data", "{\"data\":{\"image/png\":\"!!!\"}}");
	broadcast("display_data", "{\"data\":{\"image/png\":7}}");
	assert_int_equal(outputs.display_count, 0);
	assert_int_equal(outputs.displays_dropped, 1);
}

CASE(pictures_over_the_limit_are_counted)
{
	for (int i = 0; i < DISPLAYS_MAX + 3; i++)
		broadcast("display_data", "{\"data\":{\"image/png\":\"aGk=\"}}");
	assert_int_equal(outputs.display_count, DISPLAYS_MAX);
	assert_int_equal(outputs.displays_dropped, 3);
}

CASE(an_error_comes_from_the_reply_if_the_broadcast_is_late)
{
	reply("{\"status\":\"error\",\"ename\":\"E\",\"evalue\":\"v\",\"traceback\":"
	      "[\"one\",\"two\"],\"execution_count\":3}",
	      "{\"vivarium\":{\"v\":1}}");
	assert_string_equal(outputs.error_name, "E");
	check(&outputs.traceback, "one\ntwo\n");
	broadcast("error",
		  "{\"ename\":\"E\",\"evalue\":\"v\",\"traceback\":[\"one\"]}");
	check(&outputs.traceback, "one\n"); /* once, not twice */
	assert_int_equal(outputs.execution_count, 3);
	assert_int_equal(json_integer_value(json_object_get(outputs.summary, "v")), 1);
}

CASE(busy_idle_and_aborted_are_noted)
{
	broadcast("status", "{\"execution_state\":\"busy\"}");
	assert_true(outputs.busy && !outputs.idle);
	broadcast("status", "{\"execution_state\":\"idle\"}");
	assert_true(outputs.idle);
	reply("{\"status\":\"abort\"}", "{}");
	assert_true(outputs.replied && outputs.aborted);
}

CASE(messages_of_the_wrong_shape_do_no_harm)
{
	static const char *const types[] = {"stream",
					    "display_data",
					    "execute_result",
					    "error",
					    "status",
					    "clear_output",
					    "?",
					    "update_display_data"};
	static const char *const contents[] = {
	    "{}",
	    "{\"text\":1,\"name\":[]}",
	    "{\"data\":3}",
	    "{\"data\":{}}",
	    "{\"traceback\":\"x\",\"ename\":{},\"evalue\":null}",
	    "{\"traceback\":[1,null,{}]}",
	    "{\"execution_state\":[]}"};

	for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
		for (size_t c = 0; c < sizeof contents / sizeof contents[0]; c++)
			broadcast(types[t], contents[c]);
	reply("{}", "{\"vivarium\":[]}");
	assert_null(outputs.summary); /* not an object: as if there were none */
}

#define EACH(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
RUN(EACH(streams_and_displays_keep_their_order), EACH(a_picture_replaces_its_text),
    EACH(what_is_no_base64_is_dropped_and_counted),
    EACH(pictures_over_the_limit_are_counted),
    EACH(an_error_comes_from_the_reply_if_the_broadcast_is_late),
    EACH(busy_idle_and_aborted_are_noted), EACH(messages_of_the_wrong_shape_do_no_harm))

// SPDX-License-Identifier: MIT
#include "kernelmgr/outputs.h"

#include "testing.h"
#include "wire/err.h"
#include "wire/mem.h"

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

static void check_out(const char *want)
{
	owned(buf_finish) struct buf out = {0};

	outputs_out(&outputs, &out);
	assert_string_equal(buf_str(&out), want);
}

static void check_err(const char *want)
{
	owned(buf_finish) struct buf out = {0};

	outputs_err(&outputs, &out);
	assert_string_equal(buf_str(&out), want);
}

static void print(const char *text)
{
	json_auto_t *content = json_pack("{ss ss}", "name", "stdout", "text", text);
	owned(free_text) char *json = json_dumps(content, 0);

	broadcast("stream", json);
}

static void show(const char *type, const char *id, const char *text)
{
	owned(free_text) char *json =
	    xasprintf("{\"data\":{\"text/plain\":\"%s\"},"
		      "\"transient\":{\"display_id\":\"%s\"}}",
		      text, id);

	broadcast(type, json);
}

static void show_picture(const char *type, const char *id)
{
	owned(free_text) char *json =
	    xasprintf("{\"data\":{\"image/png\":\"aGk=\",\"text/plain\":\"F\"},"
		      "\"transient\":{\"display_id\":\"%s\"}}",
		      id);

	broadcast(type, json);
}

CASE(streams_and_displays_keep_their_order)
{
	broadcast("stream", "{\"name\":\"stdout\",\"text\":\"a\"}");
	broadcast("display_data", "{\"data\":{\"text/plain\":\"D\"}}");
	broadcast("stream", "{\"name\":\"stdout\",\"text\":\"b\\n\"}");
	broadcast("stream", "{\"name\":\"stderr\",\"text\":\"e\"}");
	broadcast("execute_result", "{\"data\":{\"text/plain\":\"42\"}}");
	check_out("a\nD\nb\n");
	check_err("e");
	check(&outputs.result, "42");
}

CASE(a_picture_replaces_its_text)
{
	broadcast("display_data", "{\"data\":{\"image/png\":\"aGVs\\nbG8=\\n\",\"text/"
				  "plain\":\"<Figure>\"}}");
	assert_int_equal(outputs.display_count, 1);
	assert_int_equal(outputs.displays[0].size, 5);
	assert_memory_equal(outputs.displays[0].png, "hello", 5);
	check_out("");
}

CASE(what_is_no_base64_is_an_empty_picture)
{
	broadcast("display_data", "{\"data\":{\"image/png\":\"!!!\"}}");
	broadcast("display_data", "{\"data\":{\"image/png\":7}}");
	assert_int_equal(outputs.display_count, 1);
	assert_int_equal(outputs.displays[0].size, 0);
	assert_int_equal(outputs.displays_dropped, 0);
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

CASE(a_display_that_is_updated_is_there_once_in_its_place)
{
	print("before");
	show("display_data", "a", "0");
	print("after\n");
	for (int i = 0; i < 1000; i++)
		show("update_display_data", "a", "n");
	show("update_display_data", "a", "last");
	check_out("before\nlast\nafter\n");
}

CASE(an_update_of_an_earlier_cell_is_shown_anew_and_once)
{
	show("update_display_data", "old", "1");
	show("update_display_data", "old", "2");
	check_out("2\n");
}

CASE(a_display_may_become_a_picture_and_text_again)
{
	show("display_data", "a", "text");
	show_picture("update_display_data", "a");
	show_picture("update_display_data", "a");
	check_out("");
	assert_int_equal(outputs.display_count, 1);
	assert_int_equal(outputs.display_bytes, 2);
	show("update_display_data", "a", "text");
	check_out("text\n");
	assert_int_equal(outputs.display_count, 0);
	assert_int_equal(outputs.display_bytes, 0);
}

CASE(more_displays_than_places_join_the_last)
{
	owned(buf_finish) struct buf want = {0};

	for (int i = 0; i < 3 * PIECES_MAX; i++) {
		owned(free_text) char *id = xasprintf("d%d", i);

		show("display_data", id, "x");
		buf_text(&want, "x\n");
	}
	show("update_display_data", "d0", "x");
	show("update_display_data", "d90", "lost");
	check_out(buf_str(&want));
}

CASE(what_is_cleared_is_gone)
{
	print("a\n");
	broadcast("stream", "{\"name\":\"stderr\",\"text\":\"e\"}");
	show_picture("display_data", "p");
	broadcast("clear_output", "{\"wait\":false}");
	check_out("");
	check_err("");
	assert_int_equal(outputs.display_count, 0);
	print("b\n");
	check_out("b\n");
}

CASE(clearing_may_wait_for_what_comes_next)
{
	print("a\n");
	broadcast("clear_output", "{\"wait\":true}");
	broadcast("status", "{\"execution_state\":\"busy\"}");
	check_out("a\n");
	show("display_data", "x", "b");
	check_out("b\n");
	print("c\n");
	check_out("b\nc\n");
}

CASE(a_bar_is_one_line)
{
	for (int i = 0; i < 500; i++)
		print("\r 42%|####      |");
	print("\r100%|##########|\n");
	check_out("100%|##########|\n");
}

CASE(other_forms_are_shown_where_there_is_no_plain_text)
{
	broadcast("display_data", "{\"data\":{\"text/markdown\":\"# M\"}}");
	broadcast("display_data", "{\"data\":{\"application/json\":{\"a\":[1]},"
				  "\"text/html\":\"<b>\"}}");
	broadcast("execute_result", "{\"data\":{\"text/latex\":\"$x$\"}}");
	check_out("# M\n{\n \"a\": [\n  1\n ]\n}\n");
	check(&outputs.result, "$x$");
}

CASE(a_picture_that_was_saved_says_where)
{
	broadcast("display_data", "{\"data\":{\"image/png\":\"aGk=\"},\"metadata\":"
				  "{\"vivarium\":{\"saved\":\"a.png\"}}}");
	assert_string_equal(outputs.displays[0].saved, "a.png");
	outputs_drop_display(&outputs, 0);
	assert_int_equal(outputs.display_count, 0);
	assert_int_equal(outputs.display_bytes, 0);
}

CASE(what_goes_to_a_pager_or_the_next_cell_is_shown)
{
	reply("{\"status\":\"ok\",\"payload\":["
	      "{\"source\":\"page\",\"data\":{\"text/"
	      "plain\":\"\\u001b[31mhelp\\u001b[0m\"}},"
	      "{\"source\":\"set_next_input\",\"text\":\"next\"},"
	      "{\"source\":\"ask_exit\",\"text\":\"no\"}]}",
	      "{}");
	check(&outputs.result, "help\nnext");
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
	reply("{\"payload\":[1,{},{\"source\":\"page\",\"data\":2},"
	      "{\"source\":\"set_next_input\"}]}",
	      "{}");
	reply("{\"payload\":{}}", "{\"vivarium\":[]}");
	assert_null(outputs.summary); /* not an object: as if there were none */
}

#define EACH(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
RUN(EACH(streams_and_displays_keep_their_order), EACH(a_picture_replaces_its_text),
    EACH(what_is_no_base64_is_an_empty_picture),
    EACH(pictures_over_the_limit_are_counted),
    EACH(an_error_comes_from_the_reply_if_the_broadcast_is_late),
    EACH(busy_idle_and_aborted_are_noted),
    EACH(a_display_that_is_updated_is_there_once_in_its_place),
    EACH(an_update_of_an_earlier_cell_is_shown_anew_and_once),
    EACH(a_display_may_become_a_picture_and_text_again),
    EACH(more_displays_than_places_join_the_last), EACH(what_is_cleared_is_gone),
    EACH(clearing_may_wait_for_what_comes_next), EACH(a_bar_is_one_line),
    EACH(other_forms_are_shown_where_there_is_no_plain_text),
    EACH(a_picture_that_was_saved_says_where),
    EACH(what_goes_to_a_pager_or_the_next_cell_is_shown),
    EACH(messages_of_the_wrong_shape_do_no_harm))

// SPDX-License-Identifier: MIT
#include "mcp/render.h"

#include "testing.h"
#include "wire/json.h"

static struct outputs outputs;
static struct files_list wrote;
static struct files_scan files;
static struct outcome outcome;
static const struct render_options newest = {
    .structure = true, .footer = true, .workspace = "default", .preface = ""};

static int set_up(void **state)
{
	(void)state;
	outputs_init(&outputs, 2000);
	outputs.execution_count = 7;
	outcome = (struct outcome){.notice = "",
				   .outputs = &outputs,
				   .late = "",
				   .walls = "",
				   .wrote = &wrote,
				   .workspace = &files};
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	outputs_finish(&outputs);
	return 0;
}

static void add(struct clip *clip, const char *text)
{
	clip_add(clip, text, strlen(text));
}

static void stream(bool is_err, const char *text)
{
	outputs_add_rest(&outputs, is_err, text, strlen(text), 0);
}

static const char *text_at(const json_t *result, size_t index)
{
	const json_t *item = json_array_get(json_object_get(result, "content"), index);

	return json_string_value(json_object_get(item, "text"));
}

static const char *structured(const json_t *result, const char *key)
{
	return json_string_value(
	    json_object_get(json_object_get(result, "structuredContent"), key));
}

CASE(nothing_to_say_is_said)
{
	json_auto_t *result = render_outcome(&outcome, &newest);

	assert_string_equal(text_at(result, 0), "(no output)");
	assert_string_equal(text_at(result, 1), "--- state ---\nworkspace: no files");
	assert_true(json_is_false(json_object_get(result, "isError")));
}

CASE(all_sections_in_their_order)
{
	stream(false, "out");
	stream(true, "err\n");
	add(&outputs.result, "a\nb");
	outcome.notice = "Notice.\n";
	outcome.late = "late";
	json_auto_t *result = render_outcome(&outcome, &newest);

	assert_string_equal(text_at(result, 0),
			    "Notice.\nOutput that came after the cell before this "
			    "one:\nlate\nout\nstderr:\nerr\nOut[7]:\na\nb");
	assert_string_equal(structured(result, "stdout"), "out");
	assert_string_equal(structured(result, "result"), "a\nb");
	assert_string_equal(structured(result, "notice"), "Notice.\n");
}

CASE(an_error_comes_first)
{
	stream(false, "before\n");
	add(&outputs.traceback, "Traceback\n");
	outputs.error_name = strdup("ValueError");
	outputs.error_value = strdup("no\nsecond line");
	outcome.end = CALL_ERROR;
	outcome.exit_code = 1;
	json_auto_t *result = render_outcome(&outcome, &newest);

	assert_string_equal(text_at(result, 0), "Error: ValueError: no (exit code 1)\n"
						"before\nTraceback");
	assert_true(json_is_true(json_object_get(result, "isError")));
	assert_string_equal(structured(result, "end"), "error");
}

CASE(system_exit_is_no_traceback)
{
	add(&outputs.traceback, "SystemExit: 3\n");
	outputs.error_name = strdup("SystemExit");
	outputs.error_value = strdup("3");
	outcome.end = CALL_ERROR;
	outcome.exit_code = 3;
	json_auto_t *result = render_outcome(&outcome, &newest);

	assert_string_equal(text_at(result, 0), "Exit code 3.");
}

CASE(there_is_no_structure_unless_it_is_wanted)
{
	const struct render_options plain = {.structure = false,
					     .footer = false,
					     .workspace = "default",
					     .preface = "Lowered.\n"};
	json_auto_t *result = render_outcome(&outcome, &plain);

	assert_null(json_object_get(result, "structuredContent"));
	assert_int_equal(json_array_size(json_object_get(result, "content")), 1);
	assert_string_equal(text_at(result, 0), "Lowered.");
}

CASE(the_footer_lists_names_and_cuts_them)
{
	outputs.summary = json_loads(
	    "{\"vars\":[[\"df\",\"2x2 [a, b]\"],[\"evil\\nname\",\"\\u202ex\"]],"
	    "\"more_vars\":3,\"modules\":[[\"pd\",\"pandas\"],[\"os\",\"os\"]],"
	    "\"children\":1,\"threads\":2}",
	    0, NULL);
	json_auto_t *result = render_outcome(&outcome, &newest);

	assert_string_equal(
	    text_at(result, 1),
	    "--- state ---\nvars: df 2x2 [a, b]  evil\\nname \\u202ex  +3 more\n"
	    "already imported (do not re-import): pd=pandas  os\n"
	    "still running: 1 child process, 2 threads\nworkspace: no files");
}

static const json_t *state_of(const json_t *result)
{
	return json_object_get(json_object_get(result, "structuredContent"), "state");
}

CASE(what_is_not_saved_is_named_in_both_forms)
{
	json_t *over = json_array(), *lost = json_array();
	char name[] = "a";

	for (; name[0] < 'k'; name[0]++) {
		json_array_append_new(over, json_pack("{ss si}", "name", name, "bytes",
						      1024 * (name[0] - 'a')));
		json_array_append_new(lost, json_pack("{ss ss ss}", "name", name,
						      "what", "w", "why", "y"));
	}
	outputs.summary =
	    json_pack("{si s{so so si ss}}", "threads", 2, "snapshot", "over", over,
		      "lost", lost, "more_lost", 3, "error", "no room");
	json_auto_t *result = render_outcome(&outcome, &newest);
	const json_t *told = state_of(result);
	const json_t *saved = json_object_get(told, "namespace");

	assert_non_null(strstr(text_at(result, 1), "h (w: y)  also i, j  +3 more\n"));
	assert_non_null(strstr(text_at(result, 1), "h 7.0K  also i, j\n"));
	assert_int_equal(json_object_size(json_object_get(saved, "too_large")), 10);
	assert_string_equal(json_text(saved, "error", ""), "no room");
	assert_int_equal(
	    json_integer_of(json_object_get(told, "still_running"), "threads", 0), 2);
	assert_null(json_object_get(told, "walls"));
}

CASE(walls_that_are_lower_are_told_in_both_forms)
{
	outcome.walls = "L";
	json_auto_t *result = render_outcome(&outcome, &newest);

	assert_non_null(strstr(text_at(result, 1), "walls: L\n"));
	assert_string_equal(json_text(state_of(result), "walls", ""), "L");
	assert_null(json_object_get(state_of(result), "still_running"));
}

CASE(a_summary_of_any_shape_is_survived)
{
	static const char *const shapes[] = {
	    "{\"vars\":7,\"modules\":\"x\",\"more_vars\":\"y\",\"children\":[]}",
	    "{\"vars\":[1,null,[],[1],[[],{}],[\"a\"],[\"b\",5]],\"modules\":[[\"a\"],{"
	    "},"
	    "[1,2]]}",
	    "{\"more_vars\":-5,\"threads\":-1}"};

	for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
		json_decref(outputs.summary);
		outputs.summary = json_loads(shapes[i], 0, NULL);
		assert_non_null(outputs.summary);
		json_auto_t *result = render_outcome(&outcome, &newest);

		assert_true(strlen(text_at(result, 1)) < 400);
		assert_null(strstr(text_at(result, 1), "0 more"));
		assert_null(strstr(text_at(result, 1), "1844"));
	}
}

CASE(ten_thousand_names_stay_a_short_footer)
{
	json_t *vars = json_array();
	char name[2000];

	memset(name, 'n', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	for (int i = 0; i < 10000; i++)
		json_array_append_new(vars, json_pack("[ss]", name, name));
	outputs.summary = json_pack("{so}", "vars", vars);
	json_auto_t *result = render_outcome(&outcome, &newest);

	assert_true(strlen(text_at(result, 1)) < 2500);
	assert_non_null(strstr(text_at(result, 1), " more\n"));
}

CASE(pictures_stand_between_text_and_footer)
{
	struct picture pictures[] = {
	    {.png = (unsigned char *)(uintptr_t) "hello", .size = 5},
	    {.path = (char *)(uintptr_t) "bad.png",
	     .problem = (char *)(uintptr_t) "not a PNG file"}};

	outcome.pictures = pictures;
	outcome.picture_count = 2;
	outcome.pictures_left_out = 1;
	json_auto_t *result = render_outcome(&outcome, &newest);
	const json_t *image = json_array_get(json_object_get(result, "content"), 1);

	assert_string_equal(text_at(result, 0),
			    "Picture bad.png is not shown: not a PNG file.\n"
			    "1 more picture is not shown (VIVARIUM_MAX_IMAGES).");
	assert_string_equal(json_string_value(json_object_get(image, "data")),
			    "aGVsbG8=");
	assert_string_equal(json_string_value(json_object_get(image, "mimeType")),
			    "image/png");
	assert_non_null(strstr(text_at(result, 2), "--- state ---"));
}

CASE(a_picture_beside_an_error_is_words_where_a_client_shows_none)
{
	struct picture picture = {.png = (unsigned char *)(uintptr_t) "hello",
				  .size = 5};
	struct render_options plain = newest;

	plain.plain_errors = true;
	outcome.pictures = &picture;
	outcome.picture_count = 1;
	json_auto_t *fine = render_outcome(&outcome, &plain);
	outcome.end = CALL_ERROR;
	outcome.exit_code = 1;
	json_auto_t *failed = render_outcome(&outcome, &plain);

	assert_int_equal(json_array_size(json_object_get(fine, "content")), 3);
	assert_int_equal(json_array_size(json_object_get(failed, "content")), 2);
	assert_non_null(strstr(text_at(failed, 0),
			       "Picture 1 is not shown: this client shows none beside "
			       "an error."));
	const json_t *listed =
	    json_object_get(json_object_get(failed, "structuredContent"), "images");
	assert_int_equal(json_array_size(listed), 0);
}

#define EACH(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
RUN(EACH(nothing_to_say_is_said), EACH(all_sections_in_their_order),
    EACH(an_error_comes_first), EACH(system_exit_is_no_traceback),
    EACH(there_is_no_structure_unless_it_is_wanted),
    EACH(the_footer_lists_names_and_cuts_them),
    EACH(what_is_not_saved_is_named_in_both_forms),
    EACH(walls_that_are_lower_are_told_in_both_forms),
    EACH(a_summary_of_any_shape_is_survived),
    EACH(ten_thousand_names_stay_a_short_footer),
    EACH(pictures_stand_between_text_and_footer),
    EACH(a_picture_beside_an_error_is_words_where_a_client_shows_none))

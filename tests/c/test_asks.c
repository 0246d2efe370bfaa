// SPDX-License-Identifier: MIT
#include <time.h>

static time_t now = 1000000000;

static time_t test_time(time_t *out)
{
	(void)out;
	return now;
}

#define time test_time
#include "mcp/asks.c" /* for its clock */
#undef time

#include "testing.h"

static const struct asks_key key = {.bytes = {1, 2, 3}}, other_key = {.bytes = {3, 2}};

static struct asks begin(const char *params)
{
	json_t *value = json_loads(params, 0, NULL);

	assert_non_null(value);
	return (struct asks){.revision = MCP_STATELESS,
			     .client = CLIENT_ELICITS,
			     .key = &key,
			     .method = "tools/call",
			     .workspace = "default",
			     .params = value};
}

#define CALL "{\"name\":\"t\",\"arguments\":{\"a\":1,\"b\":[2]}}"

/* What another request, which brings back the state of one of CALL, makes of it. */
static int bring_back(struct asks *self, struct err *err)
{
	struct asks first = begin(CALL);
	json_t *result = asks_result(&first, json_string("kept"));

	json_object_set(self->params, "requestState",
			json_object_get(result, "requestState"));
	json_decref(result);
	asks_finish(&first);
	return asks_read(self, err);
}

static void check_refused(struct asks self, const char *words)
{
	struct err err = {0};

	assert_int_equal(bring_back(&self, &err), -1);
	assert_non_null(strstr(err.msg, words));
	assert_null(self.state);
	asks_finish(&self);
}

CASE(a_state_comes_back)
{
	struct asks self = begin("{\"arguments\":{\"b\":[2],\"a\":1},\"name\":\"t\"}");
	struct err err;

	assert_int_equal(bring_back(&self, &err), 0);
	assert_string_equal(json_string_value(self.state), "kept");
	asks_finish(&self);
}

CASE(no_state_is_one_too)
{
	struct asks first = begin(CALL), self = begin(CALL);
	json_auto_t *result = asks_result(&first, NULL);
	struct err err;

	json_object_set(self.params, "requestState",
			json_object_get(result, "requestState"));
	assert_int_equal(asks_read(&self, &err), 0);
	assert_null(self.state);
	asks_finish(&first);
	asks_finish(&self);
}

CASE(a_state_is_for_its_request)
{
	struct asks self = begin(CALL);

	check_refused(begin("{\"name\":\"u\",\"arguments\":{\"a\":1,\"b\":[2]}}"),
		      "for this request");
	check_refused(begin("{\"name\":\"t\",\"arguments\":{\"a\":2,\"b\":[2]}}"),
		      "for this request");
	check_refused(begin("{\"name\":\"t\"}"), "for this request");
	self.method = "prompts/get";
	check_refused(self, "for this request");
	self = begin(CALL);
	self.workspace = "users/ann";
	check_refused(self, "for this request");
	self = begin(CALL);
	self.key = &other_key;
	check_refused(self, "for this request");
}

CASE(a_state_has_its_time)
{
	struct asks first = begin(CALL);
	json_auto_t *result = asks_result(&first, NULL);
	json_t *sealed = json_object_get(result, "requestState");

	for (int late = 0; late <= 1; late++) {
		struct asks self = begin(CALL);
		struct err err = {0};
		time_t before = now;

		json_object_set(self.params, "requestState", sealed);
		now += ASKS_STATE_S + late;
		assert_int_equal(asks_read(&self, &err), late ? -1 : 0);
		assert_true(!late || strstr(err.msg, "too old"));
		now = before;
		asks_finish(&self);
	}
	asks_finish(&first);
}

CASE(two_seals_of_one_state_differ)
{
	struct asks self = begin(CALL);
	json_auto_t *one = asks_result(&self, NULL), *two = asks_result(&self, NULL);

	assert_false(json_equal(json_object_get(one, "requestState"),
				json_object_get(two, "requestState")));
	asks_finish(&self);
}

CASE(only_what_the_client_can_is_asked)
{
	struct asks self = begin(CALL);

	asks_want(&self, ASK_MODEL, "model", json_object());
	asks_want(&self, ASK_ROOTS, "roots", json_object());
	assert_null(self.wanted);
	asks_want(&self, ASK_USER, "user", json_object());
	json_auto_t *result = asks_result(&self, NULL);
	assert_int_equal(json_object_size(json_object_get(result, "inputRequests")), 1);
	asks_finish(&self);
}

CASE(questions_are_taken_one_by_one)
{
	struct asks self = begin(CALL);
	const char *method = NULL;
	json_t *params;
	char *name;

	asks_want(&self, ASK_USER, "one", json_object());
	asks_want(&self, ASK_USER, "two", json_object());
	for (int i = 0; i < 2; i++) {
		assert_true(asks_next(&self, &name, &params, &method));
		assert_string_equal(name, i ? "two" : "one");
		assert_string_equal(method, "elicitation/create");
		json_decref(params);
		free(name);
	}
	assert_false(asks_next(&self, &name, &params, &method));
	asks_finish(&self);
}

CASE(answers_are_of_their_kind)
{
	struct asks self = begin(
	    "{\"inputResponses\":{\"yes\":{\"action\":\"accept\",\"content\":{\"n\":1,"
	    "\"s\":\"x\"}},\"no\":{\"action\":\"decline\"},\"odd\":{\"action\":"
	    "\"maybe\"},"
	    "\"five\":5,\"said\":{\"content\":{}},\"where\":{\"roots\":[]}}}");
	json_auto_t *schema =
	    json_loads("{\"properties\":{\"n\":{\"type\":\"integer\"}},"
		       "\"required\":[\"n\"]}",
		       0, NULL);
	json_auto_t *text =
	    json_loads("{\"properties\":{\"n\":{\"type\":\"string\"}}}", 0, NULL);
	json_auto_t *more = json_loads("{\"required\":[\"m\"]}", 0, NULL);
	struct err err;

	assert_int_equal(asks_read(&self, &err), 0);
	assert_non_null(asks_answer(&self, ASK_USER, "yes"));
	assert_non_null(asks_answer(&self, ASK_USER, "no"));
	assert_null(asks_answer(&self, ASK_USER, "odd"));
	assert_null(asks_answer(&self, ASK_USER, "five"));
	assert_null(asks_answer(&self, ASK_USER, "nothing"));
	assert_null(asks_answer(&self, ASK_ROOTS, "yes"));
	assert_non_null(asks_answer(&self, ASK_MODEL, "said"));
	assert_non_null(asks_answer(&self, ASK_ROOTS, "where"));
	assert_non_null(asks_content(&self, "yes", schema));
	assert_null(asks_content(&self, "yes", text));
	assert_null(asks_content(&self, "yes", more));
	assert_null(asks_content(&self, "no", schema));
	asks_finish(&self);
}

CASE(answers_are_an_object)
{
	static const char *const wrong[] = {"[]", "5", "null", "\"x\""};

	for (size_t i = 0; i < COUNT_OF(wrong); i++) {
		struct asks self = begin("{}");
		struct err err;

		json_object_set_new(self.params, "inputResponses",
				    json_loads(wrong[i], JSON_DECODE_ANY, NULL));
		assert_int_equal(asks_read(&self, &err), -1);
		asks_finish(&self);
	}
}

RUN(cmocka_unit_test(a_state_comes_back), cmocka_unit_test(no_state_is_one_too),
    cmocka_unit_test(a_state_is_for_its_request),
    cmocka_unit_test(a_state_has_its_time),
    cmocka_unit_test(two_seals_of_one_state_differ),
    cmocka_unit_test(only_what_the_client_can_is_asked),
    cmocka_unit_test(questions_are_taken_one_by_one),
    cmocka_unit_test(answers_are_of_their_kind),
    cmocka_unit_test(answers_are_an_object))

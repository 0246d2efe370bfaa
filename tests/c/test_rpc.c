// SPDX-License-Identifier: MIT
#include "mcp/rpc.h"

#include "testing.h"

static int read_text(struct rpc *rpc, json_t **message, const char *text,
		     struct err *err)
{
	*message = json_loads(text, JSON_DECODE_ANY, NULL);
	assert_non_null(*message);
	return rpc_read(rpc, *message, err);
}

CASE(kinds_are_told_apart)
{
	static const struct {
		const char *text;
		enum rpc_kind kind;
	} rows[] = {
	    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", RPC_REQUEST},
	    {"{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"ping\",\"params\":{}}",
	     RPC_REQUEST},
	    {"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}",
	     RPC_NOTIFICATION},
	    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", RPC_RESPONSE},
	    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{}}", RPC_RESPONSE},
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		json_auto_t *message = NULL;
		struct rpc rpc;
		struct err err;

		assert_int_equal(read_text(&rpc, &message, rows[i].text, &err), 0);
		assert_int_equal(rpc.kind, rows[i].kind);
	}
}

CASE(what_is_no_message_is_refused)
{
	static const char *const bad[] = {
	    "1",
	    "[]",
	    "{}",
	    "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}",
	    "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}",
	    "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}",
	    "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}",
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}",
	    "{\"jsonrpc\":\"2.0\",\"id\":1}",
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":[]}",
	};

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		json_auto_t *message = NULL;
		struct rpc rpc;
		struct err err;

		assert_int_equal(read_text(&rpc, &message, bad[i], &err), -1);
		assert_int_equal(err.kind, ERR_REQUEST);
	}
}

CASE(answers_repeat_the_id)
{
	json_auto_t *id = json_string("x");
	json_auto_t *result = rpc_result(id, json_object());
	json_auto_t *error = rpc_error(NULL, RPC_PARSE_ERROR, "bad %s", "\xff");

	assert_string_equal(json_string_value(json_object_get(result, "id")), "x");
	assert_true(json_is_null(json_object_get(error, "id")));
	assert_string_equal(json_string_value(json_object_get(
				json_object_get(error, "error"), "message")),
			    "bad \xef\xbf\xbd");
}

RUN(cmocka_unit_test(kinds_are_told_apart),
    cmocka_unit_test(what_is_no_message_is_refused),
    cmocka_unit_test(answers_repeat_the_id))

// SPDX-License-Identifier: MIT
#include "mcp/era.h"

#include "testing.h"
#include "wire/mem.h"

#define META(version)                                                                  \
	"\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"" version "\","      \
	"\"io.modelcontextprotocol/clientCapabilities\":{}}"
#define REQUEST(method, params)                                                        \
	"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"" method "\",\"params\":{" params  \
	"}}"
#define NEW "2026-07-28"

static bool knows(const char *method, enum mcp_revision revision)
{
	return revision == MCP_2026_07_28 && strcmp(method, "initialize") != 0;
}

struct row {
	const char *body, *version, *method, *name;
	enum era era;
	int status, code;
};

static const struct row rows[] = {
    /* what it should be */
    {REQUEST("server/discover", META(NEW)), NEW, "server/discover", NULL, ERA_STATELESS,
     0, 0},
    {REQUEST("tools/call", "\"name\":\"x\"," META(NEW)), NEW, "tools/call", "x",
     ERA_STATELESS, 0, 0},
    {REQUEST("tools/call", "\"name\":\"h\xc3\xa9\"," META(NEW)), NEW, "tools/call",
     "=?base64?aMOp?=", ERA_STATELESS, 0, 0},
    /* a: the header says something else, or nothing */
    {REQUEST("server/discover", META(NEW)), "2025-11-25", "server/discover", NULL,
     ERA_REFUSED, 400, RPC_HEADER_MISMATCH},
    {REQUEST("server/discover", META(NEW)), NULL, "server/discover", NULL, ERA_REFUSED,
     400, RPC_HEADER_MISMATCH},
    /* b: a version that is not served, before the other headers are looked at */
    {REQUEST("server/discover", META("2027-01-01")), "2027-01-01", NULL, NULL,
     ERA_REFUSED, 400, RPC_VERSION_UNSUPPORTED},
    {REQUEST("server/discover", META("2025-11-25")), "2025-11-25", NULL, NULL,
     ERA_REFUSED, 400, RPC_VERSION_UNSUPPORTED},
    /* c: method and name */
    {REQUEST("server/discover", META(NEW)), NEW, NULL, NULL, ERA_REFUSED, 400,
     RPC_HEADER_MISMATCH},
    {REQUEST("server/discover", META(NEW)), NEW, "Server/Discover", NULL, ERA_REFUSED,
     400, RPC_HEADER_MISMATCH},
    {REQUEST("tools/call", "\"name\":\"x\"," META(NEW)), NEW, "tools/call", NULL,
     ERA_REFUSED, 400, RPC_HEADER_MISMATCH},
    {REQUEST("tools/call", "\"name\":\"x\"," META(NEW)), NEW, "tools/call", "y",
     ERA_REFUSED, 400, RPC_HEADER_MISMATCH},
    {REQUEST("tools/call", "\"name\":\"x\"," META(NEW)), NEW, "tools/call",
     "=?base64?%?=", ERA_REFUSED, 400, RPC_HEADER_MISMATCH},
    {REQUEST("resources/read", "\"uri\":\"a:b\"," META(NEW)), NEW, "resources/read",
     "a:c", ERA_REFUSED, 400, RPC_HEADER_MISMATCH},
    /* d: capabilities */
    {REQUEST("server/discover",
	     "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"" NEW "\"}"),
     NEW, "server/discover", NULL, ERA_REFUSED, 400, RPC_INVALID_PARAMS},
    /* f: unknown methods, those of the other era among them */
    {REQUEST("initialize", META(NEW)), NEW, "initialize", NULL, ERA_REFUSED, 404,
     RPC_METHOD_NOT_FOUND},
    /* only the header is new */
    {REQUEST("tools/list", ""), NEW, "tools/list", NULL, ERA_REFUSED, 400,
     RPC_INVALID_PARAMS},
    {"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}", NEW, NULL, NULL,
     ERA_DROPPED, 0, 0},
    /* notifications are taken and dropped */
    {"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\",\"params\":{" META(NEW) "}}",
     NEW, NULL, NULL, ERA_DROPPED, 0, 0},
    /* everything else is of the older kind */
    {REQUEST("initialize", ""), NULL, NULL, NULL, ERA_SESSIONS, 0, 0},
    {REQUEST("tools/list", ""), "2025-11-25", NULL, NULL, ERA_SESSIONS, 0, 0},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", "1999-01-01", NULL, NULL,
     ERA_SESSIONS, 0, 0},
    {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", NEW, NULL, NULL, ERA_SESSIONS, 0,
     0},
};

static void check(const struct row *row)
{
	json_auto_t *body = json_loads(row->body, 0, NULL);
	const struct era_headers headers = {row->version, row->method, row->name};
	struct era_verdict verdict;
	struct rpc rpc;
	struct err err;

	assert_non_null(body);
	assert_int_equal(rpc_read(&rpc, body, &err), 0);
	assert_int_equal(era_decide(&rpc, &headers, knows, &verdict), row->era);
	if (row->era == ERA_STATELESS)
		assert_int_equal(verdict.revision, MCP_2026_07_28);
	if (row->era != ERA_REFUSED)
		return;
	const json_t *error = json_object_get(verdict.message, "error");
	assert_int_equal(verdict.status, row->status);
	assert_int_equal(json_integer_value(json_object_get(error, "code")), row->code);
	assert_int_equal(json_integer_value(json_object_get(verdict.message, "id")), 7);
	json_decref(verdict.message);
}

CASE(the_ladder_holds_in_its_order)
{
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		print_message("row %zu: %.60s\n", i, rows[i].body);
		check(&rows[i]);
	}
}

/* Where there are no headers, only the body counts. */
CASE(without_headers_the_body_decides)
{
	static const struct {
		const char *body;
		enum era era;
		int code;
	} cases[] = {
	    {REQUEST("tools/call", "\"name\":\"x\"," META(NEW)), ERA_STATELESS, 0},
	    {REQUEST("tools/list", ""), ERA_SESSIONS, 0},
	    {REQUEST("tools/call", META("2027-01-01")), ERA_REFUSED,
	     RPC_VERSION_UNSUPPORTED},
	    {REQUEST("initialize", META(NEW)), ERA_REFUSED, RPC_METHOD_NOT_FOUND},
	    {REQUEST("tools/call",
		     "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":3}"),
	     ERA_REFUSED, RPC_INVALID_PARAMS},
	};

	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		json_auto_t *body = json_loads(cases[i].body, 0, NULL);
		struct era_verdict verdict;
		struct rpc rpc;
		struct err err;

		assert_int_equal(rpc_read(&rpc, body, &err), 0);
		assert_int_equal(era_decide(&rpc, NULL, knows, &verdict), cases[i].era);
		const json_t *error = json_object_get(verdict.message, "error");
		assert_int_equal(json_integer_value(json_object_get(error, "code")),
				 cases[i].code);
		json_decref(verdict.message);
	}
}

CASE(claims_of_any_type_are_claims)
{
	json_auto_t *odd = json_loads(
	    "{\"params\":{\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":3}}}",
	    0, NULL);
	json_auto_t *none = json_loads("{\"params\":{\"_meta\":[]}}", 0, NULL);

	assert_true(era_claims(odd));
	assert_false(era_claims(none));
}

RUN(cmocka_unit_test(the_ladder_holds_in_its_order),
    cmocka_unit_test(without_headers_the_body_decides),
    cmocka_unit_test(claims_of_any_type_are_claims))

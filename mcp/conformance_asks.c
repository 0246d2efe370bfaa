// SPDX-License-Identifier: MIT
/* The fixtures that ask the client something. */
#include "mcp/conformance_impl.h"

#include <string.h>

#include "wire/json.h"
#include "wire/mem.h"

/* ---- questions ---- */

#define NAME_SCHEMA                                                                    \
	"\"requestedSchema\":{\"type\":\"object\",\"properties\":{\"name\":{\"type\":" \
	"\"string\"}},\"required\":[\"name\"]}"
#define OK_SCHEMA                                                                      \
	"\"requestedSchema\":{\"type\":\"object\",\"properties\":{\"ok\":{\"type\":"   \
	"\"boolean\"}},\"required\":[\"ok\"]}"
#define PROMPT(words)                                                                  \
	"{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"" \
	"" words "\"}}],\"maxTokens\":100}"

const struct fixture_question fixture_user_name = {
    ASK_USER, "user_name", "{\"message\":\"What is your name?\"," NAME_SCHEMA "}"};
static const struct fixture_question capital = {
    ASK_MODEL, "capital_question", PROMPT("What is the capital of France?")};
static const struct fixture_question roots = {ASK_ROOTS, "client_roots", "{}"};
static const struct fixture_question greeting = {ASK_MODEL, "greeting",
						 PROMPT("Generate a greeting")};
static const struct fixture_question confirm = {
    ASK_USER, "confirm", "{\"message\":\"Please confirm\"," OK_SCHEMA "}"};
static const struct fixture_question step1 = {
    ASK_USER, "step1", "{\"message\":\"Step 1: What is your name?\"," NAME_SCHEMA "}"};
static const struct fixture_question step2 = {
    ASK_USER, "step2",
    "{\"message\":\"Step 2: What is your favorite color?\",\"requestedSchema\":{"
    "\"type\":\"object\",\"properties\":{\"color\":{\"type\":\"string\"}},\"required\":"
    "[\"color\"]}}"};

json_t *fixture_answer(struct tool_call *self, const struct fixture_question *question)
{
	json_auto_t *params = json_loads(question->params, 0, NULL);
	json_t *answer = asks_answer(&self->asks, question->kind, question->name);
	const json_t *schema = json_object_get(params, "requestedSchema");

	bool accepted = strcmp(json_text(answer, "action", ""), "accept") == 0;
	if (accepted && !asks_content(&self->asks, question->name, schema))
		answer = NULL;
	if (!answer)
		asks_want(&self->asks, question->kind, question->name,
			  json_incref(params));
	return answer;
}

void fixture_finish(struct tool_call *self, const char *words, const json_t *value)
{
	owned(buf_finish) struct buf text = {0};
	owned(free_text) char *shown =
	    value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

	buf_printf(&text, "%s%s", words, shown ? shown : "");
	tool_finish(self, tool_result(self, text.data, text.size, NULL));
}

void fixture_refuse(struct tool_call *self, struct rpc_refusal *refusal)
{
	if (self->revision >= MCP_STATELESS) {
		tool_refuse(self, refusal);
		return;
	}
	json_decref(refusal->data);
	tool_fail(self, &refusal->err);
}

bool fixture_can_ask(struct tool_call *self, enum ask_kind kind)
{
	struct rpc_refusal refusal = {0};

	if (asks_can(&self->asks, kind))
		return true;
	asks_refuse(kind, &refusal);
	fixture_refuse(self, &refusal);
	return false;
}

/* Asks one thing and tells the answer. */
static void run_one(struct tool_call *self, const struct fixture_question *question,
		    const char *words)
{
	if (!fixture_can_ask(self, question->kind))
		return;
	const json_t *answer = fixture_answer(self, question);
	if (answer)
		fixture_finish(self, words, answer);
	else
		tool_ask(self, NULL);
}

/* ---- of all revisions ---- */

static void run_sampling(struct tool_call *self, const struct arg_value *args)
{
	if (!fixture_can_ask(self, ASK_MODEL))
		return;
	const json_t *answer = asks_answer(&self->asks, ASK_MODEL, "sample");
	const json_t *content = json_object_get(answer, "content");
	if (answer) {
		fixture_finish(self,
			       "LLM response: ", json_object_get(content, "text"));
		return;
	}
	asks_want(&self->asks, ASK_MODEL, "sample",
		  json_pack("{s[{ss s{ss so}}] si}", "messages", "role", "user",
			    "content", "type", "text", "text",
			    json_string_lossy(args[0].text, args[0].size), "maxTokens",
			    100));
	tool_ask(self, NULL);
}

static void ask_form(struct tool_call *self, const char *message, const char *schema,
		     const char *words)
{
	if (!fixture_can_ask(self, ASK_USER))
		return;
	const json_t *answer = asks_answer(&self->asks, ASK_USER, "form");
	if (answer) {
		fixture_finish(self, words, answer);
		return;
	}
	asks_want(&self->asks, ASK_USER, "form",
		  asks_form(message, json_loads(schema, 0, NULL)));
	tool_ask(self, NULL);
}

static void run_elicitation(struct tool_call *self, const struct arg_value *args)
{
	ask_form(self, args[0].text,
		 "{\"type\":\"object\",\"properties\":{\"username\":{\"type\":"
		 "\"string\",\"description\":\"User's response\"},\"email\":{\"type\":"
		 "\"string\",\"description\":\"User's email address\"}},\"required\":["
		 "\"username\",\"email\"]}",
		 "User response: ");
}

static void run_defaults(struct tool_call *self, const struct arg_value *args)
{
	(void)args;
	ask_form(
	    self, "Please check the values",
	    "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\","
	    "\"default\":\"John Doe\"},\"age\":{\"type\":\"integer\",\"default\":30"
	    "},\"score\":{\"type\":\"number\",\"default\":95.5},\"status\":{"
	    "\"type\":\"string\",\"enum\":[\"active\",\"inactive\",\"pending\"],"
	    "\"default\":\"active\"},\"verified\":{\"type\":\"boolean\","
	    "\"default\":true}}}",
	    "Elicitation completed: ");
}

#define TITLED(a, b)                                                                   \
	"[{\"const\":\"value1\",\"title\":\"" a                                        \
	"\"},{\"const\":\"value2\",\"title\":\"" b "\"}]"

static void run_enums(struct tool_call *self, const struct arg_value *args)
{
	(void)args;
	ask_form(self, "Please choose",
		 "{\"type\":\"object\",\"properties\":{\"untitledSingle\":{\"type\":"
		 "\"string\",\"enum\":[\"option1\",\"option2\",\"option3\"]},"
		 "\"titledSingle\":{\"type\":\"string\",\"oneOf\":" TITLED(
		     "First Option",
		     "Second Option") "},\"legacyEnum\":{\"type\":\"string\",\"enum\":["
				      "\"opt1\",\"opt2\",\"opt3\"],\"enumNames\":["
				      "\"Option One\",\"Option Two\",\"Option "
				      "Three\"]},\"untitledMulti\":{\"type\":\"array\","
				      "\"items\":{\"type\":\"string\",\"enum\":["
				      "\"option1\",\"option2\",\"option3\"]}},"
				      "\"titledMulti\":{\"type\":\"array\",\"items\":{"
				      "\"anyOf\":" TITLED("First Choice",
							  "Second Choice") "}}}}",
		 "Elicitation completed: ");
}

/* ---- of 2026-07-28 ---- */

static void run_user_name(struct tool_call *self, const struct arg_value *args)
{
	(void)args;
	run_one(self, &fixture_user_name, "Hello, ");
}

static void run_capital(struct tool_call *self, const struct arg_value *args)
{
	(void)args;
	run_one(self, &capital, "The model said: ");
}

static void run_roots(struct tool_call *self, const struct arg_value *args)
{
	(void)args;
	run_one(self, &roots, "Roots: ");
}

/* The answer counts only with the state that was given with the question. */
static void run_state(struct tool_call *self, const struct arg_value *args)
{
	(void)args;
	if (!fixture_can_ask(self, ASK_USER))
		return;
	if (fixture_answer(self, &confirm) && self->asks.state) {
		fixture_finish(self, "state-ok: ", self->asks.state);
		return;
	}
	if (!json_object_size(self->asks.wanted))
		asks_want(&self->asks, ASK_USER, confirm.name,
			  json_loads(confirm.params, 0, NULL));
	tool_ask(self, json_string("asked"));
}

static void run_multiple(struct tool_call *self, const struct arg_value *args)
{
	static const struct fixture_question *const all[] = {&fixture_user_name,
							     &greeting, &roots};
	size_t answers = 0;

	(void)args;
	for (size_t i = 0; i < COUNT_OF(all); i++)
		if (!fixture_can_ask(self, all[i]->kind))
			return;
	for (size_t i = 0; i < COUNT_OF(all); i++)
		answers += fixture_answer(self, all[i]) != NULL;
	if (answers == COUNT_OF(all))
		fixture_finish(self, "All three came: ", self->asks.answers);
	else
		tool_ask(self, json_integer((json_int_t)answers));
}

/* A round has only its own answers: what was said before is in the state. */
static void run_rounds(struct tool_call *self, const struct arg_value *args)
{
	json_t *name = json_object_get(self->asks.state, "name"), *answer;

	(void)args;
	if (!fixture_can_ask(self, ASK_USER))
		return;
	if (!name && !(answer = fixture_answer(self, &step1))) {
		tool_ask(self, json_pack("{si}", "round", 1));
		return;
	}
	if (!name)
		name = json_object_get(json_object_get(answer, "content"), "name");
	answer = fixture_answer(self, &step2);
	if (answer)
		fixture_finish(self,
			       "Name and color: ", json_object_get(answer, "content"));
	else
		tool_ask(self, json_pack("{sO}", "name", name));
}

static void run_capabilities(struct tool_call *self, const struct arg_value *args)
{
	static const struct fixture_question *const all[] = {&fixture_user_name,
							     &greeting, &roots};

	(void)args;
	for (size_t i = 0; i < COUNT_OF(all); i++)
		if (asks_can(&self->asks, all[i]->kind))
			(void)fixture_answer(self, all[i]);
	if (self->asks.wanted)
		tool_ask(self, NULL);
	else
		fixture_finish(self,
			       "All that you can answer came: ", self->asks.answers);
}

#define ASKS(word, what, how, ...)                                                     \
	const struct tool word = {.name = #word,                                       \
				  .title = what,                                       \
				  .description = what ".",                             \
				  .read_only = true,                                   \
				  .run = (how),                                        \
				  __VA_ARGS__}

ASKS(test_sampling, "Asks the client's model", run_sampling,
     .args = {{"prompt", ARG_TEXT, true, 0, 0, "What to ask it."}});
ASKS(test_elicitation, "Asks the user", run_elicitation,
     .args = {{"message", ARG_TEXT, true, 0, 0, "What to ask."}});
ASKS(test_elicitation_sep1034_defaults, "Asks with defaults", run_defaults,
     .args = {{0}});
ASKS(test_elicitation_sep1330_enums, "Asks for choices", run_enums, .args = {{0}});
ASKS(test_missing_capability, "Needs sampling", run_capital, .args = {{0}});
ASKS(test_streaming_elicitation, "Asks in its result", run_user_name, .args = {{0}});
ASKS(test_input_required_result_elicitation, "Asks the user in its result",
     run_user_name, .args = {{0}});
ASKS(test_input_required_result_sampling, "Asks the model in its result", run_capital,
     .args = {{0}});
ASKS(test_input_required_result_list_roots, "Asks for roots in its result", run_roots,
     .args = {{0}});
ASKS(test_input_required_result_request_state, "Keeps a state", run_state,
     .args = {{0}});
ASKS(test_input_required_result_multiple_inputs, "Asks three things", run_multiple,
     .args = {{0}});
ASKS(test_input_required_result_multi_round, "Asks twice", run_rounds, .args = {{0}});
ASKS(test_input_required_result_tampered_state, "Keeps a sealed state", run_state,
     .args = {{0}});
ASKS(test_input_required_result_capabilities, "Asks what can be answered",
     run_capabilities, .args = {{0}});

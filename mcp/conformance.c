// SPDX-License-Identifier: MIT
/* The fixtures that always say the same, the lists of all, and resources and prompts.
 */
#include "mcp/conformance.h"

#include <string.h>

#include "mcp/conformance_impl.h"
#include "mcp/prompts.h"
#include "mcp/tools.h"
#include "wire/json.h"
#include "wire/mem.h"

/* A red pixel, and two samples of silence. */
#define PNG                                                                            \
	"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FD" \
	"AAAAAElFTkSuQmCC"
#define WAV "UklGRigAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQQAAAAAAAAA"
#define IMAGE "{\"type\":\"image\",\"mimeType\":\"image/png\",\"data\":\"" PNG "\"}"
#define TEXT(words) "{\"type\":\"text\",\"text\":\"" words "\"}"
#define MESSAGE(content) "{\"role\":\"user\",\"content\":" content "}"

/* ---- tools that always say the same ---- */

static const struct {
	const char *tool, *content;
	bool is_error;
} results[] = {
    {"test_simple_text", TEXT("This is a simple text response for testing."), false},
    {"test_image_content", IMAGE, false},
    {"test_audio_content",
     "{\"type\":\"audio\",\"mimeType\":\"audio/wav\",\"data\":\"" WAV "\"}", false},
    {"test_embedded_resource",
     "{\"type\":\"resource\",\"resource\":{\"uri\":\"test://embedded-resource\","
     "\"mimeType\":\"text/plain\",\"text\":\"This is an embedded resource content.\"}}",
     false},
    {"test_multiple_content_types",
     TEXT("Multiple content types test:") "," IMAGE
					  ",{\"type\":\"resource\",\"resource\":{"
					  "\"uri\":\"test://mixed-content-"
					  "resource\",\"mimeType\":\"application/"
					  "json\",\"text\":\"{\\\"test\\\":"
					  "\\\"data\\\",\\\"value\\\":123}\"}}",
     false},
    {"test_error_handling",
     TEXT("This tool intentionally returns an error for testing"), true},
    {"json_schema_2020_12_tool", TEXT("The arguments were taken."), false},
};

static void run_constant(struct tool_call *self, const struct arg_value *args)
{
	(void)args;
	for (size_t i = 0; i < COUNT_OF(results); i++) {
		owned(buf_finish) struct buf text = {0};

		if (strcmp(results[i].tool, self->tool->name) != 0)
			continue;
		buf_printf(&text, "{\"content\":[%s],\"isError\":%s}",
			   results[i].content, results[i].is_error ? "true" : "false");
		tool_finish(self, json_loads(text.data, 0, NULL));
		return;
	}
}

#define CONSTANT(word, what)                                                           \
	static const struct tool word = {.name = #word,                                \
					 .title = (what),                              \
					 .description = what ".",                      \
					 .read_only = true,                            \
					 .run = run_constant}

CONSTANT(test_simple_text, "Returns text");
CONSTANT(test_image_content, "Returns a picture");
CONSTANT(test_audio_content, "Returns sound");
CONSTANT(test_embedded_resource, "Returns a resource");
CONSTANT(test_multiple_content_types, "Returns text, a picture and a resource");
CONSTANT(test_error_handling, "Fails");

static const struct tool json_schema_2020_12_tool = {
    .name = "json_schema_2020_12_tool",
    .title = "Has a schema of many keywords",
    .description = "Tool with JSON Schema 2020-12 features",
    .read_only = true,
    .input_schema =
	"{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"type\":"
	"\"object\",\"$defs\":{\"address\":{\"$anchor\":\"addressDef\",\"type\":"
	"\"object\",\"properties\":{\"street\":{\"type\":\"string\"},\"city\":{"
	"\"type\":"
	"\"string\"}}}},\"properties\":{\"name\":{\"type\":\"string\"},\"address\":{"
	"\"$ref\":\"#/$defs/"
	"address\"},\"contactMethod\":{\"type\":\"string\",\"enum\":["
	"\"phone\",\"email\"]},\"phone\":{\"type\":\"string\"},\"email\":{\"type\":"
	"\"string\"}},\"allOf\":[{\"anyOf\":[{\"required\":[\"phone\"]},{\"required\":["
	"\"email\"]}]}],\"if\":{\"properties\":{\"contactMethod\":{\"const\":\"phone\"}"
	"}"
	",\"required\":[\"contactMethod\"]},\"then\":{\"required\":[\"phone\"]},"
	"\"else\":{\"required\":[\"email\"]},\"additionalProperties\":false}",
    .run = run_constant,
};

/* ---- a tool with a header ---- */

static void run_header(struct tool_call *self, const struct arg_value *args)
{
	owned(buf_finish) struct buf text = {0};

	buf_text(&text, "region: ");
	buf_add(&text, args[0].text, args[0].size);
	tool_finish(self, tool_result(self, text.data, text.size, NULL));
}

static const struct tool test_header_parameter = {
    .name = "test_header_parameter",
    .title = "Mirrors an argument in a header",
    .description = "Has an argument that clients repeat as Mcp-Param-Region.",
    .read_only = true,
    .args = {{"region", ARG_TEXT, true, 0, 0, "Any text."}},
    .headers = {"Region"},
    .run = run_header,
};

const struct tool *const conformance_tools[] = {
    &test_simple_text,
    &test_image_content,
    &test_audio_content,
    &test_embedded_resource,
    &test_multiple_content_types,
    &test_error_handling,
    &json_schema_2020_12_tool,
    &test_header_parameter,
    &test_tool_with_logging,
    &test_logging_tool,
    &test_tool_with_progress,
    &test_reconnection,
    &test_trigger_tool_change,
    &test_trigger_prompt_change,
    &test_sampling,
    &test_elicitation,
    &test_elicitation_sep1034_defaults,
    &test_elicitation_sep1330_enums,
    &test_missing_capability,
    &test_streaming_elicitation,
    &test_input_required_result_elicitation,
    &test_input_required_result_sampling,
    &test_input_required_result_list_roots,
    &test_input_required_result_request_state,
    &test_input_required_result_multiple_inputs,
    &test_input_required_result_multi_round,
    &test_input_required_result_tampered_state,
    &test_input_required_result_capabilities,
    &greet,
    &slow_compute,
    &failing_job,
    &protocol_error_job,
    &confirm_delete,
    &multi_input,
    &test_tool_with_task,
    NULL,
};

const struct tool *conformance_tool(const char *name)
{
	for (size_t i = 0; conformance_tools[i]; i++)
		if (strcmp(conformance_tools[i]->name, name) == 0)
			return conformance_tools[i];
	return NULL;
}

/* ---- resources ---- */

static const struct {
	const char *uri, *name, *mime, *member, *value;
} resources[] = {
    {CONFORMANCE_URI "static-text", "static-text", "text/plain", "text",
     "This is the content of the static text resource."},
    {CONFORMANCE_URI "static-binary", "static-binary", "image/png", "blob", PNG},
    {CONFORMANCE_URI "watched-resource", "watched-resource", "text/plain", "text",
     "Watched resource content."},
};

void conformance_list_resources(json_t *rows)
{
	for (size_t i = 0; i < COUNT_OF(resources); i++)
		json_array_append_new(
		    rows, json_pack("{ss ss ss ss}", "uri", resources[i].uri, "name",
				    resources[i].name, "mimeType", resources[i].mime,
				    "description", "For the conformance suite."));
}

void conformance_list_templates(json_t *rows)
{
	json_array_append_new(
	    rows, json_pack("{ss ss ss ss}", "uriTemplate", CONFORMANCE_TEMPLATE,
			    "name", "template", "mimeType", "application/json",
			    "description", "For the conformance suite."));
}

/* test://template/123/data -> 123; 0: it is another URI. */
static size_t template_id(const char *uri, const char **id)
{
	static const char start[] = CONFORMANCE_URI "template/", end[] = "/data";
	size_t len = strlen(uri), fixed = strlen(start) + strlen(end);

	if (len <= fixed || strncmp(uri, start, strlen(start)) != 0 ||
	    strcmp(uri + len - strlen(end), end) != 0)
		return 0;
	*id = uri + strlen(start);
	return len - fixed;
}

json_t *conformance_read(const char *uri)
{
	const char *id;
	size_t size = template_id(uri, &id);

	for (size_t i = 0; i < COUNT_OF(resources); i++)
		if (strcmp(resources[i].uri, uri) == 0)
			return json_pack("{ss ss ss}", "uri", uri, "mimeType",
					 resources[i].mime, resources[i].member,
					 resources[i].value);
	if (!size)
		return NULL;
	owned(buf_finish) struct buf text = {0};
	buf_printf(&text,
		   "{\"id\":\"%.*s\",\"templateTest\":true,\"data\":\"Data for ID: "
		   "%.*s\"}",
		   (int)size, id, (int)size, id);
	return json_pack("{ss ss ss}", "uri", uri, "mimeType", "application/json",
			 "text", text.data);
}

/* ---- prompts ---- */

static json_t *messages(const char *json)
{
	return json_pack("{so}", "messages", json_loads(json, 0, NULL));
}

static json_t *get_simple(const struct prompts_ask *ask, const char *const *values,
			  struct rpc_refusal *refusal)
{
	(void)ask;
	(void)values;
	(void)refusal;
	return messages("[" MESSAGE(TEXT("This is a simple prompt for testing.")) "]");
}

static json_t *get_with_arguments(const struct prompts_ask *ask,
				  const char *const *values,
				  struct rpc_refusal *refusal)
{
	owned(buf_finish) struct buf text = {0};

	(void)ask;
	(void)refusal;
	buf_printf(&text, "Prompt with arguments: arg1='%s', arg2='%s'", values[0],
		   values[1]);
	return prompt_text("With arguments", text.data, text.size);
}

static json_t *get_with_resource(const struct prompts_ask *ask,
				 const char *const *values, struct rpc_refusal *refusal)
{
	json_t *result = messages("[" MESSAGE(
	    "{\"type\":\"resource\",\"resource\":{\"uri\":\"\","
	    "\"mimeType\":\"text/plain\",\"text\":\"Embedded resource "
	    "content for testing.\"}}") "," MESSAGE(TEXT("Please process the "
							 "embedded resource "
							 "above.")) "]");
	json_t *first = json_array_get(json_object_get(result, "messages"), 0);

	(void)ask;
	(void)refusal;
	json_object_set_new(
	    json_object_get(json_object_get(first, "content"), "resource"), "uri",
	    json_string(values[0]));
	return result;
}

static json_t *get_with_image(const struct prompts_ask *ask, const char *const *values,
			      struct rpc_refusal *refusal)
{
	(void)ask;
	(void)values;
	(void)refusal;
	return messages("[" MESSAGE(IMAGE) "," MESSAGE(
	    TEXT("Please analyze the image above.")) "]");
}

static json_t *get_with_input(const struct prompts_ask *ask, const char *const *values,
			      struct rpc_refusal *refusal)
{
	owned(buf_finish) struct buf text = {0};
	json_auto_t *schema =
	    json_loads("{\"type\":\"object\",\"properties\":{\"context\":{\"type\":"
		       "\"string\"}},\"required\":[\"context\"]}",
		       0, NULL);
	const json_t *content = asks_content(ask->asks, "user_context", schema);

	(void)values;
	if (content) {
		buf_printf(&text, "Prompt with context: %s",
			   json_text(content, "context", ""));
		return prompt_text("With input", text.data, text.size);
	}
	if (ask->revision < MCP_STATELESS || !asks_can(ask->asks, ASK_USER)) {
		asks_refuse(ASK_USER, refusal);
		return NULL;
	}
	asks_want(
	    ask->asks, ASK_USER, "user_context",
	    asks_form("What context should the prompt use?", json_incref(schema)));
	return asks_result(ask->asks, NULL);
}

#define PROMPT(word, what, ...)                                                        \
	static const struct prompt word = {                                            \
	    .name = #word, .description = what ".", __VA_ARGS__}

PROMPT(test_simple_prompt, "Without arguments", .get = get_simple);
PROMPT(test_prompt_with_arguments, "With two arguments", .get = get_with_arguments,
       .args = {{"arg1", NULL, "First test argument.", true, COMPLETES_NOTHING},
		{"arg2", NULL, "Second test argument.", true, COMPLETES_NOTHING}});
PROMPT(test_prompt_with_embedded_resource, "With a resource", .get = get_with_resource,
       .args = {{"resourceUri", NULL, "URI of the resource to embed.", true,
		 COMPLETES_NOTHING}});
PROMPT(test_prompt_with_image, "With a picture", .get = get_with_image);
PROMPT(test_input_required_result_prompt, "Asks the user", .get = get_with_input);

const struct prompt *const conformance_prompts[] = {&test_simple_prompt,
						    &test_prompt_with_arguments,
						    &test_prompt_with_embedded_resource,
						    &test_prompt_with_image,
						    &test_input_required_result_prompt,
						    NULL};

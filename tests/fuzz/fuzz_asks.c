// SPDX-License-Identifier: MIT
/*
 * What a client brings back between two rounds.  Input: a line with the request's
 * params; then pairs of bytes: where the sealed state is changed, and by what (none:
 * not).
 */
#include "mcp/asks.h"

#include "texts.h"

static const struct asks_key key = {.bytes = "a key of thirty-two bytes"};

static struct asks begin(json_t *params)
{
	return (struct asks){.revision = MCP_STATELESS,
			     .client = CLIENT_ELICITS,
			     .key = &key,
			     .method = "tools/call",
			     .workspace = "default",
			     .params = json_incref(params)};
}

static void change(char *text, struct input *input)
{
	size_t size = strlen(text);

	while (input->left > 1) {
		size_t at = input_byte(input) % size;
		char by = (char)(input_byte(input) & 0x7f);

		if (by)
			text[at] = by;
	}
}

static void bring_back(json_t *params, struct input *input)
{
	struct asks first = begin(params), self = begin(params);
	json_auto_t *result = asks_result(&first, json_string("kept"));
	const char *sealed = json_text(result, "requestState", "");
	owned(free_text) char *state = xstrdup(sealed);
	change(state, input);
	bool changed = strcmp(state, sealed) != 0;
	struct err err;

	json_object_set_new(params, "requestState", json_string(state));
	if (asks_read(&self, &err) == 0)
		MUST(!changed && strcmp(json_string_value(self.state), "kept") == 0);
	else
		MUST(changed || !json_is_object(self.answers));
	asks_finish(&first);
	asks_finish(&self);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	json_auto_t *params = input_object(&input);
	struct err err;

	if (!params)
		return 0;
	struct asks self = begin(params);
	if (asks_read(&self, &err) == 0) {
		MUST(!self.state); /* nobody can guess a sealed one */
		for (int kind = ASK_USER; kind <= ASK_ROOTS; kind++)
			(void)asks_answer(&self, (enum ask_kind)kind, "confirm");
		json_t *schema = json_object_get(params, "schema");
		json_t *content = asks_content(&self, "confirm", schema);
		MUST(!content || json_is_object(content));
	}
	asks_finish(&self);
	bring_back(params, &input);
	return 0;
}

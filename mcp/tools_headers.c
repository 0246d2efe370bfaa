// SPDX-License-Identifier: MIT
/* Mcp-Param-*: arguments of tools that clients repeat in headers (2026-07-28). */
#include <stdlib.h>
#include <string.h>

#include "mcp/era.h"
#include "mcp/tools.h"
#include "wire/json.h"

/* As SEP-2243 writes a value in a header; false for one that it has none for. */
static bool show_value(struct buf *out, const json_t *value)
{
	if (json_is_string(value))
		buf_add(out, json_string_value(value), json_string_length(value));
	else if (json_is_integer(value))
		buf_number(out, json_integer_value(value));
	else if (json_is_boolean(value))
		buf_text(out, json_is_true(value) ? "true" : "false");
	else
		return false;
	return true;
}

static bool is_mirrored(const struct buf *header, const json_t *value)
{
	owned(buf_finish) struct buf decoded = {0}, wanted = {0};
	char *end;

	if (!era_decode(&decoded, buf_str(header)) || !show_value(&wanted, value))
		return false;
	if (json_is_integer(value)) /* "42.0" is 42 */
		return decoded.size &&
		       strtod(decoded.data, &end) == json_number_value(value) && !*end;
	return decoded.size == wanted.size &&
	       memcmp(buf_str(&decoded), buf_str(&wanted), wanted.size) == 0;
}

const char *tools_header_mismatch(const struct config *config, const json_t *params,
				  bool (*header)(void *arg, const char *name,
						 struct buf *out),
				  void *arg)
{
	const struct tool *tool = tool_find(config, json_text(params, "name", ""));
	const json_t *arguments = json_object_get(params, "arguments");

	for (size_t i = 0; tool && tool->args[i].name; i++) {
		const json_t *value = json_object_get(arguments, tool->args[i].name);
		owned(buf_finish) struct buf name = {0}, text = {0};

		if (!tool->headers[i])
			continue;
		buf_printf(&name, "mcp-param-%s", tool->headers[i]);
		bool there = header(arg, buf_str(&name), &text);
		bool wanted = value && !json_is_null(value);
		if (there != wanted || (there && !is_mirrored(&text, value)))
			return tool->headers[i];
	}
	return NULL;
}

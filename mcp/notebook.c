// SPDX-License-Identifier: MIT
#include "mcp/notebook.h"

#include <stdint.h>
#include <string.h>

#include "wire/ansi.h"
#include "wire/json.h"
#include "wire/words.h"

/* Text is one string or a list of them. */
static void add_text(struct buf *out, const json_t *text)
{
	const json_t *part;
	size_t i;

	if (json_is_string(text))
		ansi_strip(out, json_string_value(text), json_string_length(text));
	json_array_foreach(text, i, part)
	{
		if (json_is_string(part))
			ansi_strip(out, json_string_value(part),
				   json_string_length(part));
	}
}

static void end_line(struct buf *out)
{
	if (out->size && out->data[out->size - 1] != '\n')
		buf_text(out, "\n");
}

/* A value: its plain text, and the names of what is no text. */
static void add_data(struct buf *out, const json_t *data)
{
	const char *type;
	json_t *value;

	add_text(out, json_object_get(data, "text/plain"));
	end_line(out);
	json_object_foreach((json_t *)(uintptr_t)data, type, value)
	{
		if (strncmp(type, "text/", 5) != 0)
			buf_printf(out, "[%s]\n", type);
	}
}

static void add_output(struct buf *out, const json_t *output)
{
	const json_t *traceback = json_object_get(output, "traceback");
	const json_t *line;
	size_t i;

	add_text(out, json_object_get(output, "text"));
	end_line(out);
	if (json_object_get(output, "data"))
		add_data(out, json_object_get(output, "data"));
	if (json_object_get(output, "ename") && !json_array_size(traceback))
		buf_printf(out, "%s: %s\n", json_text(output, "ename", ""),
			   json_text(output, "evalue", ""));
	json_array_foreach(traceback, i, line)
	{
		add_text(out, line);
		end_line(out);
	}
}

static void add_cell(struct buf *out, const json_t *cell, size_t number)
{
	const json_t *outputs = json_object_get(cell, "outputs"), *output;
	long long count = json_integer_of(cell, "execution_count", 0);
	size_t i;

	buf_printf(out, "--- cell %zu, %s", number, json_text(cell, "cell_type", "?"));
	if (count)
		buf_printf(out, ", In [%lld]", count);
	buf_text(out, " ---\n");
	add_text(out, json_object_get(cell, "source"));
	end_line(out);
	if (json_array_size(outputs))
		buf_text(out, "--- output ---\n");
	json_array_foreach(outputs, i, output)
	{
		add_output(out, output);
	}
}

bool notebook_text(struct buf *out, const json_t *notebook)
{
	const json_t *cells = json_object_get(notebook, "cells"), *cell;
	const json_t *kernel =
	    json_object_get(json_object_get(notebook, "metadata"), "kernelspec");
	size_t i;

	if (!json_is_array(cells))
		return false;
	buf_printf(out, "notebook of %zu cell%s, kernel %s\n", json_array_size(cells),
		   plural_s(json_array_size(cells)),
		   json_text(kernel, "name", "unknown"));
	json_array_foreach(cells, i, cell)
	{
		add_cell(out, cell, i + 1);
	}
	return true;
}

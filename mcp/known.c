// SPDX-License-Identifier: MIT
#include "mcp/known.h"

#include <string.h>
#include <strings.h>

#include "wire/mem.h"

enum { LINE_CHARS = 8000, COLUMNS_MAX = 200 /* of a file */ };

static const json_t *vars_of(const struct workspace *workspace)
{
	return workspace ? json_object_get(workspace_known(workspace), "vars") : NULL;
}

static const char *text_at(const json_t *row, size_t index)
{
	const char *text = json_string_value(json_array_get(row, index));

	return text ? text : "";
}

const char *known_variable(const struct workspace *workspace, const char *name)
{
	const json_t *vars = vars_of(workspace);

	for (size_t i = 0; i < json_array_size(vars); i++) {
		const json_t *row = json_array_get(vars, i);

		if (strcmp(text_at(row, 0), name) == 0)
			return text_at(row, 1);
	}
	return NULL;
}

/* The separator that the line has most of. */
static char separator_of(const char *line, size_t size)
{
	static const char candidates[] = ",;\t|";
	size_t most = 0;
	char best = ',';

	for (const char *one = candidates; *one; one++) {
		size_t count = 0;

		for (size_t i = 0; i < size; i++)
			count += line[i] == *one;
		if (count > most) {
			most = count;
			best = *one;
		}
	}
	return best;
}

/* A field without blanks and quotes around it. */
static void add_field(json_t *names, const char *text, size_t size)
{
	while (size && strchr(" \t\r\"", text[size - 1]))
		size--;
	while (size && strchr(" \t\"", *text)) {
		text++;
		size--;
	}
	if (size)
		json_array_append_new(names, json_stringn(text, size));
}

static json_t *split_line(const char *line, size_t size)
{
	char separator = separator_of(line, size);
	json_t *names = json_array();
	bool quoted = false;
	size_t start = 0;

	for (size_t i = 0; i <= size && json_array_size(names) < COLUMNS_MAX; i++) {
		quoted ^= i < size && line[i] == '"';
		if (i < size && (quoted || line[i] != separator))
			continue;
		add_field(names, line + start, i - start);
		start = i + 1;
	}
	return names;
}

static json_t *columns_of_file(const struct workspace *workspace, const char *path)
{
	owned(files_text_finish) struct files_text head = {0};
	const char *dot = strrchr(path, '.');
	struct err err;

	if (!dot || (strcasecmp(dot, ".csv") != 0 && strcasecmp(dot, ".tsv") != 0) ||
	    files_read_text(workspace_files(workspace), path, strlen(path), 0,
			    LINE_CHARS, &head, &err) < 0)
		return NULL;
	const char *text = buf_str(&head.text);
	return split_line(text, strcspn(text, "\n"));
}

json_t *known_columns(const struct workspace *workspace, const char *table)
{
	if (!workspace)
		return NULL;
	json_t *columns = json_object_get(
	    json_object_get(workspace_known(workspace), "columns"), table);
	return columns || known_variable(workspace, table)
		   ? json_incref(columns)
		   : columns_of_file(workspace, table);
}

/* "2306x2 [GBP, USD]" of a frame, "DataFrame" of one in a saved state. */
static bool is_table(const char *what)
{
	size_t rows = strspn(what, "0123456789");

	return (rows && what[rows] == 'x') || strcmp(what, "DataFrame") == 0 ||
	       strncmp(what, "Series ", 7) == 0;
}

void known_tables(const struct workspace *workspace,
		  void (*each)(const char *name, void *arg), void *arg)
{
	const json_t *vars = vars_of(workspace);

	for (size_t i = 0; i < json_array_size(vars); i++) {
		const json_t *row = json_array_get(vars, i);

		if (is_table(text_at(row, 1)))
			each(text_at(row, 0), arg);
	}
}

bool known_table_file(const char *path)
{
	static const char *const ends[] = {".csv",     ".tsv",  ".xlsx", ".xls",
					   ".parquet", ".json", ".jsonl"};
	const char *dot = strrchr(path, '.');

	for (size_t i = 0; dot && i < COUNT_OF(ends); i++)
		if (strcasecmp(dot, ends[i]) == 0)
			return true;
	return false;
}

// SPDX-License-Identifier: MIT
#include "mcp/known.h"

#include <string.h>
#include <strings.h>

#include "wire/mem.h"

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

const json_t *known_columns(const struct workspace *workspace, const char *table)
{
	const json_t *all =
	    workspace ? json_object_get(workspace_known(workspace), "columns") : NULL;

	return json_object_get(all, table);
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

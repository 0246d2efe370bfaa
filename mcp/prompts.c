// SPDX-License-Identifier: MIT
#include "mcp/prompts.h"

#include <string.h>

#include "mcp/conformance.h"
#include "mcp/icons.h"
#include "mcp/known.h"
#include "wire/json.h"
#include "wire/mem.h"
#include "wire/utf8.h"

enum {
	HEAD_CHARS = 1500, /* of a file that is to be explored */
	VALUE_MAX = 1000,  /* bytes of an argument */
};

/* ---- what is said of a table or file ---- */

static void show_value(struct buf *out, const char *value)
{
	buf_text(out, "`");
	utf8_show_cut(out, value, strlen(value), VALUE_MAX);
	buf_text(out, "`");
}

static bool find_file(const struct prompts_ask *ask, const char *path,
		      struct files_look *out)
{
	struct err err;

	return ask->workspace && files_look(workspace_files(ask->workspace), path,
					    strlen(path), out, &err) == 0;
}

/* "the file `a.csv` (64K)" */
static void show_file(struct buf *out, const char *path, const struct files_look *file)
{
	char size[FILES_SIZE_TEXT];

	files_size_text(size, file->size);
	buf_text(out, "the file ");
	show_value(out, path);
	buf_printf(out, " (%s)", size);
}

/* A variable is meant before a file of the same name. */
static void show_table(struct buf *out, const struct prompts_ask *ask, const char *name)
{
	const char *what = known_variable(ask->workspace, name);
	struct files_look file;

	if (what) {
		buf_text(out, "the variable ");
		show_value(out, name);
		buf_text(out, " (");
		utf8_show_cut(out, what, strlen(what), VALUE_MAX);
		buf_text(out, "), which is in the live namespace already");
	} else if (find_file(ask, name, &file)) {
		show_file(out, name, &file);
	} else {
		show_value(out, name);
		buf_text(out, ", a variable or a file (see which)");
	}
}

/* How a text file begins, so that the first call can read it rightly. */
static void show_head(struct buf *out, const struct prompts_ask *ask, const char *path)
{
	owned(files_text_finish) struct files_text head = {0};
	struct err err;

	if (files_read_text(workspace_files(ask->workspace), path, strlen(path), 0,
			    HEAD_CHARS, &head, &err) < 0 ||
	    !head.text.size)
		return;
	buf_printf(out, "\n\nIts text (%s) begins:\n\n````\n", head.coding);
	buf_add(out, head.text.data, head.text.size);
	buf_text(out, head.cut ? "\n[...]\n````" : "\n````");
}

/* ---- the prompts ---- */

json_t *prompt_text(const char *description, const char *text, size_t size)
{
	return json_pack("{ss s[{ss s{ss so}}]}", "description", description,
			 "messages", "role", "user", "content", "type", "text", "text",
			 json_string_lossy(text, size));
}

static json_t *get_explore(const struct prompts_ask *ask, const char *const *values,
			   struct rpc_refusal *refusal)
{
	owned(buf_finish) struct buf text = {0};
	struct files_look file;

	(void)refusal;
	buf_text(&text, "Explore ");
	if (find_file(ask, values[0], &file)) {
		show_file(&text, values[0], &file);
		buf_text(&text, " of the workspace");
		if (!file.kind)
			show_head(&text, ask, values[0]);
	} else {
		buf_text(&text, "the file ");
		show_value(&text, values[0]);
		buf_text(&text,
			 " of the workspace (no such file is there now: say so)");
	}
	buf_text(
	    &text,
	    "\n\nWork with run_python, in small cells:\n"
	    "1. Load it into a variable with a telling name. Look at its shape, types, "
	    "first and last rows.\n"
	    "2. Say what each column or part means, in which unit, over which range; "
	    "count what is missing, doubled, or written in several ways.\n"
	    "3. Draw one or two charts of what matters most.\n"
	    "Do not change the file. End with a summary of at most ten lines: what it "
	    "is, what can be relied on, what cannot, and which questions it could "
	    "answer.");
	return prompt_text("Explore a file", text.data, text.size);
}

static json_t *get_clean(const struct prompts_ask *ask, const char *const *values,
			 struct rpc_refusal *refusal)
{
	owned(buf_finish) struct buf text = {0};

	(void)refusal;
	buf_text(&text, "Clean ");
	show_table(&text, ask, values[0]);
	if (values[1][0]) {
		buf_text(&text, ". It is needed for: ");
		utf8_show_cut(&text, values[1], strlen(values[1]), VALUE_MAX);
	}
	buf_text(
	    &text,
	    ".\n\nWork with run_python:\n"
	    "1. Look first: types, missing values and how they are written (\"NA\", "
	    "\":\", \"-\", blanks), numbers that are text, dates, doubled rows, names "
	    "of columns, impossible values.\n"
	    "2. Say in a short list what you will change and why; ask where a choice "
	    "is mine to make.\n"
	    "3. Make a new variable and leave the original as it is. "
	    "vivarium_charts.clean_numeric reads texts that mean numbers.\n"
	    "4. Check: as many rows as before, or say which went and why; types; what "
	    "is still missing.\n"
	    "End with a table of column, what was wrong, what was done, how many "
	    "values. Write a file only when I ask for it, under a new name.");
	return prompt_text("Clean a table", text.data, text.size);
}

/* The columns there are, where the one that is named is none of them. */
static void show_columns(struct buf *out, const json_t *columns, const char *wanted)
{
	bool found = false;

	for (size_t i = 0; i < json_array_size(columns); i++)
		found |=
		    strcmp(json_string_value(json_array_get(columns, i)), wanted) == 0;
	if (found || !json_array_size(columns))
		return;
	buf_text(out, " (there is no such column; there are ");
	for (size_t i = 0; i < json_array_size(columns); i++) {
		buf_text(out, i ? ", " : "");
		show_value(out, json_string_value(json_array_get(columns, i)));
	}
	buf_text(out, ")");
}

static json_t *get_chart(const struct prompts_ask *ask, const char *const *values,
			 struct rpc_refusal *refusal)
{
	owned(buf_finish) struct buf text = {0};
	json_auto_t *columns = known_columns(ask->workspace, values[0]);

	(void)refusal;
	buf_text(&text, "Chart the column ");
	show_value(&text, values[1]);
	show_columns(&text, columns, values[1]);
	buf_text(&text, " of ");
	show_table(&text, ask, values[0]);
	if (values[2][0]) {
		buf_text(&text, ", by ");
		show_value(&text, values[2]);
	}
	buf_text(
	    &text,
	    ".\n\nWork with run_python. Look at the values first: type, range, what is "
	    "missing. Then one chart that fits them: line_chart over time, bar_chart "
	    "over categories, scatter_chart for two measures, from vivarium_charts "
	    "(line_chart(df, x=..., y=..., title=..., ylabel=...)), or matplotlib for "
	    "a histogram. Give it a title that says what is to be seen, and units.\n"
	    "End with two sentences: what it shows, and what it leaves out.");
	return prompt_text("Chart a column", text.data, text.size);
}

static const struct prompt explore = {
    .name = "explore_file",
    .title = "Explore a file",
    .description = "What is in a file of the workspace, and what it is good for.",
    .icon = ICON_FILE,
    .args = {{"path", "File", "Path of the file in the workspace.", true,
	      COMPLETES_FILES}},
    .get = get_explore,
};

static const struct prompt clean = {
    .name = "clean_table",
    .title = "Clean a table",
    .description = "Put a table in order, with an account of every change.",
    .icon = ICON_PEN,
    .args = {{"table", "Table", "A variable, or a file of the workspace.", true,
	      COMPLETES_TABLES},
	     {"purpose", "Purpose", "What the table is needed for.", false,
	      COMPLETES_NOTHING}},
    .get = get_clean,
};

static const struct prompt chart = {
    .name = "chart_column",
    .title = "Chart a column",
    .description = "One chart of a column, of the kind that fits its values.",
    .icon = ICON_CHART,
    .args = {{"table", "Table", "A variable, or a file of the workspace.", true,
	      COMPLETES_TABLES},
	     {"column", "Column", "The column to draw.", true, COMPLETES_COLUMNS},
	     {"by", "By", "A column to group or order by.", false, COMPLETES_COLUMNS}},
    .get = get_chart,
};

static const struct prompt *const prompts[] = {&explore, &clean, &chart};

/* ---- the methods ---- */

static const struct prompt *prompt_at(const struct config *config, size_t index)
{
	if (index < COUNT_OF(prompts))
		return prompts[index];
	return config->conformance ? conformance_prompts[index - COUNT_OF(prompts)]
				   : NULL;
}

const struct prompt *prompt_find(const struct config *config, const char *name)
{
	const struct prompt *prompt;

	for (size_t i = 0; (prompt = prompt_at(config, i)); i++)
		if (strcmp(prompt->name, name) == 0)
			return prompt;
	return NULL;
}

static json_t *describe_args(const struct prompt *prompt, enum mcp_revision revision)
{
	json_t *rows = json_array();

	for (const struct prompt_arg *arg = prompt->args; arg->name; arg++) {
		json_t *row = json_pack("{ss ss sb}", "name", arg->name, "description",
					arg->help, "required", arg->required);

		if (revision >= MCP_2025_06_18 && arg->title)
			json_object_set_new(row, "title", json_string(arg->title));
		json_array_append_new(rows, row);
	}
	return rows;
}

static json_t *describe(const struct prompt *prompt, enum mcp_revision revision)
{
	json_t *row = json_pack("{ss ss so}", "name", prompt->name, "description",
				prompt->description, "arguments",
				describe_args(prompt, revision));

	if (revision >= MCP_2025_06_18 && prompt->title)
		json_object_set_new(row, "title", json_string(prompt->title));
	if (revision >= MCP_2025_11_25 && prompt->icon)
		json_object_set_new(row, "icons", icons_json(prompt->icon));
	return row;
}

static json_t *refuse(struct rpc_refusal *refusal)
{
	refusal->code = RPC_INVALID_PARAMS;
	return NULL;
}

json_t *prompts_list(const struct prompts_ask *ask, struct rpc_refusal *refusal)
{
	json_t *rows = json_array();
	const struct prompt *prompt;

	if (json_object_get(ask->params, "cursor")) {
		json_decref(rows);
		err_set(&refusal->err, ERR_ARGUMENT,
			"unknown cursor: prompts/list has one page");
		return refuse(refusal);
	}
	for (size_t i = 0; (prompt = prompt_at(ask->config, i)); i++)
		json_array_append_new(rows, describe(prompt, ask->revision));
	return json_pack("{so}", "prompts", rows);
}

static int read_values(const struct prompt *prompt, const json_t *arguments,
		       const char **values, struct err *err)
{
	for (size_t i = 0; prompt->args[i].name; i++) {
		const struct prompt_arg *arg = &prompt->args[i];
		const json_t *value = json_object_get(arguments, arg->name);

		if (value && !json_is_string(value))
			return err_set(err, ERR_ARGUMENT,
				       "arguments.%s is not a string", arg->name);
		values[i] = value ? json_string_value(value) : "";
		if (arg->required && !values[i][0])
			return err_set(err, ERR_ARGUMENT,
				       "arguments.%s is missing; give it: %s",
				       arg->name, arg->help);
	}
	return 0;
}

json_t *prompts_get(const struct prompts_ask *ask, struct rpc_refusal *refusal)
{
	const char *name = json_text(ask->params, "name", "(no params.name)");
	const struct prompt *prompt = prompt_find(ask->config, name);
	const json_t *arguments = json_object_get(ask->params, "arguments");
	const char *values[PROMPT_ARGS_MAX] = {NULL};

	if (!prompt) {
		err_set(&refusal->err, ERR_ARGUMENT,
			"Unknown prompt: %.100s; prompts/list names them all", name);
		return refuse(refusal);
	}
	if (arguments && !json_is_object(arguments)) {
		err_set(&refusal->err, ERR_ARGUMENT,
			"params.arguments is not an object");
		return refuse(refusal);
	}
	if (read_values(prompt, arguments, values, &refusal->err) < 0)
		return refuse(refusal);
	return prompt->get(ask, values, refusal);
}

// SPDX-License-Identifier: MIT
#include "mcp/tools.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mcp/conformance.h"
#include "mcp/icons.h"
#include "mcp/jobs.h"
#include "mcp/outlet.h"
#include "wire/json.h"
#include "wire/mem.h"

static const struct tool *const tools[] = {
    &tool_run_python,     &tool_wait,       &tool_undo,   &tool_restore,
    &tool_history,        &tool_diff,       &tool_branch, &tool_list_files,
    &tool_read_text_file, &tool_write_file,
};

/* Every tool has it where branches can be made. */
static const struct tool_arg branch_arg = {
    "branch", ARG_TEXT, false,
    0,        0,        "Name of the branch to work in; \"\": the workspace itself."};

bool tools_have_branches(const struct config *config)
{
	return config_offers_tool(config, tool_branch.name) && config_saves(config);
}

static const char *const type_names[] = {
    [ARG_TEXT] = "string",     [ARG_PATH] = "string",  [ARG_NUMBER] = "number",
    [ARG_INTEGER] = "integer", [ARG_FLAG] = "boolean", [ARG_ENCODING] = "string"};
static const char *const encodings[] = {"utf-8", "base64"};

static const struct tool *find(const char *name, size_t size)
{
	for (size_t i = 0; i < COUNT_OF(tools); i++)
		if (strlen(tools[i]->name) == size &&
		    strncmp(tools[i]->name, name, size) == 0)
			return tools[i];
	return NULL;
}

const struct tool *tool_find(const struct config *config, const char *name)
{
	if (config_offers_tool(config, name))
		return find(name, strlen(name));
	return config->conformance ? conformance_tool(name) : NULL;
}

int tools_check(const struct config *config, struct err *err)
{
	char all[200] = "";

	for (size_t i = 0; i < COUNT_OF(tools); i++)
		snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s",
			 i ? "," : "", tools[i]->name);
	if (!config->tools[strspn(config->tools, CONFIG_TOOLS_BETWEEN)])
		return err_set(err, ERR_CONFIG,
			       "VIVARIUM_TOOLS names no tool; there are %s", all);
	for (const char *at = config->tools; *at;
	     at += strspn(at, CONFIG_TOOLS_BETWEEN)) {
		size_t size = strcspn(at, CONFIG_TOOLS_BETWEEN);

		if (size && !find(at, size))
			return err_set(err, ERR_CONFIG,
				       "VIVARIUM_TOOLS names '%.*s'; there are %s",
				       (int)(size < 40 ? size : 40), at, all);
		at += size;
	}
	return 0;
}

/* ---- what tools/list says ---- */

static json_t *number_json(double value)
{
	return value == floor(value) ? json_integer((json_int_t)value)
				     : json_real(value);
}

static bool is_number(const struct tool_arg *arg)
{
	return arg->type == ARG_NUMBER || arg->type == ARG_INTEGER;
}

static json_t *default_json(const struct tool_arg *arg)
{
	switch (arg->type) {
	case ARG_TEXT:
	case ARG_PATH:
		return json_string("");
	case ARG_ENCODING:
		return json_string(encodings[0]);
	case ARG_FLAG:
		return json_boolean(arg->fallback != 0);
	case ARG_NUMBER:
	case ARG_INTEGER:
		break;
	}
	return number_json(arg->fallback);
}

static json_t *arg_schema(const struct tool_arg *arg)
{
	json_t *schema = json_pack("{ss ss}", "type", type_names[arg->type],
				   "description", arg->help);

	if (is_number(arg))
		json_object_set_new(schema, "minimum", number_json(arg->min));
	if (arg->type == ARG_ENCODING)
		json_object_set_new(schema, "enum",
				    json_pack("[ss]", encodings[0], encodings[1]));
	if (arg->required)
		return schema;
	json_object_set_new(schema, "default", default_json(arg));
	return schema;
}

static json_t *input_schema(const struct tool *tool, bool branches,
			    enum mcp_revision revision)
{
	if (tool->input_schema)
		return json_loads(tool->input_schema, 0, NULL);
	json_t *properties = json_object(), *required = json_array();
	json_t *schema = json_pack("{ss so sb}", "type", "object", "properties",
				   properties, "additionalProperties", 0);

	for (size_t i = 0; tool->args[i].name; i++) {
		const struct tool_arg *arg = &tool->args[i];
		json_t *property = arg_schema(arg);

		if (tool->headers[i] && revision >= MCP_STATELESS)
			json_object_set_new(property, "x-mcp-header",
					    json_string(tool->headers[i]));
		json_object_set_new(properties, arg->name, property);
		if (arg->required)
			json_array_append_new(required, json_string(arg->name));
	}
	if (branches)
		json_object_set_new(properties, branch_arg.name,
				    arg_schema(&branch_arg));
	if (json_array_size(required))
		json_object_set_new(schema, "required", required);
	else
		json_decref(required);
	return schema;
}

static json_t *describe(const struct tool *tool, const struct config *config,
			enum mcp_revision revision, bool structure)
{
	bool branches = tools_have_branches(config);
	owned(buf_finish) struct buf text = {0};

	if (tool->describe)
		tool->describe(&text, config);
	else
		buf_text(&text, tool->description);
	json_t *row =
	    json_pack("{ss ss so}", "name", tool->name, "description", buf_str(&text),
		      "inputSchema", input_schema(tool, branches, revision));

	if (revision >= MCP_2025_03_26)
		json_object_set_new(row, "annotations",
				    json_pack("{ss sb sb sb sb}", "title", tool->title,
					      "readOnlyHint", tool->read_only,
					      "destructiveHint", tool->destructive,
					      "idempotentHint", tool->idempotent,
					      "openWorldHint", tool->open_world));
	if (revision >= MCP_2025_06_18) {
		json_object_set_new(row, "title", json_string(tool->title));
		if (tool->output_schema && structure)
			json_object_set_new(row, "outputSchema",
					    json_loads(tool->output_schema, 0, NULL));
	}
	if (revision >= MCP_2025_11_25 && tool->icon)
		json_object_set_new(row, "icons", icons_json(tool->icon));
	return row;
}

json_t *tools_list(const struct config *config, enum mcp_revision revision,
		   bool structure)
{
	json_t *list = json_array();

	for (size_t i = 0; i < COUNT_OF(tools); i++)
		if (config_offers_tool(config, tools[i]->name) &&
		    (!tools[i]->needs_states || config_saves(config)))
			json_array_append_new(
			    list, describe(tools[i], config, revision, structure));
	for (size_t i = 0; config->conformance && conformance_tools[i]; i++)
		json_array_append_new(
		    list, describe(conformance_tools[i], config, revision, structure));
	return list;
}

static void print_signature(const struct tool *tool, FILE *to)
{
	fprintf(to, "| `%s(", tool->name);
	for (const struct tool_arg *arg = tool->args; arg->name; arg++) {
		fprintf(to, "%s%s", arg == tool->args ? "" : ", ", arg->name);
		if (!arg->required && arg->type == ARG_FLAG)
			fprintf(to, "=%s", arg->fallback != 0 ? "true" : "false");
		else if (!arg->required && arg->type == ARG_ENCODING)
			fprintf(to, "=%s", encodings[0]);
		else if (!arg->required)
			fprintf(to, "=%g", arg->fallback);
	}
	fprintf(to, ")` | ");
}

void tools_markdown(FILE *to)
{
	fprintf(to, "| tool | what it does |\n|---|---|\n");
	for (size_t i = 0; i < COUNT_OF(tools); i++) {
		const char *text = tools[i]->description;

		print_signature(tools[i], to);
		fprintf(to, "%.*s |\n", (int)strcspn(text, "\n"), text);
	}
}

/* ---- arguments ---- */

static bool has_type(const json_t *value, enum arg_type type)
{
	switch (type) {
	case ARG_TEXT:
	case ARG_PATH:
	case ARG_ENCODING:
		return json_is_string(value);
	case ARG_NUMBER:
	case ARG_INTEGER:
		return json_is_number(value);
	case ARG_FLAG:
		return json_is_boolean(value);
	}
	return false;
}

static const char *type_of(const json_t *value)
{
	static const char *const names[] = {
	    [JSON_OBJECT] = "an object", [JSON_ARRAY] = "an array",
	    [JSON_STRING] = "a string",  [JSON_INTEGER] = "a number",
	    [JSON_REAL] = "a number",    [JSON_TRUE] = "a boolean",
	    [JSON_FALSE] = "a boolean",  [JSON_NULL] = "null"};

	return names[json_typeof(value)];
}

static int check_encoding(const struct tool_arg *arg, const char *text, struct err *err)
{
	if (arg->type != ARG_ENCODING)
		return 0;
	for (size_t i = 0; i < COUNT_OF(encodings); i++)
		if (strcmp(text, encodings[i]) == 0)
			return 0;
	return err_set(err, ERR_ARGUMENT, "%s is '%.40s'; it must be %s or %s",
		       arg->name, text, encodings[0], encodings[1]);
}

static int read_arg(struct arg_value *out, const struct tool_arg *arg,
		    const json_t *value, struct err *err)
{
	*out = (struct arg_value){.text = arg->type == ARG_ENCODING ? encodings[0] : "",
				  .number = arg->fallback};
	if (!value || json_is_null(value))
		return arg->required
			   ? err_set(err, ERR_ARGUMENT, "%s is missing; give it: %s",
				     arg->name, arg->help)
			   : 0;
	if (!has_type(value, arg->type))
		return err_set(err, ERR_ARGUMENT, "%s must be %s %s, not %s", arg->name,
			       arg->type == ARG_INTEGER ? "an" : "a",
			       type_names[arg->type], type_of(value));
	if (json_is_string(value)) {
		out->text = json_string_value(value);
		out->size = json_string_length(value);
		return check_encoding(arg, out->text, err);
	}
	out->number =
	    arg->type == ARG_FLAG ? json_is_true(value) : json_number_value(value);
	if (arg->type == ARG_INTEGER && out->number != floor(out->number))
		return err_set(err, ERR_ARGUMENT, "%s is %g; it must be a whole number",
			       arg->name, out->number);
	if (is_number(arg) && out->number < arg->min)
		return err_set(err, ERR_ARGUMENT, "%s is %g; it must be at least %g",
			       arg->name, out->number, arg->min);
	return 0;
}

static int refuse_unknown(const struct tool *tool, const json_t *arguments,
			  bool branches, struct err *err)
{
	const char *key;
	json_t *value;
	char known[160] = "";

	for (const struct tool_arg *arg = tool->args; arg->name; arg++)
		snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s",
			 known[0] ? ", " : "", arg->name);
	if (tool->input_schema)
		return 0;
	if (branches)
		snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s",
			 known[0] ? ", " : "", branch_arg.name);
	json_object_foreach((json_t *)(uintptr_t)arguments, key, value)
	{
		const struct tool_arg *arg = tool->args;

		while (arg->name && strcmp(arg->name, key) != 0)
			arg++;
		if (!arg->name && !(branches && strcmp(key, branch_arg.name) == 0))
			return err_set(err, ERR_ARGUMENT,
				       "%s has no argument '%.60s'; it takes %s",
				       tool->name, key, known[0] ? known : "none");
	}
	return 0;
}

static int read_args(struct arg_value *out, const struct tool *tool,
		     const json_t *arguments, bool branches, struct err *err)
{
	if (refuse_unknown(tool, arguments, branches, err) < 0)
		return -1;
	for (size_t i = 0; tool->args[i].name; i++)
		if (read_arg(&out[i], &tool->args[i],
			     json_object_get(arguments, tool->args[i].name), err) < 0)
			return -1;
	return 0;
}

/* Goes over to the branch that the arguments name. */
static int enter_branch(struct tool_call *self, const json_t *arguments,
			struct err *err)
{
	struct arg_value branch;

	if (!tools_have_branches(self->config))
		return 0;
	if (read_arg(&branch, &branch_arg, json_object_get(arguments, branch_arg.name),
		     err) < 0)
		return -1;
	return workspaces_branch(self->workspaces, self->workspace, branch.text,
				 &self->workspace, err);
}

/* A path that code has shown, by the directory that it sees, becomes relative. */
static void leave_out_shown_dir(const struct tool_call *self, struct arg_value *path)
{
	const char *dir = workspace_shown_dir(self->workspace);
	size_t len = strlen(dir);

	if (path->size <= len || memcmp(path->text, dir, len) != 0 ||
	    path->text[len] != '/')
		return;
	len += strspn(path->text + len, "/");
	path->text += len;
	path->size -= len;
}

/* ---- a call ---- */

void tool_run(struct tool_call *self)
{
	struct arg_value values[TOOL_ARGS_MAX] = {{0}};
	struct err err;

	if (read_args(values, self->tool, self->arguments,
		      tools_have_branches(self->config), &err) < 0) {
		tool_fail(self, &err);
		return;
	}
	for (size_t i = 0; self->tool->args[i].name; i++)
		if (self->tool->args[i].type == ARG_PATH)
			leave_out_shown_dir(self, &values[i]);
	self->tool->run(self, values);
}

void tool_start(struct tool_call *self, json_t *arguments)
{
	struct err err;

	self->arguments = json_incref(arguments);
	if (enter_branch(self, arguments, &err) < 0 ||
	    (self->tool->needs_states &&
	     workspace_check_saves(self->workspace, &err) < 0))
		tool_fail(self, &err);
	else
		tool_run(self);
}

int tool_call_kernel(struct tool_call *self, const struct arg_value *code,
		     const struct call_options *options, call_done_fn *done,
		     struct err *err)
{
	jobs_stop_asking(self->jobs, self->workspace);
	return call_create(&self->call, self->workspace, code ? code->text : "",
			   code ? code->size : 0, options, done, self, err);
}

void tool_cancel(struct tool_call *self)
{
	if (self->call)
		call_cancel(self->call);
	else if (self->viewer)
		viewer_cancel(self->viewer);
	else if (self->waiter.job && self->passes_cancel)
		job_cancel(self->waiter.job);
	else if (self->waiter.job) /* it has nothing of its own to stop */
		tool_fail(self, &(struct err){.kind = ERR_ARGUMENT,
					      .msg = "the waiting was cancelled; the "
						     "call goes on"});
	else if (self->question || self->outstanding || self->asking)
		tool_fail(self, &(struct err){.kind = ERR_ARGUMENT,
					      .msg = "cancelled before there was an "
						     "answer"});
}

void tool_drop(struct tool_call *self)
{
	if (self->asking)
		workspace_forget(self->workspace, self);
	self->asking = false;
	viewer_drop(&self->viewer);
	job_unwait(&self->waiter);
	outlet_withdraw(&self->question);
	free_text(&self->question_name);
	json_decref(self->kept);
	json_decref(self->arguments);
	json_decref(self->outstanding);
	self->kept = self->arguments = self->outstanding = NULL;
	asks_finish(&self->asks);
	buf_finish(&self->preface);
}

void tool_finish(struct tool_call *self, json_t *result)
{
	tool_drop(self);
	self->done(result, self->arg);
}

json_t *tool_result(const struct tool_call *self, const char *text, size_t size,
		    json_t *structure)
{
	json_t *result = json_pack("{s[{ss so}] sb}", "content", "type", "text", "text",
				   json_string_lossy(text, size), "isError", 0);

	if (structure && self->structure)
		json_object_set_new(result, "structuredContent", structure);
	else
		json_decref(structure);
	return result;
}

void tool_fail(struct tool_call *self, const struct err *err)
{
	char text[sizeof err->msg + 128];
	const char *advice = err_advice(err->kind);

	snprintf(text, sizeof text, "Error: %s%s%s", err->msg, advice[0] ? "\n" : "",
		 advice);
	json_t *result = tool_result(self, text, strlen(text), NULL);
	json_object_set_new(result, "isError", json_true());
	tool_finish(self, result);
}

void tool_refuse(struct tool_call *self, struct rpc_refusal *refusal)
{
	tool_drop(self);
	self->refused(refusal, self->arg);
}

bool tool_check_moved(struct tool_call *self, const struct outcome *outcome)
{
	struct err err;

	self->call = NULL;
	if (outcome->end == CALL_OK && outcome->back)
		return true;
	err_set(&err, ERR_ARGUMENT, "%.*s", (int)strcspn(outcome->notice, "\n"),
		outcome->notice);
	tool_fail(self, &err);
	return false;
}

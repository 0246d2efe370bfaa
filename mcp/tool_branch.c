// SPDX-License-Identifier: MIT
/* branch - a copy of the workspace to try something in. */
#include <stdio.h>
#include <string.h>

#include "kernelmgr/branches.h"
#include "mcp/icons.h"
#include "mcp/saved.h"
#include "mcp/tools.h"
#include "wire/json.h"
#include "wire/words.h"

static void tell_names(struct buf *text, const json_t *state)
{
	const json_t *names = json_object_get(state, "names");

	if (!json_integer_of(state, "cell", 0)) {
		buf_text(text,
			 "No state was saved yet, so it begins without variables");
		return;
	}
	buf_printf(text, "Its variables are as after cell %lld (",
		   json_integer_of(state, "cell", 0));
	saved_names(text, names);
	buf_text(text, ")");
}

static void tell(struct tool_call *self, const struct outcome *outcome)
{
	owned(buf_finish) struct buf text = {0};
	const json_t *names = json_object_get(outcome->back, "names");

	buf_printf(&text, "%sThe branch %s is there. ", outcome->notice,
		   outcome->branch);
	tell_names(&text, outcome->back);
	buf_printf(&text,
		   ", and the files of the workspace were copied. The outside world "
		   "was not: processes, databases, services and files elsewhere are "
		   "shared, and open files and absolute paths in variables still lead "
		   "to the original's files. Give branch=\"%s\" to run_python and the "
		   "other tools to work there; without it they work in the workspace, "
		   "which goes on independently.",
		   outcome->branch);
	tool_finish(
	    self,
	    tool_result(self, text.data, text.size,
			json_pack("{ss sI so}", "branch", outcome->branch, "cell",
				  (json_int_t)json_integer_of(outcome->back, "cell", 0),
				  "names",
				  names ? json_deep_copy(names) : json_array())));
}

static void on_done(const struct outcome *outcome, void *arg)
{
	if (tool_check_moved(arg, outcome))
		tell(arg, outcome);
}

static int check_name(const struct tool_call *self, const struct arg_value *name,
		      struct err *err)
{
	struct branch_place place;

	if (strlen(name->text) != name->size)
		return err_set(err, ERR_ARGUMENT, "name has a NUL character");
	if (branch_find_place(&place, self->config, workspace_name(self->workspace),
			      name->text, err) < 0)
		return -1;
	if (branch_is_there(&place))
		return err_set(err, ERR_ARGUMENT, "there is a branch %s already",
			       name->text);
	if (workspaces_has(self->workspaces, place.name))
		return err_set(err, ERR_ARGUMENT,
			       "branch %s was removed, but its kernel may live on; its "
			       "name is free when Vivarium has been restarted",
			       name->text);
	return 0;
}

static void run(struct tool_call *self, const struct arg_value *args)
{
	struct call_options options = {.timeout_s = 60};
	struct err err;

	snprintf(options.branch, sizeof options.branch, "%s", args[0].text);
	if (check_name(self, &args[0], &err) < 0 ||
	    tool_call_kernel(self, NULL, &options, on_done, &err) < 0)
		tool_fail(self, &err);
}

const struct tool tool_branch = {
    .name = "branch",
    .needs_states = true,
    .title = "Branch the workspace",
    .icon = ICON_BRANCH,
    .description =
	"Copy the workspace, variables and files, into a branch to try something in.\n"
	"The branch has a kernel of its own; work there by giving its name as the "
	"argument branch of the other tools. Both go on independently. What is outside "
	"the workspace is not copied.",
    .args = {{"name", ARG_TEXT, true, 0, 0,
	      "Name of the new branch: 1 to 32 of A-Z a-z 0-9 . _ - , not starting "
	      "with a dot."}},
    .output_schema =
	"{\"type\":\"object\",\"properties\":{\"branch\":{\"type\":\"string\"},"
	"\"cell\":{\"type\":\"integer\",\"description\":\"the variables are as after "
	"this cell; 0: there are none\"},\"names\":{\"type\":\"array\",\"items\":{"
	"\"type\":\"object\"}}},\"required\":[\"branch\",\"cell\",\"names\"]}",
    .run = run,
};

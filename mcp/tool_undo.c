// SPDX-License-Identifier: MIT
/* undo and restore - put an older saved state of the namespace in force. */
#include <math.h>
#include <string.h>

#include "mcp/icons.h"
#include "mcp/saved.h"
#include "mcp/tools.h"
#include "wire/json.h"
#include "wire/words.h"

enum { UNASKED_MAX = 5 }; /* cells */
#define ONLY_VARIABLES                                                                 \
	"Only variables went back: files, processes, databases and everything else "   \
	"outside the kernel are as they were."

/* Not every cell has a state of its own. */
static void tell_distance(struct buf *text, const json_t *back)
{
	long long undone = json_integer_of(back, "undone", 0);
	long long asked = json_integer_of(back, "asked", 0);

	if (undone > asked)
		buf_printf(
		    text,
		    "That takes %lld cells back, not %lld: those between have no "
		    "saved state of their own. ",
		    undone, asked);
}

static void tell(struct tool_call *self, const struct outcome *outcome)
{
	owned(buf_finish) struct buf text = {0};
	const json_t *back = outcome->back, *names = json_object_get(back, "names");
	long long cell = json_integer_of(back, "cell", 0);
	char when[TIME_TEXT];

	time_text(when, json_integer_of(back, "time", 0));
	buf_printf(&text, "%sThe namespace is as it was after cell %lld (%s), ",
		   outcome->notice, cell, when);
	saved_names(&text, names);
	buf_text(&text, ". ");
	tell_distance(&text, back);
	buf_text(&text, ONLY_VARIABLES " The next run_python continues from there in a "
				       "new kernel.");
	if (config_offers_tool(self->config, "restore"))
		buf_text(&text, " restore reaches what was undone.");
	tool_finish(
	    self, tool_result(self, text.data, text.size,
			      json_pack("{sI ss sO}", "cell", (json_int_t)cell, "saved",
					when, "names", (json_t *)(uintptr_t)names)));
}

static void on_done(const struct outcome *outcome, void *arg)
{
	if (tool_check_moved(arg, outcome))
		tell(arg, outcome);
}

static void go(struct tool_call *self, enum call_back back, double cells)
{
	const struct call_options options = {
	    .timeout_s = 60, .back = back, .cells = (long long)floor(cells)};
	struct err err;

	if (tool_call_kernel(self, NULL, &options, on_done, &err) < 0)
		tool_fail(self, &err);
}

static bool may_undo(struct tool_call *self, long long undone, long long asked)
{
	char message[256], words[96] = "";

	if (undone > asked)
		snprintf(words, sizeof words,
			 " (Asked for: %lld, but those between have no saved state of "
			 "their own.)",
			 asked);
	snprintf(message, sizeof message,
		 "Undo the last %lld cells?%s What they did to the variables will be "
		 "lost.",
		 undone, words);
	return undone <= UNASKED_MAX ||
	       tool_confirm(self, message, json_pack("{sI}", "undone", undone));
}

/* It may take more cells back than were asked for, or not be possible. */
static void on_looked(const json_t *answer, void *arg)
{
	struct tool_call *self = arg;
	const char *error = json_text(answer, "error", NULL);
	long long asked = json_integer_of(answer, "asked", 0);
	struct err err;

	self->asking = false;
	if (error) {
		err_set(&err, ERR_ARGUMENT, "%s", error);
		tool_fail(self, &err);
	} else if (may_undo(self, json_integer_of(answer, "undone", 0), asked)) {
		go(self, BACK_BY, (double)asked);
	}
}

/* Where restore is offered, what is undone can be had again. */
static void run_undo(struct tool_call *self, const struct arg_value *args)
{
	struct err err;

	if (!tool_can_ask(self) || config_offers_tool(self->config, "restore")) {
		go(self, BACK_BY, args[0].number);
		return;
	}
	self->asking = true;
	if (workspace_ask_undo(self->workspace, (long long)floor(args[0].number),
			       on_looked, self, &err) == 0)
		return;
	self->asking = false;
	tool_fail(self, &err);
}

static void run_restore(struct tool_call *self, const struct arg_value *args)
{
	go(self, BACK_TO, args[0].number);
}

static const char output_schema[] =
    "{\"type\":\"object\",\"properties\":{\"cell\":{\"type\":\"integer\","
    "\"description\":\"the state is the one after this cell\"},\"saved\":{\"type\":"
    "\"string\"},\"names\":{\"type\":\"array\"}},\"required\":[\"cell\",\"saved\","
    "\"names\"]}";

const struct tool tool_undo = {
    .name = "undo",
    .needs_states = true,
    .title = "Undo cells",
    .icon = ICON_BACK,
    .description =
	"Put the variables back to what they were before the last cells ran.\n"
	"Works after errors, timeouts, crashes and fresh=true too, as far as states "
	"are kept. Ends the kernel. Files, processes and the outside world are not "
	"undone.",
    .destructive = true,
    .args = {{"cells", ARG_NUMBER, false, 1, 1, "How many cells to go back."}},
    .output_schema = output_schema,
    .run = run_undo,
};

const struct tool tool_restore = {
    .name = "restore",
    .needs_states = true,
    .title = "Restore a state",
    .icon = ICON_CLOCK,
    .description =
	"Put the variables back to what they were after a given cell.\n"
	"If that cell has no saved state of its own, the newest one before it is "
	"used, and named. Files and the outside world stay as they are.",
    .destructive = true,
    .idempotent = true,
    .args = {{"cell", ARG_NUMBER, true, 0, 1,
	      "Number of the cell, as in Out[n] and history."}},
    .output_schema = output_schema,
    .run = run_restore,
};

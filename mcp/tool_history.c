// SPDX-License-Identifier: MIT
/* history and diff - what ran in the workspace, and what differs between two states. */
#include <math.h>
#include <string.h>

#include "kernelmgr/files.h"
#include "mcp/icons.h"
#include "mcp/tools.h"
#include "wire/json.h"
#include "wire/utf8.h"
#include "wire/words.h"

enum {
	NAMES_SHOWN = 8, /* of each kind in a row */
	NAME_SHOWN = 40,
	CODE_SHOWN = 60,
};

/* ---- history ---- */

/* "+a,b ~c -d": added, changed, removed. */
static void show_changes(struct buf *text, const json_t *row)
{
	static const struct {
		const char *key, *mark;
	} kinds[] = {{"added", "+"}, {"changed", "~"}, {"removed", "-"}};

	for (size_t k = 0; k < 3; k++) {
		const json_t *names = json_object_get(row, kinds[k].key);
		size_t count = json_array_size(names);

		for (size_t i = 0; i < count && i < NAMES_SHOWN; i++) {
			const char *name = json_string_value(json_array_get(names, i));

			if (i)
				buf_text(text, ",");
			else
				buf_printf(text, "  %s", kinds[k].mark);
			utf8_show_cut(text, name ? name : "?",
				      strlen(name ? name : "?"), NAME_SHOWN);
		}
		if (count > NAMES_SHOWN)
			buf_printf(text, ",+%zu more", count - NAMES_SHOWN);
	}
}

static void show_verified(struct buf *text, const json_t *row)
{
	const json_t *names = json_object_get(row, "not_loading");
	size_t count = json_array_size(names);

	if (!json_is_true(json_object_get(row, "verified")))
		return;
	buf_text(text, ", verified");
	for (size_t i = 0; i < count && i < NAMES_SHOWN; i++) {
		const char *name = json_string_value(json_array_get(names, i));

		buf_text(text, i ? ", " : "; not loading: ");
		utf8_show_cut(text, name ? name : "?", strlen(name ? name : "?"),
			      NAME_SHOWN);
	}
	if (count > NAMES_SHOWN)
		buf_printf(text, ", +%zu more", count - NAMES_SHOWN);
}

static void show_row(struct buf *text, const json_t *row)
{
	long long when = json_integer_of(row, "time", 0);
	const char *code = json_text(row, "code", "");
	char size[FILES_SIZE_TEXT], clock[TIME_TEXT] = "?";

	if (when)
		time_text(clock, when);
	buf_printf(text, "%s%lld  %s  ", text->size ? "\n" : "",
		   json_integer_of(row, "cell", 0), clock);
	if (json_object_get(row, "ms"))
		buf_printf(text, "%lld ms  ", json_integer_of(row, "ms", 0));
	buf_text(text, json_text(row, "outcome", "?"));
	show_changes(text, row);
	if (json_object_get(row, "generation")) {
		files_size_text(size, (uint64_t)json_integer_of(row, "bytes", 0));
		buf_printf(text, "  (%s saved", size);
		show_verified(text, row);
		buf_text(text, ")");
	}
	if (code[0]) {
		buf_text(text, "  | ");
		utf8_show_cut(text, code, strcspn(code, "\n"), CODE_SHOWN);
	}
}

/* True unless the helper could not do it; then the call is answered. */
static bool check_answer(struct tool_call *self, const json_t *answer)
{
	const char *error = json_text(answer, "error", NULL);
	struct err err;

	self->asking = false;
	if (!error)
		return true;
	err_set(&err, ERR_ARGUMENT, "%s", error);
	tool_fail(self, &err);
	return false;
}

static void on_history(const json_t *answer, void *arg)
{
	struct tool_call *self = arg;
	owned(buf_finish) struct buf text = {0};
	json_t *rows = json_object_get(answer, "rows"), *row;
	size_t i;

	if (!check_answer(self, answer))
		return;
	json_array_foreach(rows, i, row)
	{
		show_row(&text, row);
	}
	if (!text.size)
		buf_text(&text, "No cell has run in this workspace.");
	else
		buf_text(&text, "\n+ added, ~ changed, - removed; restore(cell) goes "
				"back to a saved one. Files are not part of it.");
	tool_finish(self, tool_result(self, text.data, text.size,
				      json_pack("{sO}", "cells", rows)));
}

static void ask(struct tool_call *self, json_t *job, store_done_fn *done)
{
	struct err err;

	self->asking = true;
	if (workspace_ask(self->workspace, job, done, self, &err) == 0)
		return;
	self->asking = false;
	tool_fail(self, &err);
}

static void run_history(struct tool_call *self, const struct arg_value *args)
{
	ask(self,
	    json_pack("{ss sI}", "do", "history", "cells",
		      (json_int_t)floor(args[0].number)),
	    on_history);
}

const struct tool tool_history = {
    .name = "history",
    .needs_states = true,
    .title = "History of cells",
    .icon = ICON_CLOCK,
    .description = "List the cells that ran: when they ended, how long, outcome, names "
		   "added, changed and "
		   "removed, and whether their state is saved.",
    .read_only = true,
    .idempotent = true,
    .args = {{"cells", ARG_NUMBER, false, 20, 1, "How many of the last ones."}},
    .output_schema =
	"{\"type\":\"object\",\"properties\":{\"cells\":{\"type\":\"array\",\"items\":"
	"{\"type\":\"object\",\"properties\":{\"cell\":{\"type\":\"integer\"},\"time\":"
	"{"
	"\"type\":\"integer\"},\"ms\":{\"type\":\"integer\"},\"outcome\":{\"type\":"
	"\"string\"},\"code\":{\"type\":\"string\"},\"generation\":{\"type\":"
	"\"integer\"},"
	"\"bytes\":{\"type\":\"integer\"},\"verified\":{\"type\":\"boolean\","
	"\"description\":\"a kernel has tried to load it\"},\"not_loading\":{"
	"\"type\":\"array\",\"items\":{\"type\":\"string\"}}}}}},\"required\":"
	"[\"cells\"]}",
    .run = run_history,
};

/* ---- diff ---- */

static void show_names(struct buf *text, const char *heading, const json_t *names)
{
	size_t i;
	json_t *row;
	char size[FILES_SIZE_TEXT];

	json_array_foreach(names, i, row)
	{
		const char *name = json_text(row, "name", "?");
		const char *type = json_text(row, "type", "?");

		files_size_text(size, (uint64_t)json_integer_of(row, "bytes", 0));
		buf_text(text, i ? ", " : heading);
		utf8_show_cut(text, name, strlen(name), NAME_SHOWN);
		buf_text(text, " (");
		utf8_show_cut(text, type, strlen(type), NAME_SHOWN);
		buf_printf(text, ", %s)", size);
	}
	if (json_array_size(names))
		buf_text(text, "\n");
}

static void on_diff(const json_t *answer, void *arg)
{
	struct tool_call *self = arg;
	owned(buf_finish) struct buf text = {0};
	json_t *added = json_object_get(answer, "added");
	json_t *changed = json_object_get(answer, "changed");
	json_t *removed = json_object_get(answer, "removed");
	long long from = json_integer_of(answer, "from", 0);
	long long to = json_integer_of(answer, "to", 0);

	if (!check_answer(self, answer))
		return;
	buf_printf(&text,
		   "From the state after cell %lld to the one after cell %lld:\n", from,
		   to);
	show_names(&text, "added: ", added);
	show_names(&text, "changed: ", changed);
	show_names(&text, "removed: ", removed);
	if (!json_array_size(added) && !json_array_size(changed) &&
	    !json_array_size(removed))
		buf_text(&text, "no variable differs\n");
	buf_text(&text, "Files are not compared.");
	tool_finish(self,
		    tool_result(self, text.data, text.size,
				json_pack("{sI sI sO sO sO}", "from", (json_int_t)from,
					  "to", (json_int_t)to, "added", added,
					  "changed", changed, "removed", removed)));
}

static void run_diff(struct tool_call *self, const struct arg_value *args)
{
	ask(self,
	    json_pack("{ss sI sI}", "do", "diff", "from",
		      (json_int_t)floor(args[0].number), "to",
		      (json_int_t)floor(args[1].number)),
	    on_diff);
}

#define NAMES "{\"type\":\"array\",\"items\":{\"type\":\"object\"}}"
const struct tool tool_diff = {
    .name = "diff",
    .needs_states = true,
    .title = "Compare two states",
    .icon = ICON_BRANCH,
    .description = "Name the variables that differ between the states after two cells.",
    .read_only = true,
    .idempotent = true,
    .args = {{"cell_a", ARG_NUMBER, true, 0, 1, "Number of the earlier cell."},
	     {"cell_b", ARG_NUMBER, true, 0, 1, "Number of the later cell."}},
    .output_schema =
	"{\"type\":\"object\",\"properties\":{\"from\":{\"type\":\"integer\"},\"to\":{"
	"\"type\":\"integer\"},\"added\":" NAMES ",\"changed\":" NAMES
	",\"removed\":" NAMES
	"},\"required\":[\"from\",\"to\",\"added\",\"changed\",\"removed\"]}",
    .run = run_diff,
};

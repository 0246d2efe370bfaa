// SPDX-License-Identifier: MIT
/* list_files - the files of the workspace with their sizes. */
#include <string.h>

#include "mcp/tools.h"
#include "wire/json.h"
#include "wire/words.h"

enum { LISTED_MAX = 500 };

static void add_row(struct buf *text, json_t *rows, const struct files_entry *entry)
{
	owned(buf_finish) struct buf name = {0};
	char size[FILES_SIZE_TEXT], when[TIME_TEXT];

	files_show_name(&name, entry->path);
	files_size_text(size, entry->size);
	time_text(when, entry->mtime_ns / 1000000000);
	buf_printf(text, "%s%s  %s  %s", text->size ? "\n" : "", buf_str(&name), size,
		   when);
	json_array_append_new(
	    rows, json_pack("{so sI ss}", "path",
			    json_string_lossy(buf_str(&name), name.size), "size",
			    (json_int_t)entry->size, "modified", when));
}

static void run(struct tool_call *self, const struct arg_value *args)
{
	owned(files_scan_finish) struct files_scan scan = {0};
	owned(buf_finish) struct buf text = {0};
	json_t *rows = json_array();
	struct err err;

	(void)args;
	if (files_scan(workspace_files(self->workspace), FILES_SCAN_LIMIT, &scan,
		       &err) < 0) {
		json_decref(rows);
		tool_fail(self, &err);
		return;
	}
	size_t shown = scan.count < LISTED_MAX ? scan.count : LISTED_MAX;
	for (size_t i = 0; i < shown; i++)
		add_row(&text, rows, &scan.entries[i]);
	if (!scan.count)
		buf_text(&text, "The workspace has no files.");
	if (scan.count > shown)
		buf_printf(&text,
			   "\n... and %zu%s more; list them with run_python (os.walk)",
			   scan.count - shown, scan.more ? "+" : "");
	tool_finish(self, tool_result(self, buf_str(&text), text.size,
				      json_pack("{so sI sb}", "files", rows, "count",
						(json_int_t)scan.count, "more",
						scan.more || scan.count > shown)));
}

const struct tool tool_list_files = {
    .name = "list_files",
    .title = "List files",
    .description = "List the files of the workspace with their sizes and times.\n"
		   "Hidden files and __pycache__ are left out.",
    .read_only = true,
    .idempotent = true,
    .output_schema =
	"{\"type\":\"object\",\"properties\":{\"files\":{\"type\":\"array\",\"items\":"
	"{\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\"},\"size\":"
	"{\"type\":\"integer\"},\"modified\":{\"type\":\"string\"}}}},\"count\":{"
	"\"type\":\"integer\"},\"more\":{\"type\":\"boolean\"}},\"required\":["
	"\"files\",\"count\",\"more\"]}",
    .run = run,
};

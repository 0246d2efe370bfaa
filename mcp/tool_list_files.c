// SPDX-License-Identifier: MIT
/* list_files - the files of the workspace with their sizes, and its folders. */
#include <string.h>

#include "mcp/icons.h"
#include "mcp/tools.h"
#include "mcp/uri.h"
#include "wire/json.h"
#include "wire/words.h"

enum { LISTED_MAX = 500, FOLDERS_MAX = 100 };

static void add_row(struct buf *text, json_t *rows, const char *workspace,
		    const struct files_entry *entry)
{
	owned(buf_finish) struct buf name = {0}, uri = {0};
	char size[FILES_SIZE_TEXT], when[TIME_TEXT];

	files_show_name(&name, entry->path);
	uri_of_path(&uri, workspace, entry->path);
	files_size_text(size, entry->size);
	time_text(when, entry->mtime_ns / 1000000000);
	buf_printf(text, "%s%s  %s  %s", text->size ? "\n" : "", buf_str(&name), size,
		   when);
	json_array_append_new(rows,
			      json_pack("{so sI ss ss}", "path",
					json_string_lossy(buf_str(&name), name.size),
					"size", (json_int_t)entry->size, "modified",
					when, "uri", buf_str(&uri)));
}

static size_t count_in(const struct files_scan *scan, const char *folder)
{
	size_t len = strlen(folder), count = 0;

	for (size_t i = 0; i < scan->count; i++) {
		const char *path = scan->entries[i].path;

		count += strncmp(path, folder, len) == 0 && path[len] == '/' &&
			 !strchr(path + len + 1, '/');
	}
	return count;
}

/* Caller owns. */
static json_t *add_folders(struct buf *text, const struct files_scan *scan)
{
	json_t *rows = json_array();

	for (size_t i = 0; i < scan->folder_count && i < FOLDERS_MAX; i++) {
		owned(buf_finish) struct buf name = {0};
		size_t count = count_in(scan, scan->folders[i]);

		files_show_name(&name, scan->folders[i]);
		buf_printf(text, "%s%s/ (%zu file%s)",
			   i ? ", " : "\nfolders: ", buf_str(&name), count,
			   plural_s(count));
		json_array_append_new(
		    rows, json_pack("{so sI}", "path",
				    json_string_lossy(buf_str(&name), name.size),
				    "files", (json_int_t)count));
	}
	if (scan->folder_count > FOLDERS_MAX)
		buf_printf(text, ", +%zu more", scan->folder_count - FOLDERS_MAX);
	return rows;
}

static void answer(struct tool_call *self, const struct files_scan *scan)
{
	owned(buf_finish) struct buf text = {0};
	owned(files_list_finish) struct files_list newest = {0};
	json_t *rows = json_array();

	files_newest(scan, &newest);
	size_t shown = newest.count < LISTED_MAX ? newest.count : LISTED_MAX;
	for (size_t i = 0; i < shown; i++)
		add_row(&text, rows, workspace_name(self->workspace), newest.at[i]);
	if (!scan->count)
		buf_text(&text, "The workspace has no files.");
	if (scan->more && scan->count == shown)
		buf_text(&text,
			 "\n... and others; list them with run_python (os.walk)");
	if (scan->count > shown)
		buf_printf(&text,
			   "\n... and %zu%s older; list them with run_python (os.walk)",
			   scan->count - shown, scan->more ? "+" : "");
	json_t *folders = add_folders(&text, scan);
	tool_finish(self,
		    tool_result(self, buf_str(&text), text.size,
				json_pack("{so so sI sb}", "files", rows, "folders",
					  folders, "count", (json_int_t)scan->count,
					  "more", scan->more || scan->count > shown)));
}

static void run(struct tool_call *self, const struct arg_value *args)
{
	owned(files_scan_finish) struct files_scan scan = {0};
	struct err err;

	(void)args;
	if (files_scan(workspace_files(self->workspace), FILES_SCAN_LIMIT, &scan,
		       &err) < 0)
		tool_fail(self, &err);
	else
		answer(self, &scan);
}

const struct tool tool_list_files = {
    .name = "list_files",
    .title = "List files",
    .icon = ICON_FOLDER,
    .description = "List the files of the workspace with their sizes and times, the "
		   "newest first, and its folders.\n"
		   "Hidden files and __pycache__ are left out.",
    .read_only = true,
    .idempotent = true,
    .output_schema =
	"{\"type\":\"object\",\"properties\":{\"files\":{\"type\":\"array\"},"
	"\"folders\":{\"type\":\"array\"},\"count\":{\"type\":\"integer\"},"
	"\"more\":{\"type\":\"boolean\"}},\"required\":[\"files\",\"folders\","
	"\"count\",\"more\"]}",
    .run = run,
};

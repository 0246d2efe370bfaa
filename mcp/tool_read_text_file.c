// SPDX-License-Identifier: MIT
/* read_text_file - the beginning of a text file in the workspace. */
#include <string.h>

#include "mcp/tools.h"
#include "wire/json.h"

enum { PATH, MAX_CHARS };
enum { BYTES_A_CHAR = 6 * 2 }; /* in JSON at worst; in the text and the structure */

static void run(struct tool_call *self, const struct arg_value *args)
{
	owned(files_text_finish) struct files_text file = {.cut = false};
	owned(buf_finish) struct buf text = {0};
	double most = (double)self->config->result_limit / BYTES_A_CHAR;
	double wanted = args[MAX_CHARS].number;
	struct err err;

	if (files_read_text(workspace_files(self->workspace), args[PATH].text,
			    args[PATH].size, 0, (size_t)(wanted < most ? wanted : most),
			    &file, &err) < 0) {
		tool_fail(self, &err);
		return;
	}
	buf_add(&text, buf_str(&file.text), file.text.size);
	if (file.cut)
		buf_printf(&text,
			   "\n[... the file goes on: %zu of its %llu bytes are shown; "
			   "read the rest with run_python ...]",
			   file.text.size, (unsigned long long)file.size);
	json_t *structure =
	    json_pack("{so so sI sb}", "path",
		      json_string_lossy(args[PATH].text, args[PATH].size), "text",
		      json_string_lossy(buf_str(&file.text), file.text.size), "size",
		      (json_int_t)file.size, "cut", file.cut);
	tool_finish(self, tool_result(self, buf_str(&text), text.size, structure));
}

const struct tool tool_read_text_file = {
    .name = "read_text_file",
    .title = "Read a text file",
    .description = "Read a text file of the workspace.\n"
		   "Paths are relative to the workspace and cannot leave it.",
    .read_only = true,
    .idempotent = true,
    .args = {[PATH] = {"path", ARG_TEXT, true, 0, 0,
		       "Path of the file, relative to the workspace."},
	     [MAX_CHARS] = {"max_chars", ARG_INTEGER, false, 10000, 1,
			    "Characters to return at most, from the start."}},
    .output_schema =
	"{\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\"},\"text\":"
	"{\"type\":\"string\"},\"size\":{\"type\":\"integer\",\"description\":\"bytes "
	"of the whole file\"},\"cut\":{\"type\":\"boolean\"}},\"required\":[\"path\","
	"\"text\",\"size\",\"cut\"]}",
    .run = run,
};

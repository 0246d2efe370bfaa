// SPDX-License-Identifier: MIT
/* read_text_file - a part of a text file, or of what shows a table or notebook. */
#include <string.h>

#include "mcp/icons.h"
#include "mcp/notebook.h"
#include "mcp/tools.h"
#include "wire/json.h"
#include "wire/mem.h"
#include "wire/utf8.h"

enum { PATH, MAX_CHARS, OFFSET };
enum {
	BYTES_A_CHAR = 6 * 2,   /* in JSON at worst; in the text and the structure */
	NOTEBOOK_MAX = 4 << 20, /* bytes; of a larger one the JSON is shown */
};

struct part { /* what is asked for, in characters */
	const char *path;
	size_t path_size, offset, max;
};

/* view: as what it is shown; "" for the text itself. */
static void answer(struct tool_call *self, const struct part *part,
		   const struct files_text *file, const char *view)
{
	owned(buf_finish) struct buf text = {0};

	buf_add(&text, buf_str(&file->text), file->text.size);
	if (file->cut)
		buf_printf(&text,
			   "\n[... it goes on: these are the characters %zu to %ju%s; "
			   "call again with offset=%ju ...]",
			   part->offset, (uintmax_t)file->next,
			   view[0] ? " of this view" : "", (uintmax_t)file->next);
	json_t *structure = json_pack(
	    "{so so sI sb sI ss* ss*}", "path",
	    json_string_lossy(part->path, part->path_size), "text",
	    json_string_lossy(buf_str(&file->text), file->text.size), "size",
	    (json_int_t)file->size, "cut", file->cut, "next", (json_int_t)file->next,
	    "encoding", file->coding, "view", view[0] ? view : NULL);
	tool_finish(self, tool_result(self, buf_str(&text), text.size, structure));
}

/* Takes the part that is asked for out of a whole view. */
static void answer_view(struct tool_call *self, const struct part *part,
			const struct buf *whole, uint64_t size, const char *view)
{
	owned(files_text_finish) struct files_text file = {.size = size};
	size_t start = utf8_prefix(buf_str(whole), whole->size, part->offset);
	size_t used =
	    utf8_prefix(buf_str(whole) + start, whole->size - start, part->max);

	buf_add(&file.text, buf_str(whole) + start, used);
	file.cut = start + used < whole->size;
	file.next = part->offset + utf8_count(buf_str(&file.text), file.text.size);
	answer(self, part, &file, view);
}

static void show_text(struct tool_call *self, const struct part *part)
{
	owned(files_text_finish) struct files_text file = {.cut = false};
	struct err err;

	if (files_read_text(workspace_files(self->workspace), part->path,
			    part->path_size, part->offset, part->max, &file, &err) < 0)
		tool_fail(self, &err);
	else
		answer(self, part, &file, "");
}

/* Its JSON is shown where it cannot be read as one. */
static void show_notebook(struct tool_call *self, const struct part *part)
{
	owned(buf_finish) struct buf bytes = {0}, text = {0};
	json_t *notebook = NULL;
	struct err err;

	bool shown =
	    files_read_bytes(workspace_files(self->workspace), part->path,
			     part->path_size, NOTEBOOK_MAX, &bytes, &err) == 0 &&
	    json_parse_lossy(&notebook, buf_str(&bytes), bytes.size, &err) == 0 &&
	    notebook_text(&text, notebook);
	json_decref(notebook);
	if (shown)
		answer_view(self, part, &text, bytes.size, "notebook");
	else
		show_text(self, part);
}

/* ---- tables ---- */

static struct part kept_part(const struct tool_call *self)
{
	const json_t *path = json_object_get(self->kept, "path");

	return (struct part){.path = json_string_value(path),
			     .path_size = json_string_length(path),
			     .offset = (size_t)json_integer_of(self->kept, "offset", 0),
			     .max = (size_t)json_integer_of(self->kept, "max", 0)};
}

static void on_viewed(const struct buf *text, const struct err *why, void *arg)
{
	struct tool_call *self = arg;
	struct part part = kept_part(self);
	struct err err;

	self->viewer = NULL;
	if (text) {
		answer_view(self, &part, text,
			    (uint64_t)json_integer_of(self->kept, "size", 0),
			    json_text(self->kept, "view", ""));
		return;
	}
	err_set(&err, ERR_ARGUMENT, "this %s file could not be shown: %.180s",
		json_text(self->kept, "view", ""), why->msg);
	tool_fail(self, &err);
}

static void show_table(struct tool_call *self, const struct part *part,
		       const char *view, uint64_t size)
{
	struct err err;

	if (part->offset + part->max > VIEWER_CHARS_MAX) {
		err_set(&err, ERR_ARGUMENT,
			"of a table the first %d characters are shown: read further "
			"with run_python",
			VIEWER_CHARS_MAX);
		tool_fail(self, &err);
		return;
	}
	self->kept =
	    json_pack("{ss% sI sI sI ss}", "path", part->path, part->path_size,
		      "offset", (json_int_t)part->offset, "max", (json_int_t)part->max,
		      "size", (json_int_t)size, "view", view);
	if (viewer_start(&self->viewer, self->workspace, part->path, view,
			 part->offset + part->max, on_viewed, self, &err) < 0)
		tool_fail(self, &err);
}

/* ---- the call ---- */

static size_t bounded(double wanted, double most)
{
	return (size_t)(wanted < most ? wanted : most);
}

static void run(struct tool_call *self, const struct arg_value *args)
{
	const struct part part = {
	    .path = args[PATH].text,
	    .path_size = args[PATH].size,
	    .offset = bounded(args[OFFSET].number, 1e15),
	    .max = bounded(args[MAX_CHARS].number,
			   (double)self->config->result_limit / BYTES_A_CHAR)};
	struct files_look look;
	struct err err;

	if (files_look(workspace_files(self->workspace), part.path, part.path_size,
		       &look, &err) < 0)
		tool_fail(self, &err);
	else if (look.kind && look.kind->view == FILES_NOTEBOOK)
		show_notebook(self, &part);
	else if (look.kind && look.kind->view == FILES_EXCEL)
		show_table(self, &part, "excel", look.size);
	else if (look.kind && look.kind->view == FILES_PARQUET)
		show_table(self, &part, "parquet", look.size);
	else
		show_text(self, &part);
}

const struct tool tool_read_text_file = {
    .name = "read_text_file",
    .title = "Read a text file",
    .icon = ICON_FILE,
    .description =
	"Read a text file of the workspace, or a notebook, Excel workbook or Parquet "
	"table as text.\n"
	"Other binary files are named and refused.",
    .read_only = true,
    .idempotent = true,
    .args = {[PATH] = {"path", ARG_PATH, true, 0, 0,
		       "Path of the file, relative to the workspace."},
	     [MAX_CHARS] = {"max_chars", ARG_INTEGER, false, 10000, 1,
			    "Characters to return at most."},
	     [OFFSET] = {"offset", ARG_INTEGER, false, 0, 0,
			 "Characters to leave out at the start."}},
    .output_schema =
	"{\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\"},\"text\":"
	"{\"type\":\"string\"},\"size\":{\"type\":\"integer\""
	"},\"cut\":{\"type\":\"boolean\"},\"next\":{\"type\":"
	"\"integer\"},\"encoding\":{"
	"\"type\":\"string\"},\"view\":{\"type\":\"string\"}},\"required\":[\"path\","
	"\"text\",\"size\",\"cut\",\"next\"]}",
    .run = run,
};

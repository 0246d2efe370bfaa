// SPDX-License-Identifier: MIT
/* write_file - puts a whole file into the workspace. */
#include <sodium.h>
#include <string.h>

#include "mcp/icons.h"
#include "mcp/tools.h"
#include "mcp/uri.h"
#include "wire/json.h"
#include "wire/mem.h"
#include "wire/words.h"

enum { PATH, CONTENT, ENCODING };

static int decode(struct buf *out, const struct arg_value *content, struct err *err)
{
	size_t size = 0;
	const char *end = NULL;
	char *room = buf_reserve(out, content->size + 1);

	if (sodium_base642bin((unsigned char *)room, content->size + 1, content->text,
			      content->size, "\r\n\t ", &size, &end,
			      sodium_base64_VARIANT_ORIGINAL) < 0 ||
	    end != content->text + content->size)
		return err_set(
		    err, ERR_ARGUMENT,
		    "content is no base64 from its character %zu on (A-Z a-z "
		    "0-9 + / with = at the end)",
		    end ? (size_t)(end - content->text) + 1 : 1);
	out->size += size;
	return 0;
}

static void answer(struct tool_call *self, const struct arg_value *path, size_t size,
		   bool created)
{
	owned(buf_finish) struct buf text = {0}, name = {0}, uri = {0};

	files_show_name(&name, path->text);
	uri_of_path(&uri, workspace_name(self->workspace), path->text);
	buf_printf(&text, "%s %s, %zu byte%s.", created ? "Wrote" : "Replaced",
		   buf_str(&name), size, plural_s(size));
	tool_finish(self,
		    tool_result(self, text.data, text.size,
				json_pack("{so sI sb ss}", "path",
					  json_string_lossy(path->text, path->size),
					  "size", (json_int_t)size, "created", created,
					  "uri", buf_str(&uri))));
}

/* Whether a file that is there may go: asked about those that somebody else wrote,
 * since what was in them is lost. */
static bool may_replace(struct tool_call *self, const struct arg_value *path)
{
	owned(buf_finish) struct buf message = {0};
	char size[FILES_SIZE_TEXT];
	struct files_look file;
	struct err err;

	if (files_look(workspace_files(self->workspace), path->text, path->size, &file,
		       &err) < 0 ||
	    workspace_wrote(self->workspace, &file))
		return true;
	files_size_text(size, file.size);
	buf_text(&message, "Replace the file ");
	files_show_name(&message, path->text);
	buf_printf(&message, " (%s)? What is in it now will be lost.", size);
	return tool_confirm(self, buf_str(&message),
			    json_pack("{sI sI}", "inode", (json_int_t)file.inode,
				      "mtime", (json_int_t)file.mtime_ns));
}

static void run(struct tool_call *self, const struct arg_value *args)
{
	const struct arg_value *content = &args[CONTENT], *encoding = &args[ENCODING];
	owned(buf_finish) struct buf bytes = {0};
	bool base64 = encoding->text[0] == 'b', created;
	struct err err;

	if (base64 && decode(&bytes, content, &err) < 0) {
		tool_fail(self, &err);
		return;
	}
	if (!may_replace(self, &args[PATH]))
		return;
	if (workspace_write(self->workspace, args[PATH].text, args[PATH].size,
			    base64 ? buf_str(&bytes) : content->text,
			    base64 ? bytes.size : content->size, &created, &err) < 0)
		tool_fail(self, &err);
	else
		answer(self, &args[PATH], base64 ? bytes.size : content->size, created);
}

const struct tool tool_write_file = {
    .name = "write_file",
    .title = "Write a file",
    .icon = ICON_PEN,
    .description = "Write a whole file of at most 2 MiB into the workspace; one of "
		   "that name is replaced, missing folders are made.",
    .destructive = true,
    .idempotent = true,
    .args = {[PATH] = {"path", ARG_PATH, true, 0, 0,
		       "Path of the file, relative to the workspace."},
	     [CONTENT] = {"content", ARG_TEXT, true, 0, 0, "What is to be in it."},
	     [ENCODING] = {"encoding", ARG_ENCODING, false, 0, 0,
			   "What content is: text, or the bytes in base64."}},
    .output_schema =
	"{\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\"},\"size\":"
	"{\"type\":\"integer\"},\"created\":{\"type\":\"boolean\",\"description\":"
	"\"false: one was replaced\"},\"uri\":{\"type\":\"string\"}},\"required\":["
	"\"path\",\"size\",\"created\",\"uri\"]}",
    .run = run,
};

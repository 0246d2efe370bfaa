// SPDX-License-Identifier: MIT
#include "mcp/resources.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernelmgr/files.h"
#include "mcp/conformance.h"
#include "mcp/uri.h"
#include "wire/base64.h"
#include "wire/json.h"
#include "wire/mem.h"
#include "wire/utf8.h"

enum {
	PAGE = 500,
	ENVELOPE = 8192, /* bytes of an answer that are not the file */
};

static json_t *refuse(struct rpc_refusal *error, int code)
{
	error->code = code;
	return NULL;
}

/* ---- list ---- */

static void add_age(json_t *row, const struct files_entry *entry)
{
	time_t when = (time_t)(entry->mtime_ns / 1000000000);
	char text[32];
	struct tm utc;

	gmtime_r(&when, &utc);
	strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
	json_object_set_new(row, "annotations",
			    json_pack("{ss}", "lastModified", text));
}

static json_t *row_of(const struct files_entry *entry, const struct resources_ask *ask)
{
	owned(buf_finish) struct buf uri = {0}, name = {0};
	const char *mime = files_mime_of_name(entry->path);

	uri_of_path(&uri, workspace_name(ask->workspace), entry->path);
	files_show_name(&name, entry->path);
	json_t *row = json_pack("{ss so ss* sI}", "uri", buf_str(&uri), "name",
				json_string_lossy(buf_str(&name), name.size),
				"mimeType", mime, "size", (json_int_t)entry->size);
	if (ask->revision >= MCP_2025_06_18)
		add_age(row, entry);
	return row;
}

/* The path that the page before ended with; "" for the first page. */
static int read_cursor(struct buf *out, const json_t *params, struct err *err)
{
	const json_t *cursor = json_object_get(params, "cursor");
	size_t length = json_string_length(cursor), size = 0;
	const char *end = NULL;

	if (!cursor)
		return 0;
	char *room = buf_reserve(out, 2 * PATH_MAX);
	if (!json_is_string(cursor) || !length || length > 2 * PATH_MAX ||
	    sodium_base642bin((unsigned char *)room, length, json_string_value(cursor),
			      length, NULL, &size, &end, BASE64_URL) < 0 ||
	    end != json_string_value(cursor) + length || memchr(room, '\0', size))
		return err_set(err, ERR_ARGUMENT,
			       "unknown cursor: give back nextCursor as it came");
	out->size += size;
	out->data[out->size] = '\0';
	return 0;
}

json_t *resources_list(const struct resources_ask *ask, struct rpc_refusal *error)
{
	owned(files_scan_finish) struct files_scan scan = {0};
	owned(buf_finish) struct buf after = {0};
	size_t first = 0;

	if (read_cursor(&after, ask->params, &error->err) < 0)
		return refuse(error, RPC_INVALID_PARAMS);
	if (files_scan(workspace_files(ask->workspace), FILES_SCAN_LIMIT, &scan,
		       &error->err) < 0)
		return refuse(error, RPC_INTERNAL_ERROR);
	/* By path, so that what comes and goes meanwhile moves nothing else. */
	while (first < scan.count &&
	       strcmp(scan.entries[first].path, buf_str(&after)) <= 0)
		first++;
	json_t *rows = json_array(), *result = json_pack("{so}", "resources", rows);
	size_t end = scan.count - first > PAGE ? first + PAGE : scan.count;
	if (ask->config->conformance && !after.size)
		conformance_list_resources(rows);
	for (size_t i = first; i < end; i++)
		json_array_append_new(rows, row_of(&scan.entries[i], ask));
	if (end < scan.count)
		json_object_set_new(result, "nextCursor",
				    base64_json(scan.entries[end - 1].path,
						strlen(scan.entries[end - 1].path),
						BASE64_URL));
	return result;
}

/* ---- read ---- */

static bool is_text(const struct buf *bytes)
{
	return !memchr(buf_str(bytes), '\0', bytes->size) &&
	       utf8_valid_up_to(buf_str(bytes), bytes->size) == bytes->size;
}

static size_t size_in_json(const struct buf *text)
{
	size_t size = text->size;

	for (size_t i = 0; i < text->size; i++) {
		unsigned char byte = (unsigned char)text->data[i];

		size += byte < 0x20 ? 5 : byte == '"' || byte == '\\' ? 1 : 0;
	}
	return size;
}

static const char *mime_of(const char *path, const struct buf *bytes, bool text)
{
	const struct files_kind *kind =
	    files_kind_of(path, strlen(path), buf_str(bytes),
			  bytes->size < FILES_HEAD ? bytes->size : FILES_HEAD);
	const char *mime = text ? files_mime_of_text(path) : NULL;

	if (kind)
		return kind->mime;
	if (text)
		return mime ? mime : "text/plain";
	return "application/octet-stream";
}

static size_t limit_of(const struct resources_ask *ask)
{
	return (size_t)ask->config->result_limit;
}

static json_t *contents(const struct resources_ask *ask, const json_t *uri,
			const char *path, const struct buf *bytes)
{
	bool text = is_text(bytes);
	json_t *item =
	    json_pack("{sO ss}", "uri", uri, "mimeType", mime_of(path, bytes, text));

	/* A text that JSON would blow up over the limit goes as bytes. */
	if (text && size_in_json(bytes) + ENVELOPE <= limit_of(ask))
		json_object_set_new(item, "text",
				    json_stringn(buf_str(bytes), bytes->size));
	else
		json_object_set_new(
		    item, "blob",
		    base64_json(buf_str(bytes), bytes->size, BASE64_PLAIN));
	return json_pack("{s[o]}", "contents", item);
}

/* What the argument's fault is, is not there; the rest is another matter. */
static int code_of(enum err_kind kind, enum mcp_revision revision)
{
	if (kind != ERR_ARGUMENT)
		return RPC_INTERNAL_ERROR;
	return revision >= MCP_STATELESS ? RPC_INVALID_PARAMS : RPC_NO_RESOURCE;
}

json_t *resources_read(const struct resources_ask *ask, struct rpc_refusal *error)
{
	json_t *uri = json_object_get(ask->params, "uri");
	size_t max = (limit_of(ask) - ENVELOPE) / 4 * 3;
	owned(buf_finish) struct buf branch = {0}, path = {0}, bytes = {0};
	struct workspace *workspace;

	if (!json_is_string(uri)) {
		err_set(&error->err, ERR_REQUEST,
			"params.uri is missing; resources are " URI_START "/PATH");
		return refuse(error, RPC_INVALID_PARAMS);
	}
	json_t *fixture =
	    ask->config->conformance ? conformance_read(json_string_value(uri)) : NULL;
	if (fixture)
		return json_pack("{s[o]}", "contents", fixture);
	if (!uri_to_path(&branch, &path, json_string_value(uri),
			 json_string_length(uri)) ||
	    (branch.size && !ask->branches))
		err_set(&error->err, ERR_ARGUMENT,
			"no resource has this URI; they are " URI_START "/PATH");
	else if (workspaces_branch(ask->workspaces, ask->workspace, buf_str(&branch),
				   &workspace, &error->err) == 0 &&
		 files_read_bytes(workspace_files(workspace), buf_str(&path), path.size,
				  max, &bytes, &error->err) == 0)
		return contents(ask, uri, buf_str(&path), &bytes);
	error->data = json_pack("{sO}", "uri", uri);
	return refuse(error, code_of(error->err.kind, ask->revision));
}

/* ---- templates ---- */

json_t *resources_templates(const struct resources_ask *ask, struct rpc_refusal *error)
{
	if (json_object_get(ask->params, "cursor")) {
		err_set(&error->err, ERR_ARGUMENT,
			"unknown cursor: resources/templates/list has one page");
		return refuse(error, RPC_INVALID_PARAMS);
	}
	json_t *rows = json_pack(
	    "[{ss ss ss}]", "uriTemplate", URI_TEMPLATE, "name", "file", "description",
	    "A file of the workspace by its path; what is no UTF-8 text comes as "
	    "base64.");
	if (ask->config->conformance)
		conformance_list_templates(rows);
	if (ask->branches)
		json_array_append_new(
		    rows, json_pack("{ss ss ss}", "uriTemplate", URI_BRANCH_TEMPLATE,
				    "name", "file of a branch", "description",
				    "The same of a branch, by its name."));
	return json_pack("{so}", "resourceTemplates", rows);
}

// SPDX-License-Identifier: MIT
#include "mcp/render.h"

#include <stdlib.h>
#include <string.h>

#include "mcp/saved.h"
#include "mcp/uri.h"
#include "wire/base64.h"
#include "wire/buf.h"
#include "wire/json.h"
#include "wire/mem.h"
#include "wire/utf8.h"
#include "wire/words.h"

enum {
	NAME_SHOWN = 64,    /* characters of one name in the footer */
	SUMMARY_SHOWN = 80, /* of what it is */
	VARS_SHOWN = 40,    /* names in the footer; the structure has NAMES_MAX */
	VARS_BYTES = 1500,  /* of the footer's line of names */
	NAMES_MAX = 200,
	FILES_SHOWN = 8, /* new files in the footer; the structure has FILES_MAX */
	FILES_MAX = 100,
	NEWEST_SHOWN = 5,
};

/* Short: clients may put it before the model, and pay for it, in every request. */
#define TEXT "{\"type\":\"string\"}"
#define COUNT "{\"type\":\"integer\"}"
#define LIST "{\"type\":\"array\"}"
#define OBJECT "{\"type\":\"object\"}"
const char render_schema[] =
    "{\"type\":\"object\",\"properties\":{"
    "\"exit_code\":{\"anyOf\":[" COUNT
    ",{\"type\":\"null\"}],\"description\":\"null still "
    "running, 0 success, 1 exception, n sys.exit(n), 124 timeout, 125 not run, 130 "
    "cancelled, 128+n signal n\"},"
    "\"end\":" TEXT ",\"notice\":" TEXT ",\"stdout\":" TEXT ",\"stderr\":" TEXT
    ",\"result\":" TEXT ",\"error\":{\"anyOf\":[{\"type\":\"null\"}," OBJECT
    "]},\"earlier_output\":" TEXT ",\"images\":" LIST ",\"files\":" LIST
    ",\"duration_ms\":" COUNT ",\"execution_count\":" COUNT ",\"state\":" OBJECT
    "},\"required\":[\"exit_code\",\"end\",\"notice\",\"stdout\",\"stderr\","
    "\"result\",\"error\",\"images\",\"files\",\"duration_ms\",\"state\"]}";

static const char *const end_names[] = {
    [CALL_OK] = "ok",
    [CALL_ERROR] = "error",
    [CALL_TIMED_OUT] = "timed_out",
    [CALL_CANCELLED] = "cancelled",
    [CALL_KILLED] = "killed",
    [CALL_KERNEL_DIED] = "kernel_died",
    [CALL_NOT_RUN] = "not_run",
    [CALL_GOES_ON] = "running",
};

/* What both forms of the answer show. */
struct parts {
	struct buf out, err, result, traceback, error_value;
};

static void parts_finish(struct parts *self)
{
	buf_finish(&self->out);
	buf_finish(&self->err);
	buf_finish(&self->result);
	buf_finish(&self->traceback);
	buf_finish(&self->error_value);
}

static void parts_init(struct parts *self, const struct outputs *outputs)
{
	*self = (struct parts){0};
	outputs_out(outputs, &self->out);
	outputs_err(outputs, &self->err);
	clip_render(&outputs->result, &self->result);
	clip_render(&outputs->traceback, &self->traceback);
	if (outputs->error_value) {
		struct clip value = {.limit = 2 * CLIP_HEAD};

		clip_add(&value, outputs->error_value, strlen(outputs->error_value));
		clip_render(&value, &self->error_value);
		clip_finish(&value);
	}
}

static bool is_system_exit(const struct outputs *outputs)
{
	return outputs->error_name && strcmp(outputs->error_name, "SystemExit") == 0;
}

/* True for an outcome whose exception is worth showing. */
static bool shows_error(const struct outcome *outcome)
{
	return outcome->outputs->error_name && !is_system_exit(outcome->outputs);
}

static bool is_error(const struct outcome *outcome)
{
	return outcome->end != CALL_OK && outcome->end != CALL_GOES_ON;
}

/* ---- text ---- */

/* One section that starts on a line of its own. */
static void add_section(struct buf *text, const char *heading, const struct buf *body)
{
	if (!body->size)
		return;
	if (text->size && text->data[text->size - 1] != '\n')
		buf_text(text, "\n");
	buf_text(text, heading);
	buf_add(text, buf_str(body), body->size);
}

static void add_headline(struct buf *text, const struct outcome *outcome,
			 const struct parts *parts)
{
	const struct outputs *outputs = outcome->outputs;

	if (!is_error(outcome))
		return;
	if (shows_error(outcome) && outcome->end == CALL_ERROR)
		buf_printf(text, "Error: %s: %.*s (exit code %d)\n",
			   outputs->error_name,
			   (int)strcspn(buf_str(&parts->error_value), "\n"),
			   buf_str(&parts->error_value), outcome->exit_code);
	else
		buf_printf(text, "%s %d.\n",
			   outcome->end == CALL_NOT_RUN ? "Not run: exit code"
							: "Exit code",
			   outcome->exit_code);
}

static void add_result(struct buf *text, const struct outcome *outcome,
		       const struct parts *parts)
{
	owned(buf_finish) struct buf heading = {0};
	bool lines = memchr(buf_str(&parts->result), '\n', parts->result.size) != NULL;

	buf_printf(&heading, "Out[%lld]:%s", outcome->outputs->execution_count,
		   lines ? "\n" : " ");
	add_section(text, buf_str(&heading), &parts->result);
}

/* Why a picture is not shown, or NULL. */
static const char *hidden(const struct picture *picture, const struct outcome *outcome,
			  const struct render_options *options)
{
	if (!picture->problem && options->plain_errors && is_error(outcome))
		return "this client shows none beside an error";
	return picture->problem;
}

static void add_picture_words(struct buf *text, const struct outcome *outcome,
			      const struct render_options *options)
{
	owned(buf_finish) struct buf words = {0};

	for (size_t i = 0; i < outcome->picture_count; i++) {
		const struct picture *picture = &outcome->pictures[i];

		const char *why = hidden(picture, outcome, options);

		if (!why)
			continue;
		buf_text(&words, "Picture ");
		if (picture->path)
			files_show_name(&words, picture->path);
		else
			buf_printf(&words, "%zu", i + 1);
		buf_printf(&words, " is not shown: %s.\n", why);
	}
	if (outcome->pictures_left_out)
		buf_printf(
		    &words, "%zu %spicture%s not shown (VIVARIUM_MAX_IMAGES)%s.\n",
		    outcome->pictures_left_out, outcome->picture_count ? "more " : "",
		    outcome->pictures_left_out == 1 ? " is" : "s are",
		    outcome->picture_count ? ""
					   : "; to keep pictures, save them as files");
	add_section(text, "", &words);
}

static void build_text(struct buf *text, const struct outcome *outcome,
		       const struct parts *parts, const struct render_options *options)
{
	struct buf late = {.data = (char *)(uintptr_t)outcome->late,
			   .size = strlen(outcome->late)};

	buf_add(text, outcome->notice, outcome->notice_before);
	/* What went wrong comes before the output: some clients show nothing else. */
	add_headline(text, outcome, parts);
	buf_text(text, options->preface);
	buf_text(text, outcome->notice + outcome->notice_before);
	add_section(text, "Output that came after the cell before this one:\n", &late);
	add_section(text, "", &parts->out);
	add_section(text, "stderr:\n", &parts->err);
	add_result(text, outcome, parts);
	if (shows_error(outcome))
		add_section(text, "", &parts->traceback);
	add_picture_words(text, outcome, options);
	while (text->size && text->data[text->size - 1] == '\n')
		text->data[--text->size] = '\0';
	if (!text->size)
		buf_text(text, "(no output)");
}

/* ---- the footer ---- */

/* What the next call will find: nothing when the kernel is on its way out. */
static const json_t *summary_of(const struct outcome *outcome,
				const struct render_options *options)
{
	const json_t *summary = outcome->outputs->summary;

	if (options->stateless)
		return NULL;
	return json_is_true(json_object_get(summary, "exiting")) ? NULL : summary;
}

/* Text from the kernel on one line, at most max characters of it. */
static void show_cut(struct buf *out, const json_t *value, size_t max)
{
	const char *text = json_string_value(value);

	utf8_show_cut(out, text ? text : "", json_string_length(value), max);
}

static void add_vars(struct buf *text, const json_t *summary)
{
	const json_t *vars = json_object_get(summary, "vars");
	size_t total = json_array_size(vars), shown = 0, start = text->size;

	for (; shown < total && shown < VARS_SHOWN; shown++) {
		const json_t *row = json_array_get(vars, shown);

		if (text->size - start > VARS_BYTES)
			break;
		buf_text(text, shown ? "  " : "vars: ");
		show_cut(text, json_array_get(row, 0), NAME_SHOWN);
		buf_text(text, " ");
		show_cut(text, json_array_get(row, 1), SUMMARY_SHOWN);
	}
	size_t more = total - shown + json_count_of(summary, "more_vars");
	if (more)
		buf_printf(text, "%s+%zu more", shown ? "  " : "vars: ", more);
	if (text->size > start)
		buf_text(text, "\n");
}

static void add_imports(struct buf *text, const json_t *summary)
{
	const json_t *modules = json_object_get(summary, "modules");
	size_t total = json_array_size(modules), start = text->size, shown = 0;

	for (; shown < total && shown < VARS_SHOWN; shown++) {
		const json_t *row = json_array_get(modules, shown);
		const char *alias = json_string_value(json_array_get(row, 0));
		const char *name = json_string_value(json_array_get(row, 1));

		if (!alias || !name || text->size - start > VARS_BYTES)
			break;
		buf_text(text, shown ? "  " : "already imported (do not re-import): ");
		show_cut(text, json_array_get(row, 0), NAME_SHOWN);
		if (strcmp(alias, name) != 0) {
			buf_text(text, "=");
			show_cut(text, json_array_get(row, 1), NAME_SHOWN);
		}
	}
	size_t more = total - shown + json_count_of(summary, "more_modules");
	if (shown && more)
		buf_printf(text, "  +%zu more", more);
	if (text->size > start)
		buf_text(text, "\n");
}

static void add_background(struct buf *text, const json_t *summary)
{
	size_t children = json_count_of(summary, "children");
	size_t threads = json_count_of(summary, "threads");

	if (!children && !threads)
		return;
	buf_text(text, "still running: ");
	if (children)
		buf_printf(text, "%zu child process%s", children,
			   children == 1 ? "" : "es");
	if (threads)
		buf_printf(text, "%s%zu thread%s", children ? ", " : "", threads,
			   plural_s(threads));
	buf_text(text, "\n");
}

static void build_footer(struct buf *text, const struct outcome *outcome,
			 const struct render_options *options)
{
	const json_t *summary = summary_of(outcome, options);

	buf_text(text, "--- state ---\n");
	add_vars(text, summary);
	add_imports(text, summary);
	saved_footer(text, summary);
	add_background(text, summary);
	if (outcome->wrote->count) {
		buf_text(text, "wrote: ");
		files_show_list(text, outcome->wrote, FILES_SHOWN);
		buf_text(text, "\n");
	}
	if (outcome->walls[0])
		buf_printf(text, "walls: %s\n", outcome->walls);
	buf_text(text, "workspace: ");
	files_show_summary(text, outcome->workspace, NEWEST_SHOWN);
}

/* ---- structure ---- */

static json_t *text_json(const struct buf *text)
{
	return json_string_lossy(buf_str(text), text->size);
}

/* {name: what it is} from the kernel's rows. */
static json_t *names_json(const json_t *rows)
{
	json_t *names = json_object();

	for (size_t i = 0; i < json_array_size(rows) && i < NAMES_MAX; i++) {
		const json_t *row = json_array_get(rows, i);
		owned(buf_finish) struct buf name = {0}, what = {0};

		show_cut(&name, json_array_get(row, 0), NAME_SHOWN);
		show_cut(&what, json_array_get(row, 1), SUMMARY_SHOWN);
		json_object_set_new(names, buf_str(&name), text_json(&what));
	}
	return names;
}

/* Links to them would be content blocks, too, but LibreChat shows a model those as
 * JSON. */
static json_t *files_json(const struct files_list *list, const char *workspace)
{
	json_t *files = json_array();

	for (size_t i = 0; i < list->count && i < FILES_MAX; i++) {
		owned(buf_finish) struct buf name = {0}, uri = {0};

		files_show_name(&name, list->at[i]->path);
		uri_of_path(&uri, workspace, list->at[i]->path);
		json_array_append_new(files,
				      json_pack("{so sI so}", "path", text_json(&name),
						"size", (json_int_t)list->at[i]->size,
						"uri", text_json(&uri)));
	}
	return files;
}

static json_t *images_json(const struct outcome *outcome,
			   const struct render_options *options)
{
	json_t *images = json_array();

	for (size_t i = 0; i < outcome->picture_count; i++) {
		owned(buf_finish) struct buf name = {0};

		if (!outcome->pictures[i].png ||
		    hidden(&outcome->pictures[i], outcome, options))
			continue;
		if (outcome->pictures[i].path)
			files_show_name(&name, outcome->pictures[i].path);
		else
			buf_printf(&name, "(figure %zu)", i + 1);
		json_array_append_new(images, text_json(&name));
	}
	return images;
}

static json_t *error_json(const struct outcome *outcome, const struct parts *parts)
{
	if (!outcome->outputs->error_name)
		return json_null();
	return json_pack("{so so so}", "name",
			 json_string_lossy(outcome->outputs->error_name,
					   strlen(outcome->outputs->error_name)),
			 "message", text_json(&parts->error_value), "traceback",
			 text_json(&parts->traceback));
}

/* NULL: nothing. */
static json_t *background_json(const json_t *summary)
{
	size_t children = json_count_of(summary, "children");
	size_t threads = json_count_of(summary, "threads");

	if (!children && !threads)
		return NULL;
	return json_pack("{sI sI}", "child_processes", (json_int_t)children, "threads",
			 (json_int_t)threads);
}

static json_t *build_structure(const struct outcome *outcome, const struct parts *parts,
			       const struct render_options *options)
{
	const struct outputs *outputs = outcome->outputs;
	const json_t *summary = summary_of(outcome, options);
	owned(buf_finish) struct buf notice = {0};

	buf_text(&notice, options->preface);
	buf_text(&notice, outcome->notice);
	json_t *state = json_pack(
	    "{so sI so si}", "vars", names_json(json_object_get(summary, "vars")),
	    "more_vars", (json_int_t)json_count_of(summary, "more_vars"), "imports",
	    names_json(json_object_get(summary, "modules")), "workspace_files",
	    (int)outcome->workspace->count);
	json_object_set_new(state, "namespace", saved_json(summary));
	json_object_set_new(state, "still_running", background_json(summary));
	if (outcome->walls[0])
		json_object_set_new(state, "walls", json_string(outcome->walls));
	return json_pack(
	    "{so ss so so so so so so so so sI sI so}", "exit_code",
	    outcome->end == CALL_GOES_ON ? json_null()
					 : json_integer(outcome->exit_code),
	    "end", end_names[outcome->end], "notice", text_json(&notice), "stdout",
	    text_json(&parts->out), "stderr", text_json(&parts->err), "result",
	    text_json(&parts->result), "error", error_json(outcome, parts),
	    "earlier_output", json_string_lossy(outcome->late, strlen(outcome->late)),
	    "images", images_json(outcome, options), "files",
	    files_json(outcome->wrote, options->workspace), "duration_ms",
	    (json_int_t)(outcome->duration_us / 1000), "execution_count",
	    (json_int_t)outputs->execution_count, "state", state);
}

/* ---- together ---- */

static void add_text(json_t *content, const struct buf *text)
{
	json_array_append_new(
	    content, json_pack("{ss so}", "type", "text", "text", text_json(text)));
}

static void add_image(json_t *content, const struct picture *picture)
{
	json_array_append_new(
	    content, json_pack("{ss so ss}", "type", "image", "data",
			       base64_json(picture->png, picture->size, BASE64_PLAIN),
			       "mimeType", "image/png"));
}

json_t *render_outcome(const struct outcome *outcome,
		       const struct render_options *options)
{
	owned(parts_finish) struct parts parts;
	owned(buf_finish) struct buf text = {0}, footer = {0};
	json_t *content = json_array();

	parts_init(&parts, outcome->outputs);
	build_text(&text, outcome, &parts, options);
	add_text(content, &text);
	for (size_t i = 0; i < outcome->picture_count; i++)
		if (outcome->pictures[i].png &&
		    !hidden(&outcome->pictures[i], outcome, options))
			add_image(content, &outcome->pictures[i]);
	if (options->footer && outcome->end != CALL_NOT_RUN) {
		build_footer(&footer, outcome, options);
		add_text(content, &footer);
	}
	json_t *result =
	    json_pack("{so sb}", "content", content, "isError", is_error(outcome));
	if (options->structure)
		json_object_set_new(result, "structuredContent",
				    build_structure(outcome, &parts, options));
	return result;
}

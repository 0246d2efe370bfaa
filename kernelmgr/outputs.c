// SPDX-License-Identifier: MIT
#include "kernelmgr/outputs.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "wire/json.h"
#include "wire/mem.h"

void outputs_init(struct outputs *self, size_t limit)
{
	*self = (struct outputs){
	    .limit = limit,
	    .err.kept.limit = limit,
	    .result.limit = limit,
	    .traceback.limit = limit,
	};
}

static void display_finish(struct display *self)
{
	free(self->png);
	free(self->id);
	free(self->saved);
}

/* Streams and displays; not the value, nor an error. */
static void clear(struct outputs *self)
{
	for (size_t i = 0; i < self->piece_count; i++) {
		free(self->pieces[i].id);
		screen_finish(&self->pieces[i].text);
	}
	for (size_t i = 0; i < self->display_count; i++)
		display_finish(&self->displays[i]);
	screen_finish(&self->err);
	self->err.kept.limit = self->limit;
	self->piece_count = self->display_count = self->display_bytes = 0;
	self->displays_dropped = 0;
	self->clear_next = false;
}

void outputs_finish(struct outputs *self)
{
	clear(self);
	clip_finish(&self->result);
	clip_finish(&self->traceback);
	free(self->error_name);
	free(self->error_value);
	json_decref(self->summary);
	*self = (struct outputs){0};
}

/* ---- text ---- */

static void add_json_text(struct clip *clip, const json_t *text)
{
	if (json_is_string(text))
		clip_add(clip, json_string_value(text), json_string_length(text));
}

/* A new piece; the last one there can be has no id and takes all that follows. */
static struct screen *add_piece(struct outputs *self, const char *id)
{
	if (self->piece_count)
		screen_settle(&self->pieces[self->piece_count - 1].text);
	if (self->piece_count == PIECES_MAX - 1)
		id = NULL;
	if (self->piece_count < PIECES_MAX)
		self->pieces[self->piece_count++] =
		    (struct piece){.id = xstrdup(id), .text.kept.limit = self->limit};
	return &self->pieces[self->piece_count - 1].text;
}

/* The piece that the next text of nobody in particular goes to. */
static struct screen *open_piece(struct outputs *self)
{
	struct piece *last =
	    &self->pieces[self->piece_count ? self->piece_count - 1 : 0];

	return self->piece_count && !last->id ? &last->text : add_piece(self, NULL);
}

void outputs_add_rest(struct outputs *self, bool is_err, const char *text, size_t size,
		      size_t lost)
{
	struct screen *screen = is_err ? &self->err : open_piece(self);

	screen_add(screen, text, size);
	screen->kept.total += lost; /* what is left out counts too */
}

void outputs_out(const struct outputs *self, struct buf *out)
{
	struct clip all = {.limit = self->limit};

	if (self->piece_count == 1) {
		screen_render(&self->pieces[0].text, out);
		return;
	}
	for (size_t i = 0; i < self->piece_count; i++) {
		owned(buf_finish) struct buf text = {0};

		screen_render(&self->pieces[i].text, &text);
		clip_add(&all, buf_str(&text), text.size);
	}
	clip_render(&all, out);
	clip_finish(&all);
}

void outputs_err(const struct outputs *self, struct buf *out)
{
	screen_render(&self->err, out);
}

/* ---- what is in a bundle ---- */

/* Its text, in the form that says most without a browser.  Our own kernels have put
 * that into text/plain; others may leave it out. */
static void bundle_text(const json_t *bundle, struct buf *out)
{
	static const char *const types[] = {"text/plain", "text/markdown", "text/latex",
					    "text/html"};
	const json_t *json = json_object_get(bundle, "application/json");

	for (size_t i = 0; i < COUNT_OF(types); i++) {
		const json_t *text = json_object_get(bundle, types[i]);

		if (i == COUNT_OF(types) - 1 && json)
			break; /* rather than a page */
		if (json_is_string(text)) {
			buf_add(out, json_string_value(text), json_string_length(text));
			return;
		}
	}
	owned(free_text) char *text =
	    json ? json_dumps(json, JSON_ENCODE_ANY | JSON_INDENT(1)) : NULL;
	if (text)
		buf_text(out, text);
}

/* Decodes a picture; NULL and counted as dropped when it is too large. */
static unsigned char *decode_picture(struct outputs *self, const json_t *base64,
				     size_t *size)
{
	size_t length = json_string_length(base64);
	size_t room = length / 4 * 3 + 3;

	if (self->display_bytes + room > DISPLAY_BYTES_MAX) {
		self->displays_dropped++;
		return NULL;
	}
	unsigned char *png = xcalloc(1, room);
	if (sodium_base642bin(png, room, json_string_value(base64), length, "\r\n ",
			      size, NULL, sodium_base64_VARIANT_ORIGINAL) < 0)
		*size = 0; /* the image helper says that it is no picture */
	return png;
}

static void add_picture(struct outputs *self, const json_t *base64, const char *id,
			const char *saved)
{
	size_t size;

	if (self->display_count == DISPLAYS_MAX) {
		self->displays_dropped++;
		return;
	}
	unsigned char *png = decode_picture(self, base64, &size);
	if (!png)
		return;
	self->displays[self->display_count++] = (struct display){
	    .png = png, .size = size, .id = xstrdup(id), .saved = xstrdup(saved)};
	self->display_bytes += size;
}

/* ---- displays ---- */

static bool is_id(const char *id, const char *other)
{
	return id && other && strcmp(id, other) == 0;
}

void outputs_drop_display(struct outputs *self, size_t index)
{
	struct display *at = &self->displays[index];

	self->display_bytes -= at->size;
	display_finish(at);
	self->display_count--;
	memmove(at, at + 1, (self->display_count - index) * sizeof *at);
}

/* Takes what a display shows away; its place stays.  True if there was one. */
static bool empty_display(struct outputs *self, const char *id)
{
	bool found = false;

	for (size_t i = 0; i < self->piece_count; i++) {
		if (!is_id(self->pieces[i].id, id))
			continue;
		screen_finish(&self->pieces[i].text);
		self->pieces[i].text.kept.limit = self->limit;
		found = true;
	}
	for (size_t i = self->display_count; i > 0; i--)
		if (is_id(self->displays[i - 1].id, id))
			outputs_drop_display(self, i - 1);
	return found;
}

/* Text that stands on lines of its own. */
static void add_lines(struct screen *screen, const struct buf *text)
{
	screen_settle(screen);
	screen_add(screen, buf_str(text), text->size);
	screen_settle(screen);
}

/* A display of this cell, or an update: to one of this cell, which changes in its
 * place, or to one of a cell before, which is shown anew. */
static void add_display(struct outputs *self, const json_t *content, bool is_update)
{
	const json_t *bundle = json_object_get(content, "data");
	const json_t *png = json_object_get(bundle, "image/png");
	const json_t *ours =
	    json_object_get(json_object_get(content, "metadata"), "vivarium");
	const char *id =
	    json_text(json_object_get(content, "transient"), "display_id", NULL);
	bool there = id && is_update && empty_display(self, id);
	owned(buf_finish) struct buf text = {0};

	if (json_is_string(png))
		add_picture(self, png, id, json_text(ours, "saved", NULL));
	else
		bundle_text(bundle, &text);
	for (size_t i = 0; there && i < self->piece_count; i++)
		if (is_id(self->pieces[i].id, id))
			add_lines(&self->pieces[i].text, &text);
	if (there || (id && is_update && self->piece_count == PIECES_MAX))
		return;
	if (id)
		add_lines(add_piece(self, id), &text);
	else if (text.size)
		add_lines(open_piece(self), &text);
}

/* To the value: what comes with the reply may overtake the streams. */
static void add_text(struct outputs *self, const json_t *bundle)
{
	owned(buf_finish) struct buf text = {0};

	bundle_text(bundle, &text);
	clip_end_line(&self->result);
	clip_add(&self->result, buf_str(&text), text.size);
}

static void add_result(struct outputs *self, const json_t *content)
{
	const json_t *bundle = json_object_get(content, "data");
	const json_t *png = json_object_get(bundle, "image/png");
	const json_t *ours =
	    json_object_get(json_object_get(content, "metadata"), "vivarium");

	if (json_is_string(png))
		add_picture(self, png, NULL, json_text(ours, "saved", NULL));
	else
		add_text(self, bundle);
}

static void add_error(struct outputs *self, const json_t *content)
{
	const json_t *lines = json_object_get(content, "traceback"), *line;
	size_t i;

	free(self->error_name);
	free(self->error_value);
	self->error_name = xstrdup(json_text(content, "ename", "Error"));
	self->error_value = xstrdup(json_text(content, "evalue", ""));
	clip_finish(&self->traceback);
	self->traceback = (struct clip){.limit = self->traceback.limit};
	json_array_foreach(lines, i, line)
	{
		add_json_text(&self->traceback, line);
		clip_end_line(&self->traceback);
	}
}

static void add_stream(struct outputs *self, const json_t *content)
{
	const json_t *text = json_object_get(content, "text");

	if (json_is_string(text))
		outputs_add_rest(self,
				 strcmp(json_text(content, "name", ""), "stderr") == 0,
				 json_string_value(text), json_string_length(text), 0);
}

static void note_status(struct outputs *self, const json_t *content)
{
	const char *state = json_text(content, "execution_state", "");

	self->busy = self->busy || strcmp(state, "busy") == 0;
	self->idle = self->idle || strcmp(state, "idle") == 0;
}

/* True for a broadcast that a notebook would show in the cell. */
static bool is_output(const char *type)
{
	return strcmp(type, "stream") == 0 || strcmp(type, "display_data") == 0 ||
	       strcmp(type, "execute_result") == 0 || strcmp(type, "error") == 0;
}

void outputs_add(struct outputs *self, const struct jmsg *message)
{
	const json_t *content = message->content;
	const char *type = message->type;

	if (self->clear_next && is_output(type))
		clear(self);
	if (strcmp(type, "stream") == 0) {
		add_stream(self, content);
	} else if (strcmp(type, "execute_input") == 0 && !self->replied) {
		/* The reply knows better: other kernels do not count an empty cell. */
		self->execution_count = json_integer_of(content, "execution_count", 0);
	} else if (strcmp(type, "execute_result") == 0) {
		add_result(self, content);
	} else if (strcmp(type, "display_data") == 0) {
		add_display(self, content, false);
	} else if (strcmp(type, "update_display_data") == 0) {
		add_display(self, content, true);
	} else if (strcmp(type, "clear_output") == 0) {
		if (json_is_true(json_object_get(content, "wait")))
			self->clear_next = true;
		else
			clear(self);
	} else if (strcmp(type, "error") == 0) {
		add_error(self, content);
	} else if (strcmp(type, "status") == 0) {
		note_status(self, content);
	}
}

/* What IPython hands to a pager or the next cell, as print? and %load do: there is
 * neither, so it is shown. */
static void add_payload(struct outputs *self, const json_t *payload)
{
	const char *source = json_text(payload, "source", "");

	if (strcmp(source, "page") == 0) {
		add_text(self, json_object_get(payload, "data"));
	} else if (strcmp(source, "set_next_input") == 0) {
		clip_end_line(&self->result);
		add_json_text(&self->result, json_object_get(payload, "text"));
	}
}

void outputs_reply(struct outputs *self, const struct jmsg *message)
{
	const json_t *content = message->content;
	const char *status = json_text(content, "status", "");
	const json_t *payload;
	size_t i;

	self->replied = true;
	/* "abort": what some kernels say for "aborted". */
	self->aborted = strncmp(status, "abort", 5) == 0;
	self->execution_count = json_integer_of(content, "execution_count", 0);
	json_t *summary = json_object_get(message->metadata, "vivarium");
	json_decref(self->summary);
	self->summary = json_is_object(summary) ? json_incref(summary) : NULL;
	/* The broadcast error is the same, but may still be on its way. */
	if (strcmp(status, "error") == 0 && !self->error_name)
		add_error(self, content);
	json_array_foreach(json_object_get(content, "payload"), i, payload)
	{
		add_payload(self, payload);
	}
}

void outputs_add_late(struct clip *late, const struct jmsg *message)
{
	const json_t *content = message->content;

	if (strcmp(message->type, "stream") == 0)
		add_json_text(late, json_object_get(content, "text"));
	else if (strcmp(message->type, "display_data") == 0)
		add_json_text(late, json_object_get(json_object_get(content, "data"),
						    "text/plain"));
}

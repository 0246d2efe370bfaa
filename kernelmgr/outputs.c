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
	    .out.limit = limit,
	    .err.limit = limit,
	    .result.limit = limit,
	    .traceback.limit = limit,
	};
}

void outputs_finish(struct outputs *self)
{
	clip_finish(&self->out);
	clip_finish(&self->err);
	clip_finish(&self->result);
	clip_finish(&self->traceback);
	free(self->error_name);
	free(self->error_value);
	for (size_t i = 0; i < self->display_count; i++)
		free(self->displays[i].png);
	json_decref(self->summary);
	*self = (struct outputs){0};
}

static void add_json_text(struct clip *clip, const json_t *text)
{
	if (json_is_string(text))
		clip_add(clip, json_string_value(text), json_string_length(text));
}

static void add_picture(struct outputs *self, const json_t *base64)
{
	size_t length = json_string_length(base64), size;
	size_t room = length / 4 * 3 + 3;

	if (self->display_count == DISPLAYS_MAX ||
	    self->display_bytes + room > DISPLAY_BYTES_MAX) {
		self->displays_dropped++;
		return;
	}
	unsigned char *png = xcalloc(1, room);
	if (sodium_base642bin(png, room, json_string_value(base64), length, "\r\n ",
			      &size, NULL, sodium_base64_VARIANT_ORIGINAL) < 0) {
		free(png);
		self->displays_dropped++;
		return;
	}
	self->displays[self->display_count++] = (struct display){png, size};
	self->display_bytes += size;
}

/* True if the bundle has a picture; then its text is only the picture's name. */
static bool take_picture(struct outputs *self, const json_t *bundle)
{
	const json_t *png = json_object_get(bundle, "image/png");

	if (!json_is_string(png))
		return false;
	add_picture(self, png);
	return true;
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

void outputs_add(struct outputs *self, const struct jmsg *message)
{
	const json_t *content = message->content;
	const json_t *bundle = json_object_get(content, "data");

	if (strcmp(message->type, "stream") == 0) {
		bool is_err = strcmp(json_text(content, "name", ""), "stderr") == 0;

		add_json_text(is_err ? &self->err : &self->out,
			      json_object_get(content, "text"));
	} else if (strcmp(message->type, "execute_input") == 0 && !self->replied) {
		/* The reply knows better: an empty cell is not counted. */
		self->execution_count = json_integer_of(content, "execution_count", 0);
	} else if (strcmp(message->type, "execute_result") == 0) {
		if (!take_picture(self, bundle))
			add_json_text(&self->result,
				      json_object_get(bundle, "text/plain"));
	} else if (strcmp(message->type, "display_data") == 0 ||
		   strcmp(message->type, "update_display_data") == 0) {
		if (take_picture(self, bundle))
			return;
		clip_end_line(&self->out);
		add_json_text(&self->out, json_object_get(bundle, "text/plain"));
		clip_end_line(&self->out);
	} else if (strcmp(message->type, "error") == 0) {
		add_error(self, content);
	} else if (strcmp(message->type, "status") == 0) {
		const char *state = json_text(content, "execution_state", "");

		self->busy = self->busy || strcmp(state, "busy") == 0;
		self->idle = self->idle || strcmp(state, "idle") == 0;
	}
}

void outputs_reply(struct outputs *self, const struct jmsg *message)
{
	const json_t *content = message->content;
	const char *status = json_text(content, "status", "");

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

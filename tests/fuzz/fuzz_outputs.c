// SPDX-License-Identifier: MIT
/*
 * What a kernel broadcasts, whatever its JSON says.  Input: lines, each an object with
 * type, content and metadata of one message.
 */
#include "kernelmgr/outputs.h"

#include "fuzz.h"
#include "texts.h"
#include "wire/json.h"

enum { LIMIT = CLIP_HEAD + 100, MARKER_MAX = 100 };

static void check_kept(const struct buf *text)
{
	MUST(utf8_valid_up_to(buf_str(text), text->size) == text->size);
	MUST(utf8_count(buf_str(text), text->size) <= LIMIT + MARKER_MAX);
}

static void check_clip(const struct clip *clip)
{
	owned(buf_finish) struct buf text = {0};

	clip_render(clip, &text);
	check_kept(&text);
}

static void check_outputs(const struct outputs *self)
{
	owned(buf_finish) struct buf out = {0}, err = {0};
	size_t bytes = 0;

	outputs_out(self, &out);
	outputs_err(self, &err);
	check_kept(&out);
	check_kept(&err);
	MUST(self->piece_count <= PIECES_MAX);
	check_clip(&self->result);
	check_clip(&self->traceback);
	MUST(self->display_count <= DISPLAYS_MAX);
	for (size_t i = 0; i < self->display_count; i++)
		bytes += self->displays[i].size;
	MUST(bytes == self->display_bytes && bytes <= DISPLAY_BYTES_MAX);
	MUST(!self->error_name == !self->error_value);
	MUST(!self->summary || json_is_object(self->summary));
}

static void take_line(struct outputs *self, struct clip *late, const char *line)
{
	json_t *value;
	struct err err;

	if (json_parse_lossy(&value, line, strlen(line), &err) < 0)
		return;
	const struct jmsg message = {
	    .content = json_object_get(value, "content"),
	    .metadata = json_object_get(value, "metadata"),
	    .type = json_text(value, "type", ""),
	};
	if (strcmp(message.type, "execute_reply") == 0)
		outputs_reply(self, &message);
	else
		outputs_add(self, &message);
	outputs_add_late(late, &message);
	json_decref(value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	owned(clip_finish) struct clip late = {.limit = LIMIT};
	owned(outputs_finish) struct outputs outputs;

	outputs_init(&outputs, LIMIT);
	while (input.left) {
		owned(free_text) char *line = input_line(&input);

		take_line(&outputs, &late, line);
	}
	check_outputs(&outputs);
	check_clip(&late);
	return 0;
}

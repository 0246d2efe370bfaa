// SPDX-License-Identifier: MIT
/*
 * Long output that comes in pieces.  Input: a byte for the limit, one for how often
 * the text comes (inputs are short, limits are not), one for the size of the pieces,
 * then the text.  The model keeps everything.
 */
#include "kernelmgr/clip.h"

#include "fuzz.h"
#include "wire/ansi.h"
#include "wire/utf8.h"

static void add_in_pieces(struct clip *clip, const struct buf *text, size_t chars)
{
	for (size_t at = 0; at < text->size;) {
		size_t part = utf8_prefix(text->data + at, text->size - at, chars);

		clip_add(clip, text->data + at, part);
		at += part;
		chars = chars % 700 + 1;
	}
}

/* What clip.h promises. */
static void render_model(const struct buf *all, size_t limit, struct buf *out)
{
	size_t total = utf8_count(all->data, all->size);

	if (total <= limit) {
		ansi_strip(out, all->data, all->size);
		return;
	}
	size_t tail = utf8_suffix(all->data, all->size, limit - CLIP_HEAD);
	ansi_strip(out, all->data, utf8_prefix(all->data, all->size, CLIP_HEAD));
	buf_printf(out, "\n[... %zu of %zu characters left out ...]\n", total - limit,
		   total);
	ansi_strip(out, all->data + all->size - tail, tail);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	owned(clip_finish) struct clip clip = {.limit =
						   CLIP_HEAD + 1 + input_byte(&input)};
	size_t times = 1 + input_byte(&input) % 16, chars = 1 + input_byte(&input);
	owned(buf_finish) struct buf all = {0}, want = {0}, got = {0};

	for (size_t i = 0; i < times && input.left; i++)
		utf8_clean(&all, (const char *)input.at, input.left);
	if (!all.size)
		return 0;
	add_in_pieces(&clip, &all, chars);
	clip_render(&clip, &got);
	render_model(&all, clip.limit, &want);
	MUST(clip.total == utf8_count(all.data, all.size));
	MUST(got.size == want.size);
	MUST(memcmp(buf_str(&got), buf_str(&want), got.size) == 0);
	/* Memory follows the limit: 4 bytes a character, twice before it is trimmed. */
	MUST(clip.head.size <= 4 * CLIP_HEAD);
	MUST(clip.tail.size <= 4 * 3 * (clip.limit - CLIP_HEAD));
	return 0;
}

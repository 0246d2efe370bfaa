// SPDX-License-Identifier: MIT
#include "kernelmgr/clip.h"

#include "wire/ansi.h"
#include "wire/err.h"
#include "wire/utf8.h"

static void trim_tail(struct clip *self, size_t keep)
{
	size_t bytes = utf8_suffix(buf_str(&self->tail), self->tail.size, keep);

	buf_drop(&self->tail, self->tail.size - bytes);
	self->tail_chars = keep;
}

void clip_add(struct clip *self, const char *text, size_t size)
{
	size_t chars = utf8_count(text, size);

	self->total += chars;
	if (self->head_chars < CLIP_HEAD) {
		size_t bytes = utf8_prefix(text, size, CLIP_HEAD - self->head_chars);
		size_t taken = utf8_count(text, bytes);

		buf_add(&self->head, text, bytes);
		self->head_chars += taken;
		text += bytes;
		size -= bytes;
		chars -= taken;
	}
	size_t room = self->limit - CLIP_HEAD;
	if (chars > room) { /* only its end can matter */
		size_t bytes = utf8_suffix(text, size, room);

		text += size - bytes;
		size = bytes;
		chars = room;
	}
	buf_add(&self->tail, text, size);
	self->tail_chars += chars;
	if (self->tail_chars > 2 * room) /* not at each call: moving costs */
		trim_tail(self, room);
}

void clip_render(const struct clip *self, struct buf *out)
{
	size_t room = self->limit - CLIP_HEAD;
	size_t bytes = utf8_suffix(buf_str(&self->tail), self->tail.size, room);

	if (self->total <= self->limit) { /* a sequence may lie across the two */
		owned(buf_finish) struct buf all = {0};

		buf_add(&all, buf_str(&self->head), self->head.size);
		buf_add(&all, buf_str(&self->tail), self->tail.size);
		ansi_strip(out, buf_str(&all), all.size);
		return;
	}
	ansi_strip(out, buf_str(&self->head), self->head.size);
	buf_printf(out, "\n[... %zu of %zu characters left out ...]\n",
		   self->total - self->limit, self->total);
	ansi_strip(out, buf_str(&self->tail) + self->tail.size - bytes, bytes);
}

void clip_end_line(struct clip *self)
{
	const struct buf *last = self->tail.size ? &self->tail : &self->head;

	if (last->size && last->data[last->size - 1] != '\n')
		clip_add(self, "\n", 1);
}

void clip_finish(struct clip *self)
{
	buf_finish(&self->head);
	buf_finish(&self->tail);
}

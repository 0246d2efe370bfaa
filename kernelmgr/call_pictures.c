// SPDX-License-Identifier: MIT
/* Which pictures come with a call's answer, and how large they may be. */
#include <string.h>

#include "kernelmgr/call_impl.h"
#include "wire/json.h"
#include "wire/log.h"
#include "wire/mem.h"

static bool is_wrote(const struct files_list *wrote, const char *path)
{
	for (size_t i = 0; path && i < wrote->count; i++)
		if (files_is_png(wrote->at[i]) && strcmp(wrote->at[i]->path, path) == 0)
			return true;
	return false;
}

/* Displays that come back as the file they were saved to. */
static void drop_saved(struct outputs *outputs, const struct files_list *wrote)
{
	size_t i = 0;

	while (i < outputs->display_count)
		if (is_wrote(wrote, outputs->displays[i].saved))
			outputs_drop_display(outputs, i);
		else
			i++;
}

static size_t json_size(const struct buf *text)
{
	owned(buf_finish) struct buf json = {0};
	json_t *value = json_string_lossy(buf_str(text), text->size);

	json_write(&json, value);
	json_decref(value);
	return json.size;
}

/* Bytes of an answer that its text takes: each is in it twice, once in the structure.
 */
static size_t text_size(const struct call *self)
{
	const struct outputs *outputs = &self->outputs;
	owned(buf_finish) struct buf text = {0};

	outputs_out(outputs, &text);
	outputs_err(outputs, &text);
	clip_render(&outputs->result, &text);
	clip_render(&outputs->traceback, &text);
	buf_add(&text, buf_str(&self->late), self->late.size);
	return 2 * json_size(&text);
}

/* Bytes that one picture may take: they share what the text leaves, but for an eighth
 * that is for the footer; base64 makes them a third longer.  So pictures shrink before
 * text is cut. */
static size_t bytes_each(const struct call *self, size_t count)
{
	size_t limit = (size_t)self->workspace->place->config->result_limit;
	size_t taken = text_size(self) + limit / 8;
	size_t room = taken < limit ? limit - taken : 0;
	size_t each = room / 4 * 3 / (count ? count : 1);

	return each ? each : 1;
}

static size_t count_png(const struct files_list *list)
{
	size_t count = 0;

	for (size_t i = 0; i < list->count; i++)
		count += files_is_png(list->at[i]);
	return count;
}

static void add_display(struct call *self, const struct display *display)
{
	struct err err;

	if (pictures_add_memory(self->pictures, display->png, display->size, &err) < 0)
		log_warn(self->workspace->name, "%s", err.msg);
}

static void add_file(struct call *self, const struct files_entry *entry)
{
	struct err err;
	int fd;

	if (files_open_png(self->workspace->files, entry->path, strlen(entry->path),
			   &fd, &err) < 0)
		buf_printf(&self->notice, "%s\n", err.msg);
	else
		pictures_add(self->pictures, fd, entry->path);
}

void call_begin_pictures(struct call *self, pictures_done_fn *done)
{
	const struct workspace_place *place = self->workspace->place;
	const struct config *config = place->config;
	size_t max = (size_t)config->max_images;

	drop_saved(&self->outputs, &self->wrote);
	size_t all = self->outputs.display_count + count_png(&self->wrote);
	size_t count = all < max ? all : max;

	self->pictures =
	    pictures_create(place->kernels.loop, place->kernels.paths,
			    (size_t)config->max_image_side, bytes_each(self, count));
	for (size_t i = 0; i < self->outputs.display_count; i++)
		if (pictures_count(self->pictures) < max)
			add_display(self, &self->outputs.displays[i]);
	for (size_t i = 0; i < self->wrote.count; i++)
		if (files_is_png(self->wrote.at[i]) &&
		    pictures_count(self->pictures) < max)
			add_file(self, self->wrote.at[i]);
	/* Where none is wanted, a file is no less there: the footer names it. */
	self->pictures_left_out = max ? all - count : self->outputs.display_count;
	pictures_start(self->pictures, done, self);
}

// SPDX-License-Identifier: MIT
#include "kernelmgr/viewer.h"

#include <stdlib.h>
#include <string.h>

#include "kernelmgr/call_impl.h"
#include "wire/json.h"
#include "wire/mem.h"

enum {
	AT_ONCE = 4,                 /* in the daemon; one in a workspace */
	WHOLE_US = 45 * 1000 * 1000, /* for one view, the kernel's start included */
	SLACK = 4096,                /* characters that are no limit's matter */
};

struct viewer {
	LIST_ENTRY(viewer) link;     /* workspace_place::viewers */
	struct workspace *workspace; /* borrowed */
	struct kernel *kernel;
	struct buf code;
	struct outputs outputs;
	char msg_id[JMSG_ID_SIZE];
	struct loop_timer deadline;
	viewer_done_fn *done; /* NULL: it has been told, or nobody wants to know */
	void *arg;
};

static void destroy(struct viewer *self)
{
	LIST_REMOVE(self, link);
	loop_timer_stop(&self->deadline);
	kernel_destroy(&self->kernel);
	outputs_finish(&self->outputs);
	buf_finish(&self->code);
	free(self);
}

void viewer_finish(struct workspace_place *place)
{
	struct viewer *self;

	while ((self = LIST_FIRST(&place->viewers)))
		destroy(self);
}

/* ---- its end ---- */

static void tell(struct viewer *self, const struct buf *text, const struct err *why)
{
	viewer_done_fn *done = take(&self->done);

	loop_timer_stop(&self->deadline);
	if (done)
		done(text, why, self->arg);
}

static void conclude(struct viewer *self)
{
	const struct outputs *outputs = &self->outputs;
	owned(buf_finish) struct buf text = {0};
	struct err why;

	kernel_dismiss(self->kernel, outputs->error_name ? "could not show its file"
							 : "has shown its file");
	if (!outputs->error_name) {
		outputs_out(outputs, &text);
		tell(self, &text, NULL);
		return;
	}
	err_set(&why, ERR_ARGUMENT, "%.40s: %.180s", outputs->error_name,
		outputs->error_value ? outputs->error_value : "");
	tell(self, NULL, &why);
}

static void give_up(struct viewer *self, const char *words)
{
	struct err why;

	kernel_dismiss(self->kernel, "shows its file no longer");
	err_set(&why, ERR_ARGUMENT, "%s", words);
	tell(self, NULL, &why);
}

static void on_deadline(void *arg)
{
	give_up(arg, "it takes longer than 45 s; read parts of it with run_python");
}

void viewer_cancel(struct viewer *self)
{
	give_up(self, "cancelled");
}

void viewer_drop(struct viewer **self)
{
	struct viewer *dropped = take(self);

	if (!dropped)
		return;
	dropped->done = NULL;
	loop_timer_stop(&dropped->deadline);
	kernel_dismiss(dropped->kernel, "shows its file no longer");
}

void viewer_drain(struct workspace *workspace)
{
	struct viewer *self, *next;

	for (self = LIST_FIRST(&workspace->place->viewers); self; self = next) {
		next = LIST_NEXT(self, link);
		if (self->workspace == workspace)
			give_up(self, "Vivarium is stopping");
	}
}

/* ---- its kernel ---- */

static void on_ready(void *arg)
{
	struct viewer *self = arg;
	struct err err;

	if (self->done && kernel_execute(self->kernel, self->code.data, self->code.size,
					 false, self->msg_id, &err) < 0)
		give_up(self, err.msg);
}

static void on_message(enum kernel_channel channel, const struct jmsg *message,
		       void *arg)
{
	struct viewer *self = arg;

	if (!self->done || strcmp(message->parent_id, self->msg_id) != 0)
		return;
	if (channel == KERNEL_IOPUB)
		outputs_add(&self->outputs, message);
	else if (channel == KERNEL_SHELL)
		outputs_reply(&self->outputs, message);
	if (self->outputs.replied && self->outputs.idle)
		conclude(self);
}

static void on_dead(const struct kernel_death *death, void *arg)
{
	struct viewer *self = arg;
	struct err why;

	self->kernel = NULL;
	self->workspace->place->kernels_alive--;
	err_set(&why, ERR_KERNEL, "the kernel that read it %.180s", death->words);
	tell(self, NULL, &why);
	workspace_pump(self->workspace);
	destroy(self);
}

static int check_room(const struct workspace *workspace, struct err *err)
{
	const struct workspace_place *place = workspace->place;
	const struct viewer *viewer;
	size_t count = 0, own = 0;

	LIST_FOREACH(viewer, &place->viewers, link)
	{
		count++;
		own += viewer->workspace == workspace && viewer->done;
	}
	if (workspace->draining)
		return err_set(err, ERR_LIMIT, "Vivarium is stopping");
	if (own)
		return err_set(err, ERR_LIMIT,
			       "another table is being read: call again when it is "
			       "done");
	if (count < AT_ONCE &&
	    place->kernels_alive < (size_t)place->config->max_kernels)
		return 0;
	return err_set(err, ERR_LIMIT,
		       "too much is being read or run already: call again soon");
}

/* The text of a JSON string is Python's too. */
static void write_code(struct buf *out, const char *path, const char *format,
		       size_t chars)
{
	json_t *quoted = json_string(path);

	buf_text(out, "__import__('vivarium_kernel.view', fromlist=['show']).show(");
	json_write(out, quoted);
	buf_printf(out, ", '%s', %zu)", format, chars);
	json_decref(quoted);
}

int viewer_start(struct viewer **out, struct workspace *workspace, const char *path,
		 const char *format, size_t chars, viewer_done_fn *done, void *arg,
		 struct err *err)
{
	struct workspace_place *place = workspace->place;
	owned(free_text) char *name = xasprintf("%.60s/viewer", workspace->name);
	const struct kernel_begin begin = {.workdir = workspace->dir,
					   .home = workspace->home,
					   .owner = workspace->owner,
					   .cell = 1};

	if (check_room(workspace, err) < 0)
		return -1;
	struct viewer *self = xcalloc(1, sizeof *self);
	const struct kernel_owner owner = {
	    .ready = on_ready, .message = on_message, .dead = on_dead, .arg = self};
	self->workspace = workspace;
	self->done = done;
	self->arg = arg;
	outputs_init(&self->outputs, chars + SLACK);
	write_code(&self->code, path, format, chars);
	LIST_INSERT_HEAD(&place->viewers, self, link);
	if (kernel_create(&self->kernel, &place->kernels, name, &begin, &owner, err) <
	    0) {
		destroy(self);
		return -1;
	}
	place->kernels_alive++;
	loop_timer_start(place->kernels.loop, &self->deadline, WHOLE_US, on_deadline,
			 self);
	*out = self;
	return 0;
}

// SPDX-License-Identifier: MIT
#include "kernelmgr/workspace.h"
#include "kernelmgr/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernelmgr/call_impl.h"
#include "wire/json.h"
#include "wire/log.h"
#include "wire/mem.h"
#include "wire/utf8.h"
#include "wire/words.h"

enum {
	NAMES_LISTED = 12,
	NAME_SHOWN = 64,  /* characters of one */
	RESTARTS_MAX = 3, /* of one call, whose code may be what ends its kernels */
};

static void pump(void *arg);

/* To the user id of its kernels, where it has one. */
static int give_directories(struct workspace *self, struct err *err)
{
	const struct workspace_place *place = self->place;

	if (walls_owner(place->kernels.walls, self->name, &self->owner, err) < 0 ||
	    walls_give(self->owner, self->dir, place->config->workdir, err) < 0 ||
	    walls_give(self->owner, self->home, place->stores.state_dir, err) < 0)
		return -1;
	return 0;
}

int workspace_create(struct workspace **out, struct workspace_place *place,
		     const char *name, const char *dir, struct err *err)
{
	owned(workspace_destroy) struct workspace *self = xcalloc(1, sizeof *self);

	self->place = place;
	self->late.limit = config_output_chars(place->config);
	TAILQ_INIT(&self->calls);
	TAILQ_INIT(&self->finishing);
	snprintf(self->name, sizeof self->name, "%s", name);
	snprintf(self->dir, sizeof self->dir, "%s", dir);
	if (state_home(self->home, place->stores.state_dir, name, err) < 0 ||
	    files_open_real(&self->files, dir, err) < 0 ||
	    give_directories(self, err) < 0 || saving_open(self, err) < 0)
		return err_wrap(err, "workspace %s", name);
	journal_each_lost(place->journal, name, saving_on_lost, self);
	journal_tell_lost(place->journal, name, self->saving.store != NULL,
			  &self->notice);
	*out = take(&self);
	return 0;
}

/* Somebody may have removed or moved its directory: a kernel keeps it till its end, but
 * the next one, and who reads files meanwhile, gets what is there now. */
int workspace_renew(struct workspace *self, struct err *err)
{
	if (self->kernel)
		return 0;
	int renewed = files_renew(self->files, self->dir, err);
	if (renewed <= 0)
		return renewed;
	log_warn(self->name, "its directory was removed or replaced");
	buf_text(&self->notice,
		 "The workspace's directory was removed or replaced: its files are "
		 "those that are there now.\n");
	return give_directories(self, err);
}

static void destroy_all(struct call_queue *queue)
{
	struct call *call;

	while ((call = TAILQ_FIRST(queue))) {
		TAILQ_REMOVE(queue, call, link);
		call_destroy(&call);
	}
}

void workspace_destroy(struct workspace **self)
{
	struct workspace *dead = take(self);

	if (!dead)
		return;
	loop_timer_stop(&dead->pump);
	loop_timer_stop(&dead->idle);
	proof_forget(dead);
	quota_finish(dead);
	destroy_all(&dead->calls);
	destroy_all(&dead->finishing);
	if (dead->kernel)
		dead->place->kernels_alive--;
	kernel_destroy(&dead->kernel);
	saving_close(dead);
	files_close(&dead->files);
	json_decref(dead->summary);
	json_decref(dead->known);
	buf_finish(&dead->notice);
	clip_finish(&dead->late);
	free(dead);
}

const char *workspace_name(const struct workspace *self)
{
	return self->name;
}

const char *workspace_dir(const struct workspace *self)
{
	return self->dir;
}

const char *workspace_shown_dir(const struct workspace *self)
{
	return walls_shown_workdir(self->place->kernels.walls, self->dir);
}

const struct files *workspace_files(const struct workspace *self)
{
	return self->files;
}

static void remember_written(struct workspace *self, const char *path, size_t size)
{
	struct files_look file;
	struct err err;

	if (files_look(self->files, path, size, &file, &err) < 0)
		return; /* it is gone again */
	self->written[self->next_written] = (struct written){file.inode, file.mtime_ns};
	self->next_written = (self->next_written + 1) % WRITTEN_MAX;
}

int workspace_write(struct workspace *self, const char *path, size_t path_size,
		    const void *data, size_t size, bool *created, struct err *err)
{
	if (quota_take(self, size, err) < 0 ||
	    files_write(self->files, path, path_size, data, size, created, err) < 0)
		return -1;
	remember_written(self, path, path_size);
	workspace_changed(self,
			  &(struct files_change){.path = path, .names = *created});
	return 0;
}

void workspace_changed(const struct workspace *self, const struct files_change *change)
{
	if (self->place->changed)
		self->place->changed(self, change, self->place->changed_arg);
}

bool workspace_wrote(const struct workspace *self, const struct files_look *file)
{
	for (size_t i = 0; i < WRITTEN_MAX; i++)
		if (self->written[i].inode == file->inode &&
		    self->written[i].mtime_ns == file->mtime_ns)
			return true;
	return false;
}

bool workspace_has_kernel(const struct workspace *self)
{
	return self->kernel != NULL;
}

unsigned long long workspace_cells(const struct workspace *self)
{
	return self->cells;
}

size_t workspace_calls(const struct workspace *self)
{
	return self->waiting;
}

/* ---- names ---- */

static size_t count_names(const struct workspace *self)
{
	return json_array_size(json_object_get(self->summary, "vars")) +
	       json_count_of(self->summary, "more_vars");
}

static size_t count_imports(const struct workspace *self)
{
	return json_array_size(json_object_get(self->summary, "modules")) +
	       json_count_of(self->summary, "more_modules");
}

void workspace_list_names(const struct workspace *self, struct buf *out)
{
	const json_t *vars = json_object_get(self->summary, "vars");
	size_t total = count_names(self), shown = 0;

	for (; shown < NAMES_LISTED && shown < json_array_size(vars); shown++) {
		const json_t *row = json_array_get(vars, shown);
		const char *name = json_string_value(json_array_get(row, 0));

		buf_text(out, shown ? ", " : " (");
		utf8_show_cut(out, name ? name : "?", strlen(name ? name : "?"),
			      NAME_SHOWN);
	}
	if (total > shown)
		buf_printf(out, "%s+%zu more", shown ? ", " : " (", total - shown);
	if (total)
		buf_text(out, ")");
}

const json_t *workspace_known(const struct workspace *self)
{
	return self->known;
}

void workspace_remember(struct workspace *self, json_t *summary)
{
	json_decref(self->known);
	self->known = self->place->config->persist ? summary : NULL;
	if (!self->known)
		json_decref(summary);
}

static void forget_names(struct workspace *self)
{
	json_decref(self->summary);
	self->summary = NULL;
	self->exiting = false;
	self->idle_stopped = false;
}

/* ---- the kernel ---- */

struct call *workspace_running(const struct workspace *self)
{
	struct call *head = TAILQ_FIRST(&self->calls);

	return head && head->state >= CALL_SENT ? head : NULL;
}

static void on_ready(void *arg)
{
	workspace_pump(arg);
}

static void on_begun(const char *id, void *arg)
{
	struct call *call = workspace_running(arg);

	if (call && strcmp(id, call->msg_id) == 0)
		call_on_begun(call);
}

static void on_message(enum kernel_channel channel, const struct jmsg *message,
		       void *arg)
{
	struct workspace *self = arg;
	struct call *call = workspace_running(self);

	if (call && strcmp(message->parent_id, call->msg_id) == 0)
		call_on_message(call, channel, message);
	else if (channel == KERNEL_IOPUB)
		outputs_add_late(&self->late, message);
}

static void on_saved(uint64_t generation, void *arg)
{
	saving_on_saved(arg, generation);
}

static void on_damaged(const char *names, void *arg)
{
	saving_on_damaged(arg, names);
}

void workspace_tell_loss(const struct workspace *self, struct buf *out)
{
	if (self->saving.cell) {
		buf_printf(out, " with the variables as they were after cell %lld.\n",
			   self->saving.cell);
		return;
	}
	buf_text(out, "; its variables are gone");
	workspace_list_names(self, out);
	buf_text(out, ".\n");
}

static void on_last_words(const struct lastwords_rest *rest, void *arg)
{
	struct workspace *self = arg;
	struct call *call = workspace_running(self);
	owned(buf_finish) struct buf text = {0};

	if (rest->lost)
		buf_printf(&text,
			   "\n[... %llu byte%s of output went with the kernel ...]\n",
			   (unsigned long long)rest->lost, plural_s(rest->lost));
	utf8_clean(&text, rest->text, rest->size);
	if (call) {
		outputs_add_rest(&call->outputs, rest->is_err, buf_str(&text),
				 text.size, (size_t)rest->lost);
		return;
	}
	clip_add(&self->late, buf_str(&text), text.size);
	self->late.total += (size_t)rest->lost; /* what is left out counts too */
}

/* Tells the next call what became of the kernel that it would have expected. */
static void note_death(struct workspace *self, const struct kernel_death *death)
{
	if (self->exiting)
		buf_text(&self->notice, "The cell before this one called exit(), so "
					"its kernel stopped");
	else if (self->idle_stopped)
		buf_printf(&self->notice,
			   "The kernel was stopped after %lld s without a call "
			   "(VIVARIUM_IDLE_TIMEOUT)",
			   (long long)self->place->config->idle_timeout_s);
	else
		buf_printf(&self->notice, "The kernel %s", death->words);
	buf_text(&self->notice, "; this call runs in a new one");
	if (self->saving.store) { /* that one tells what came back */
		buf_text(&self->notice, ".\n");
		return;
	}
	buf_text(&self->notice, ". Its variables are gone");
	workspace_list_names(self, &self->notice);
	buf_text(&self->notice, ".\n");
}

static void on_dead(const struct kernel_death *death, void *arg)
{
	struct workspace *self = arg;
	struct call *head = TAILQ_FIRST(&self->calls), *call = workspace_running(self);

	self->kernel = NULL;
	self->place->kernels_alive--;
	if (!self->draining) /* else the next daemon has to tell it */
		journal_gone(self->place->journal, self->name);
	if (call && call->state == CALL_SENT &&
	    !kernel_has_begun(death, call->msg_id) && call->restarts++ < RESTARTS_MAX) {
		note_death(self, death);
		self->cells = call->cell - 1; /* that number was not used */
		call->cell = 0;
		call_starting(call); /* none of it ran: a new kernel may have it */
	} else if (call) {
		buf_printf(&self->notice,
			   "This call runs in a new kernel, since the earlier one "
			   "ended in cell %llu.\n",
			   call->cell);
		call_on_death(call, death);
	} else if (saving_on_death(self, death)) {
		log_info(self->name, "the next kernel restores less");
	} else if (head && head->state == CALL_STARTING && !death->started) {
		call_fail(head, "The kernel %s.", death->words);
	} else if (self->exiting || self->idle_stopped || !death->requested) {
		note_death(self, death);
	}
	forget_names(self);
	if (!self->saving.store)
		workspace_remember(self, NULL);
	if (TAILQ_EMPTY(&self->calls) && self->saving.store)
		store_rest(self->saving.store);
	workspace_pump(self);
}

int workspace_start_kernel(struct workspace *self,
			   const struct connfile_snapshot *snapshot, struct err *err)
{
	const struct kernel_owner owner = {.ready = on_ready,
					   .begun = on_begun,
					   .message = on_message,
					   .saved = on_saved,
					   .damaged = on_damaged,
					   .last_words = on_last_words,
					   .dead = on_dead,
					   .arg = self};
	const struct kernel_begin begin = {.workdir = self->dir,
					   .home = self->home,
					   .owner = self->owner,
					   .cell = (long long)self->cells + 1,
					   .snapshot = snapshot};

	if (workspace_renew(self, err) < 0 ||
	    kernel_create(&self->kernel, &self->place->kernels, self->name, &begin,
			  &owner, err) < 0)
		return -1;
	self->place->kernels_alive++;
	return 0;
}

static int check_room(const struct workspace *self, struct err *err)
{
	size_t max = (size_t)self->place->config->max_kernels;

	if (self->place->kernels_alive < max)
		return 0;
	return err_set(err, ERR_LIMIT,
		       "%zu kernel%s alive already (VIVARIUM_MAX_KERNELS); "
		       "try again when one has stopped",
		       max, max == 1 ? " is" : "s are");
}

static void on_idle(void *arg)
{
	struct workspace *self = arg;

	if (!self->kernel || kernel_state(self->kernel) != KERNEL_IDLE ||
	    !TAILQ_EMPTY(&self->calls))
		return;
	self->idle_stopped = true;
	kernel_stop(self->kernel);
}

void workspace_release(struct workspace *self, struct call *call)
{
	journal_live(self->place->journal, self->name);
	if (call->outputs.summary) {
		json_decref(self->summary);
		self->summary = json_incref(call->outputs.summary);
		workspace_remember(self, json_incref(self->summary));
	}
	saving_on_cell(self, call);
	if (self->kernel) {
		kernel_release(self->kernel);
		self->exiting =
		    json_is_true(json_object_get(call->outputs.summary, "exiting"));
		if (self->exiting)
			kernel_stop(self->kernel); /* no other cell may get into it */
	}
	workspace_pump(self);
}

/* ---- the queue ---- */

static void tell_way_back(const struct workspace *self, struct buf *out)
{
	const struct config *config = self->place->config;

	if (!self->saving.cell)
		return;
	if (config_offers_tool(config, "undo"))
		buf_text(out, " undo brings them back.");
	else if (config_offers_tool(config, "restore"))
		buf_printf(out, " restore(cell=%llu) brings them back.", self->cells);
}

static void tell_fresh(struct workspace *self, struct call *head)
{
	struct buf *notice = &head->notice;
	size_t count = count_names(self), imports = count_imports(self);

	if (count || imports) {
		buf_text(notice, "fresh: threw away ");
		if (count)
			buf_printf(notice, "%zu variable%s", count, plural_s(count));
		workspace_list_names(self, notice);
		if (imports)
			buf_printf(notice, "%s%zu import%s", count ? " and " : "",
				   imports, plural_s(imports));
		buf_text(notice, "; this call runs in a new kernel.");
		tell_way_back(self, notice);
	} else if (self->kernel || !self->saving.cell) {
		buf_text(notice, "fresh: there were no variables to throw away; this "
				 "call runs in a new kernel.");
	} else {
		buf_text(notice, "fresh: there was no kernel to throw away; the saved "
				 "variables are left where they are.");
	}
	buf_text(notice, "\n");
}

/* Sends the old kernel away for a call that does not want it.  True while there
 * is one to wait for. */
static bool recycle(struct workspace *self, struct call *head)
{
	bool stateless = !self->place->config->persist;

	if (head->recycled ||
	    (!head->options.fresh && !head->options.back && !stateless))
		return false;
	head->recycled = true;
	if (head->options.fresh)
		tell_fresh(self, head);
	self->saving.fresh = head->options.fresh;
	if (!self->kernel)
		return false;
	forget_names(self);
	kernel_stop(self->kernel);
	return true;
}

static void pump(void *arg)
{
	struct workspace *self = arg;
	struct call *head = TAILQ_FIRST(&self->calls);
	struct err err;

	if (self->draining && self->kernel && !workspace_running(self))
		kernel_stop(self->kernel);
	if (!head && self->kernel && self->place->config->idle_timeout_s)
		loop_timer_start(self->place->kernels.loop, &self->idle,
				 self->place->config->idle_timeout_s * 1000000, on_idle,
				 self);
	if (head)
		proof_yield(self->place);
	else
		proof_plan(self);
	if (!head || head->state >= CALL_SENT)
		return;
	if (head->options.back && saving_look_back(self, head))
		return;
	if (recycle(self, head) ||
	    (self->kernel && kernel_state(self->kernel) != KERNEL_IDLE)) {
		call_starting(head);
		return;
	}
	if (head->options.branch[0]) {
		call_starting(head);
		branch_go(self, head);
		return;
	}
	if (self->kernel) {
		call_send(head);
		return;
	}
	call_starting(head);
	if (head->options.back) {
		saving_go_back(self, head);
	} else if (check_room(self, &err) < 0) {
		call_fail(head, "%s", err.msg);
		workspace_pump(self);
	} else {
		saving_begin(self);
	}
}

void workspace_pump(struct workspace *self)
{
	loop_timer_start(self->place->kernels.loop, &self->pump, 1, pump, self);
}

void workspace_drain(struct workspace *self)
{
	struct call *call, *next;

	self->draining = true;
	proof_yield(self->place);
	viewer_drain(self);
	for (call = TAILQ_FIRST(&self->calls); call; call = next) {
		next = TAILQ_NEXT(call, link);
		if (call->state < CALL_SENT)
			call_fail(call, "Vivarium is stopping; the call did not run.");
	}
	workspace_pump(self);
}

void workspace_interrupt(struct workspace *self)
{
	struct call *call = workspace_running(self);

	if (call)
		call_cancel(call);
}

bool workspace_busy(const struct workspace *self)
{
	return self->kernel || (self->saving.store && store_busy(self->saving.store)) ||
	       !TAILQ_EMPTY(&self->calls) || !TAILQ_EMPTY(&self->finishing);
}

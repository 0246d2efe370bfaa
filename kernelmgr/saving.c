// SPDX-License-Identifier: MIT
/* Between a workspace, its kernel and its store: which state a kernel begins with, what
 * it saved, and what people are told of it. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "kernelmgr/call_impl.h"
#include "wire/json.h"
#include "wire/log.h"
#include "wire/mem.h"
#include "wire/utf8.h"
#include "wire/words.h"

enum {
	FAILURES_MAX = 6,  /* kernels that may die restoring one state */
	ADOPTING_MAX = 64, /* jobs of one kernel in the store; the newest state waits */
	TOLD_MAX = 8,      /* things of one kind that are told of one kernel */
	FAILED_SHOWN = 8,  /* names that did not come back */
	NAME_SHOWN = 64,   /* characters of one */
	WHY_SHOWN = 120,   /* of the reason */
	CODE_NOTED = 200,  /* bytes of a cell's code in its line of the history */
};

static struct store *store_of(const struct workspace *self)
{
	return self->saving.store;
}

int saving_open(struct workspace *self, struct err *err)
{
	if (!config_saves(self->place->config))
		return 0;
	return store_create(&self->saving.store, &self->place->stores, self->name,
			    self->owner, err);
}

void saving_close(struct workspace *self)
{
	store_destroy(&self->saving.store);
}

int workspace_check_saves(const struct workspace *self, struct err *err)
{
	if (store_of(self))
		return 0;
	return err_set(err, ERR_CONFIG,
		       "nothing is saved here (VIVARIUM_%s), so there is nothing to go "
		       "back to",
		       self->place->config->persist ? "DURABILITY=off"
						    : "PERSIST_NAMESPACE=0");
}

int workspace_ask(struct workspace *self, json_t *job, store_done_fn *done, void *arg,
		  struct err *err)
{
	if (workspace_check_saves(self, err) < 0) {
		json_decref(job);
		return -1;
	}
	store_ask(store_of(self), job, done, arg);
	return 0;
}

void workspace_forget(struct workspace *self, const void *arg)
{
	if (store_of(self))
		store_forget(store_of(self), arg);
}

/* ---- the beginning ---- */

/* The call that waits for a kernel, or NULL. */
static struct call *waiting(const struct workspace *self)
{
	struct call *head = TAILQ_FIRST(&self->calls);

	return head && head->state == CALL_STARTING && !head->options.back &&
		       !head->options.branch[0]
		   ? head
		   : NULL;
}

static void start(struct workspace *self, const struct connfile_snapshot *snapshot)
{
	struct call *head = waiting(self);
	struct err err;

	if (!head || self->kernel || self->draining)
		return; /* nobody wants it any more */
	if (workspace_start_kernel(self, snapshot, &err) == 0)
		return;
	call_fail(head, "%s", err.msg);
	workspace_pump(self);
}

static void take_cells(struct workspace *self, const json_t *answer)
{
	long long cells = json_integer_of(answer, "last_cell", 0);

	if (cells > 0 && (unsigned long long)cells > self->cells)
		self->cells = (unsigned long long)cells;
}

static void on_begin(const json_t *answer, void *arg)
{
	struct workspace *self = arg;
	const char *error = json_text(answer, "error", NULL);
	const char *manifest = json_text(answer, "manifest", "");
	const char *moved_from = json_text(answer, "moved_from", "");
	owned(free_text) char *spool = xasprintf("%s/spool", store_dir(store_of(self)));
	const struct connfile_snapshot snapshot = {
	    .store = store_dir(store_of(self)),
	    .spool = spool,
	    .always = self->place->config->durability == DURABILITY_ALWAYS,
	    .generation = (uint64_t)json_integer_of(answer, "last", 0),
	    .namespace_max = self->place->namespace_max,
	    .manifest = manifest[0] ? manifest : NULL,
	    .skip = json_object_get(answer, "skip"),
	    .older = json_object_get(answer, "older"),
	    .moved_from = moved_from[0] ? moved_from : NULL,
	};

	self->saving.asking = false;
	self->saving.damages = self->saving.refusals = 0;
	self->saving.generation = (uint64_t)json_integer_of(answer, "generation", 0);
	self->saving.cell = self->saving.began = json_integer_of(answer, "cell", 0);
	self->saving.base = json_integer_of(answer, "base", 0);
	self->saving.untold = manifest[0] != '\0';
	self->saving.kept = self->saving.cell;
	proof_newest(self, 0); /* what is restored is tried by that */
	self->saving.fresh = false;
	take_cells(self, answer);
	buf_text(&self->notice, json_text(answer, "words", ""));
	if (error) {
		log_error(self->name, "store: %s", error);
		buf_printf(&self->notice,
			   "Saved states are out of reach (%.200s): this kernel begins "
			   "empty, and nothing is saved.\n",
			   error);
	}
	start(self, error ? NULL : &snapshot);
}

void saving_begin(struct workspace *self)
{
	if (!store_of(self)) {
		start(self, NULL);
		return;
	}
	if (self->saving.asking)
		return;
	self->saving.asking = true;
	self->saving.postponed = 0; /* what lies in the spool is kept by this */
	store_ask(store_of(self),
		  json_pack("{ss sb}", "do", "begin", "fresh", self->saving.fresh),
		  on_begin, self);
}

/* ---- what the kernel tells ---- */

static void adopt(struct workspace *self, uint64_t generation);

/* The newest of those for which the store had no time. */
static void adopt_postponed(struct workspace *self)
{
	uint64_t generation = self->saving.postponed;

	self->saving.postponed = 0;
	if (generation)
		adopt(self, generation);
}

static void on_adopted(const json_t *answer, void *arg)
{
	struct workspace *self = arg;
	long long generation = json_integer_of(answer, "generation", 0);
	const char *error = json_text(answer, "error", NULL);

	self->saving.adopting--;
	adopt_postponed(self);
	if (error && self->saving.refusals++ < TOLD_MAX)
		log_warn(self->name, "generation %lld: %s", generation, error);
	if (!error)
		self->saving.cell = self->saving.kept =
		    json_integer_of(answer, "cell", 0);
	if (self->branching)
		workspace_pump(self);
	if (!error)
		proof_newest(self, (uint64_t)generation);
	if (!self->kernel || !generation)
		return; /* 0: the helper died, and nobody knows */
	if (error)
		kernel_tell(self->kernel, "refused %lld %s", generation, error);
	else
		kernel_tell(self->kernel, "kept %lld", generation);
}

static void adopt(struct workspace *self, uint64_t generation)
{
	self->saving.adopting++;
	store_ask(
	    store_of(self),
	    json_pack("{ss sI}", "do", "adopt", "generation", (json_int_t)generation),
	    on_adopted, self);
}

/* When cells come faster than the store keeps their states, the newest one counts. */
void saving_on_saved(struct workspace *self, uint64_t generation)
{
	struct saving *saving = &self->saving;

	if (!store_of(self))
		return;
	if (saving->adopting < ADOPTING_MAX) {
		adopt(self, generation);
		return;
	}
	if (saving->postponed)
		kernel_tell(self->kernel, "refused %llu too many at once",
			    (unsigned long long)saving->postponed);
	saving->postponed = generation;
}

static void condemn(struct workspace *self, const char *name, const char *why)
{
	store_ask(store_of(self),
		  json_pack("{ss sI ss* ss*}", "do", "skip", "generation",
			    (json_int_t)self->saving.generation, "name", name, "why",
			    why),
		  NULL, NULL);
}

void saving_on_damaged(struct workspace *self, const char *names)
{
	if (!store_of(self) || !self->saving.generation ||
	    self->saving.damages++ >= TOLD_MAX)
		return;
	log_error(self->name, "damaged: %s", names);
	condemn(self, NULL, "its bytes on disk are damaged");
	buf_text(&self->notice, "The saved bytes of ");
	utf8_show_cut(&self->notice, names, strlen(names), WHY_SHOWN);
	buf_text(&self->notice,
		 " were damaged on disk: what was restored of them is wrong. undo goes "
		 "back to an older state.\n");
}

/* ---- deaths during a restore ---- */

static bool is_crash(const struct kernel_death *death)
{
	if (death->requested || death->status < 0 || !WIFSIGNALED(death->status))
		return true; /* it took too long, or exited */
	return WTERMSIG(death->status) != SIGKILL && WTERMSIG(death->status) != SIGTERM;
}

bool saving_on_death(struct workspace *self, const struct kernel_death *death)
{
	struct saving *saving = &self->saving;
	bool again = strcmp(death->culprit, saving->culprit) == 0;

	if (!death->restoring) {
		saving->failures = 0;
		return false;
	}
	if (!store_of(self) || self->draining || !waiting(self))
		return false;
	snprintf(saving->culprit, sizeof saving->culprit, "%s", death->culprit);
	buf_printf(&self->notice, "A kernel %s while it restored ", death->words);
	if (death->culprit[0])
		utf8_show_cut(&self->notice, death->culprit, strlen(death->culprit),
			      NAME_SHOWN);
	else
		buf_text(&self->notice, "the saved variables");
	if (++saving->failures >= FAILURES_MAX || (!death->culprit[0] && again)) {
		condemn(self, NULL, "kernels died of restoring it");
		buf_text(&self->notice, "; an older state is used from now on.\n");
		saving->failures = 0;
	} else if (death->culprit[0] && (is_crash(death) || again)) {
		condemn(self, death->culprit, NULL);
		buf_text(&self->notice, "; it is left out from now on.\n");
	} else {
		buf_text(&self->notice, "; tried again.\n");
	}
	return true;
}

/* ---- cells ---- */

static const char *const ends[] = {
    [CALL_OK] = "ok",
    [CALL_ERROR] = "error",
    [CALL_TIMED_OUT] = "timed out",
    [CALL_CANCELLED] = "cancelled",
    [CALL_KILLED] = "killed",
    [CALL_KERNEL_DIED] = "kernel died",
    [CALL_NOT_RUN] = "not run",
};

void saving_on_cell(struct workspace *self, const struct call *call)
{
	const json_t *snapshot = json_object_get(call->outputs.summary, "snapshot");
	size_t size = call->code.size < CODE_NOTED ? call->code.size : CODE_NOTED;

	if (!store_of(self))
		return;
	if (json_is_true(json_object_get(snapshot, "saved")))
		self->saving.cell = (long long)call->cell;
	store_ask(store_of(self),
		  json_pack("{ss s{sI sI sI ss so}}", "do", "cell", "line", "cell",
			    (json_int_t)call->cell, "time", (json_int_t)time(NULL),
			    "ms",
			    (json_int_t)((call->ended_us - call->started_us) / 1000),
			    "outcome", ends[call->end], "code",
			    json_string_lossy(buf_str(&call->code), size)),
		  NULL, NULL);
}

void saving_on_lost(unsigned long long cell, long long since, void *workspace)
{
	const struct workspace *self = workspace;

	if (store_of(self))
		store_ask(store_of(self),
			  json_pack("{ss sb s{sI sI ss}}", "do", "cell", "unless_known",
				    true, "line", "cell", (json_int_t)cell, "time",
				    (json_int_t)since, "outcome", "lost"),
			  NULL, NULL);
}

static void tell_failed(const json_t *failed, struct buf *out)
{
	size_t count = json_array_size(failed);

	for (size_t i = 0; i < count && i < FAILED_SHOWN; i++) {
		const json_t *row = json_array_get(failed, i);
		const char *name = json_text(row, "name", "?");
		const char *what = json_text(row, "what", "");
		const char *why = json_text(row, "why", "");

		buf_text(out, i ? ", " : "Not back: ");
		utf8_show_cut(out, name, strlen(name), NAME_SHOWN);
		buf_text(out, " (");
		utf8_show_cut(out, what, strlen(what), NAME_SHOWN);
		buf_text(out, what[0] && why[0] ? ": " : "");
		utf8_show_cut(out, why, strlen(why), WHY_SHOWN);
		buf_text(out, ")");
	}
	if (count > FAILED_SHOWN)
		buf_printf(out, ", +%zu more", count - FAILED_SHOWN);
	if (count)
		buf_text(out, ".\n");
}

static void tell_versions(const json_t *versions, struct buf *out)
{
	size_t i;
	json_t *row;

	json_array_foreach(versions, i, row)
	{
		const char *const text[] = {json_string_value(json_array_get(row, 0)),
					    json_string_value(json_array_get(row, 1)),
					    json_string_value(json_array_get(row, 2))};

		if (text[0] && text[1] && text[2])
			buf_printf(
			    out,
			    "%.64s is now %.32s; it was %.32s when the state was "
			    "saved.\n",
			    text[0], text[2], text[1]);
	}
}

/* Cells whose effects on the variables were not saved, though nobody left them. */
static void tell_lost_cells(struct workspace *self, long long cell, long long now,
			    struct buf *out)
{
	long long base = self->saving.base;
	long long first = (cell > base ? cell : base) + 1, last = now - 1;

	if (last < first)
		return;
	buf_printf(out, "; what cell%s %lld", last > first ? "s" : "", first);
	if (last > first)
		buf_printf(out, " to %lld", last);
	buf_text(out, " did to them is lost");
}

static void tell_gone(const char *what, const char *name, struct buf *out)
{
	if (!name)
		return;
	buf_text(out, what);
	utf8_show_cut(out, name, strlen(name), WHY_SHOWN);
	buf_text(out, ".\n");
}

static void tell(struct workspace *self, const json_t *restored, struct buf *out)
{
	const json_t *failed = json_object_get(restored, "failed");
	long long cell = json_integer_of(restored, "cell", 0);
	size_t names = json_count_of(restored, "names");
	size_t count = names ? names : json_count_of(restored, "imports");

	tell_gone("The saved state could not be restored: ",
		  json_text(restored, "error", NULL), out);
	if (!count && !json_array_size(failed))
		return; /* there was nothing to come back */
	buf_printf(out, "%zu %s%s restored, as after cell %lld", count,
		   count > names ? "import" : "variable", plural_s(count), cell);
	tell_lost_cells(self, cell, (long long)self->cells, out);
	buf_text(out, ".\n");
	tell_versions(json_object_get(restored, "causes"), out);
	tell_failed(failed, out);
	if (json_is_true(json_object_get(restored, "kept")))
		buf_text(out,
			 "What could not be loaded stays saved, and comes back once "
			 "it can be, unless its name is used anew.\n");
	tell_versions(json_object_get(restored, "versions"), out);
	tell_gone("The working directory is no longer there: ",
		  json_text(restored, "cwd_gone", NULL), out);
}

void saving_tell_restored(struct workspace *self, const json_t *reply, struct buf *out)
{
	const json_t *restored = json_object_get(reply, "restored");

	if (!json_is_object(restored))
		return;
	tell(self, restored, out);
	self->saving.untold = false;
	self->saving.failures = 0;
	self->saving.culprit[0] = '\0';
}

void saving_tell_begun(struct workspace *self, struct buf *out)
{
	if (!self->saving.untold)
		return;
	self->saving.untold = false;
	buf_printf(out, " It had begun with the variables as after cell %lld",
		   self->saving.began);
	tell_lost_cells(self, self->saving.began, (long long)self->cells, out);
	buf_text(out, ".");
}

/* ---- going back ---- */

/* The names of the state that it went back to, as a reply would tell them. */
static json_t *known_of(const json_t *back)
{
	const json_t *names = json_object_get(back, "names");
	json_t *vars = json_array();

	for (size_t i = 0; i < json_array_size(names); i++) {
		const json_t *row = json_array_get(names, i);

		json_array_append_new(vars,
				      json_pack("[ss]", json_text(row, "name", ""),
						json_text(row, "type", "")));
	}
	return json_pack("{so}", "vars", vars);
}

void saving_went_back(struct workspace *self, const json_t *answer)
{
	self->saving.cell = json_integer_of(answer, "cell", 0);
	proof_newest(self, 0);
	workspace_remember(self, known_of(answer));
}

static json_t *back_job(struct workspace *self, enum call_back back, long long cells,
			bool look)
{
	bool by = back == BACK_BY;

	adopt_postponed(self); /* it goes back from there */
	return json_pack("{ss sI sI sb}", "do", by ? "undo" : "restore",
			 by ? "cells" : "cell", (json_int_t)cells, "last_cell",
			 (json_int_t)self->cells, "look", look);
}

int workspace_ask_undo(struct workspace *self, long long cells, store_done_fn *done,
		       void *arg, struct err *err)
{
	return workspace_ask(self, back_job(self, BACK_BY, cells, true), done, arg,
			     err);
}

static void ask_back(struct workspace *self, struct call *call, bool look,
		     store_done_fn *done)
{
	const struct call_options *options = &call->options;
	struct err err;

	if (workspace_ask(self, back_job(self, options->back, options->cells, look),
			  done, call, &err) == 0)
		return;
	call_fail(call, "%s", err.msg);
	workspace_pump(self);
}

static void on_looked(const json_t *answer, void *arg)
{
	struct call *call = arg;
	const char *error = json_text(answer, "error", NULL);

	if (call->state != CALL_STARTING)
		return; /* cancelled, or it waited too long */
	call->looked = true;
	if (error)
		call_fail(call, "%s.", error);
	workspace_pump(call->workspace);
}

bool saving_look_back(struct workspace *self, struct call *call)
{
	if (call->looked || !self->kernel)
		return false;
	if (!call->looking) {
		call->looking = true;
		call_starting(call);
		ask_back(self, call, true, on_looked);
	}
	return true;
}

void saving_go_back(struct workspace *self, struct call *call)
{
	if (call->going)
		return;
	call->going = true;
	ask_back(self, call, false, call_on_back);
}

// SPDX-License-Identifier: MIT
#include "kernelmgr/proof.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernelmgr/call_impl.h"
#include "wire/json.h"
#include "wire/log.h"
#include "wire/mem.h"
#include "wire/words.h"

enum {
	REST_US = 5 * 1000 * 1000,    /* since the last call */
	EVERY_US = 60 * 1000 * 1000,  /* between two tries in a workspace */
	WHOLE_US = 180 * 1000 * 1000, /* for one try */
	BYTES_MAX = 1 << 30,          /* of a state: it is in memory twice then */
};

struct proof {                         /* one try */
	struct workspace_place *place; /* borrowed */
	struct workspace *workspace;   /* borrowed; NULL: nobody wants to know */
	uint64_t generation;
	long long cell;
	struct kernel *kernel; /* NULL: the store was asked */
	bool told;             /* its result is known */
	char msg_id[JMSG_ID_SIZE];
	struct loop_timer deadline;
};

static void proof_destroy(struct proof **self)
{
	struct proof *dead = take(self);

	loop_timer_stop(&dead->deadline);
	kernel_destroy(&dead->kernel);
	free(dead);
}

/* ---- its end ---- */

/* Nobody wants to know any more.  A kernel that is being killed is still reaped. */
static void give_up(struct proof *self)
{
	struct workspace_place *place = self->place;

	loop_timer_stop(&self->deadline);
	if (self->workspace)
		workspace_forget(self->workspace, self);
	if (!self->kernel) {
		proof_destroy(&place->proof);
		return;
	}
	if (self->workspace)
		place->kernels_alive--;
	self->workspace = NULL;
	kernel_dismiss(self->kernel, "tried a state that nobody asks about now");
}

void proof_yield(struct workspace_place *place)
{
	struct proof *self = place->proof;
	struct workspace *workspace = self ? self->workspace : NULL;

	if (!workspace)
		return;
	if (!self->told)
		workspace->proving.tried = 0; /* it has its try still before it */
	give_up(self);
	proof_plan(workspace);
}

void proof_finish(struct workspace_place *place)
{
	if (place->proof)
		proof_destroy(&place->proof);
}

void proof_forget(struct workspace *self)
{
	struct proof *proof = self->place->proof;

	loop_timer_stop(&self->proving.rest);
	json_decref(self->proving.found);
	self->proving.found = NULL;
	if (proof && proof->workspace == self)
		give_up(proof);
}

static void on_deadline(void *arg)
{
	struct proof *self = arg;

	log_warn(self->workspace->name,
		 "trying the state after cell %lld took too long", self->cell);
	give_up(self);
}

/* A workspace without a kernel needs no helper either. */
static void on_noted(const json_t *answer, void *arg)
{
	struct workspace *workspace = arg;
	const char *error = json_text(answer, "error", NULL);

	if (error)
		log_warn(workspace->name, "store: %s", error);
	if (!workspace->kernel && TAILQ_EMPTY(&workspace->calls))
		store_rest(workspace->saving.store);
}

/* Takes rows.  culprit: the name that ended the kernel, or NULL. */
static void conclude(struct proof *self, json_t *rows, const char *culprit)
{
	struct workspace *workspace = self->workspace;
	struct proving *proving = &workspace->proving;
	size_t count = json_array_size(rows);

	self->told = true;
	log_info(workspace->name, "the state after cell %lld was tried: %zu name%s %s",
		 self->cell, count, plural_s(count),
		 count == 1 ? "does not load" : "do not load");
	store_ask(workspace->saving.store,
		  json_pack("{ss sI sO ss*}", "do", "tried", "generation",
			    (json_int_t)self->generation, "rows", rows, "culprit",
			    culprit),
		  on_noted, workspace);
	json_decref(proving->found);
	proving->found = rows;
	proving->found_cell = self->cell;
}

/* ---- its kernel ---- */

static void on_ready(void *arg)
{
	struct proof *self = arg;
	struct err err;

	if (self->workspace &&
	    kernel_execute(self->kernel, "", 0, false, self->msg_id, &err) < 0) {
		log_warn(self->workspace->name, "%s", err.msg);
		give_up(self);
	}
}

static json_t *rows_of(const json_t *restored)
{
	const json_t *failed = json_object_get(restored, "failed");
	const char *error = json_text(restored, "error", NULL);

	if (error)
		return json_pack("[{ss ss ss}]", "name", "all of it", "what", "", "why",
				 error);
	return json_is_array(failed) ? json_deep_copy(failed) : json_array();
}

static void on_message(enum kernel_channel channel, const struct jmsg *message,
		       void *arg)
{
	struct proof *self = arg;
	const json_t *ours = json_object_get(message->metadata, "vivarium");
	const json_t *restored = json_object_get(ours, "restored");

	if (!self->workspace || channel != KERNEL_SHELL ||
	    strcmp(message->parent_id, self->msg_id) != 0)
		return;
	if (json_is_object(restored))
		conclude(self, rows_of(restored), NULL);
	kernel_dismiss(self->kernel, "has tried a state");
}

/* By somebody's kill it was not the name's fault. */
static bool blames(const struct kernel_death *death)
{
	if (!death->restoring || !death->culprit[0])
		return false;
	if (death->requested || death->status < 0) /* we did: it did not get on */
		return death->requested;
	return !WIFSIGNALED(death->status) || (WTERMSIG(death->status) != SIGKILL &&
					       WTERMSIG(death->status) != SIGTERM);
}

static void on_dead(const struct kernel_death *death, void *arg)
{
	struct proof *self = arg;
	struct workspace *workspace = self->workspace;
	struct workspace_place *place = self->place;

	self->kernel = NULL;
	if (workspace && !self->told && blames(death)) {
		owned(free_text) char *why = xasprintf("a kernel %s", death->words);

		conclude(
		    self,
		    json_pack("[{so ss so}]", "name",
			      json_string_lossy(death->culprit, strlen(death->culprit)),
			      "what", "", "why", json_string_lossy(why, strlen(why))),
		    death->culprit);
	}
	if (workspace)
		place->kernels_alive--;
	proof_destroy(&place->proof);
	if (workspace)
		workspace_pump(workspace);
}

static int start(struct proof *self, const json_t *answer, struct err *err)
{
	struct workspace *workspace = self->workspace;
	const char *dir = store_dir(workspace->saving.store);
	const char *moved_from = json_text(answer, "moved_from", "");
	owned(free_text) char *spool = xasprintf("%s/proof", dir);
	owned(free_text) char *name = xasprintf("%.60s/proof", workspace->name);
	/* States of its own are of no use: its spool is emptied before the next try. */
	const struct kernel_owner owner = {
	    .ready = on_ready, .message = on_message, .dead = on_dead, .arg = self};
	const struct connfile_snapshot snapshot = {
	    .store = dir,
	    .spool = spool,
	    .generation = (uint64_t)json_integer_of(answer, "last", 0),
	    .namespace_max = self->place->namespace_max,
	    .manifest = json_text(answer, "manifest", ""),
	    .skip = json_object_get(answer, "skip"),
	    .older = json_object_get(answer, "older"),
	    .moved_from = moved_from[0] ? moved_from : NULL,
	};
	const struct kernel_begin begin = {.workdir = workspace->dir,
					   .home = workspace->home,
					   .owner = workspace->owner,
					   .cell = (long long)workspace->cells + 1,
					   .snapshot = &snapshot};

	return kernel_create(&self->kernel, &self->place->kernels, name, &begin, &owner,
			     err);
}

static void on_state(const json_t *answer, void *arg)
{
	struct proof *self = arg;
	const char *error = json_text(answer, "error", NULL);
	struct err err;

	self->cell = json_integer_of(answer, "cell", 0);
	if (error)
		log_warn(self->workspace->name, "store: %s", error);
	if (error || json_integer_of(answer, "generation", 0) == 0 ||
	    json_integer_of(answer, "bytes", 0) > BYTES_MAX) {
		give_up(self);
		return;
	}
	if (start(self, answer, &err) < 0) {
		log_warn(self->workspace->name, "%s", err.msg);
		give_up(self);
		return;
	}
	self->place->kernels_alive++;
	loop_timer_start(self->place->kernels.loop, &self->deadline, WHOLE_US,
			 on_deadline, self);
}

/* ---- when ---- */

static bool machine_is_idle(void)
{
	double load;

	return getloadavg(&load, 1) == 1 &&
	       load < (double)sysconf(_SC_NPROCESSORS_ONLN) / 2;
}

static bool is_wanted(const struct workspace *self)
{
	return self->saving.store && self->place->config->verify != VERIFY_OFF &&
	       self->proving.newest && self->proving.newest != self->proving.tried &&
	       TAILQ_EMPTY(&self->calls) && !self->draining;
}

static bool is_possible(const struct workspace *self)
{
	const struct workspace_place *place = self->place;
	const struct proving *proving = &self->proving;

	if (place->proof ||
	    place->kernels_alive >= (size_t)place->config->max_kernels ||
	    (self->kernel && kernel_state(self->kernel) != KERNEL_IDLE) ||
	    (proving->began_us && loop_now_us() - proving->began_us < EVERY_US))
		return false;
	return place->config->verify == VERIFY_ALWAYS || machine_is_idle();
}

static void on_rested(void *arg)
{
	struct workspace *self = arg;
	struct proof *proof;

	if (!is_wanted(self))
		return;
	if (!is_possible(self)) {
		proof_plan(self);
		return;
	}
	proof = xcalloc(1, sizeof *proof);
	proof->place = self->place;
	proof->workspace = self;
	proof->generation = self->proving.tried = self->proving.newest;
	self->proving.began_us = loop_now_us();
	self->place->proof = proof;
	store_ask(self->saving.store,
		  json_pack("{ss sI}", "do", "try", "generation",
			    (json_int_t)proof->generation),
		  on_state, proof);
}

void proof_plan(struct workspace *self)
{
	if (is_wanted(self))
		loop_timer_start(self->place->kernels.loop, &self->proving.rest,
				 REST_US, on_rested, self);
}

void proof_newest(struct workspace *self, uint64_t generation)
{
	const struct proof *proof = self->place->proof;

	self->proving.newest = generation;
	if (proof && proof->workspace == self)
		proof_yield(self->place);
	proof_plan(self);
}

/* ---- what is told ---- */

void proof_tell(struct workspace *self, json_t *summary)
{
	json_t *lost = json_object_get(json_object_get(summary, "snapshot"), "lost");
	json_t *row;
	size_t i;

	if (!self->proving.found || !json_is_array(lost))
		return;
	json_array_foreach(self->proving.found, i, row)
	{
		if (json_row_named(lost, json_text(row, "name", "")))
			continue;
		json_object_set_new(row, "tried",
				    json_integer(self->proving.found_cell));
		json_array_append(lost, row);
	}
	json_decref(self->proving.found);
	self->proving.found = NULL;
}

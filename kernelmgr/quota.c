// SPDX-License-Identifier: MIT
#include "kernelmgr/quota.h"

#include <stdio.h>
#include <string.h>

#include "kernelmgr/call_impl.h"
#include "kernelmgr/files.h"
#include "wire/log.h"

enum {
	EVERY_US = 1000 * 1000,     /* while a cell runs */
	REST_US = 10 * 1000 * 1000, /* while none does, at first */
	REST_MAX_US = 320 * 1000 * 1000,
	COST_TIMES = 20, /* a measuring may take this part of the time between two */
	PATIENCE_US = 1000 * 1000, /* of an answer that waits for a measuring */
	MORE_PART = 10,            /* of the quota, before the next interrupt */
};

static void on_tick(void *arg);

static uint64_t most(const struct workspace *self)
{
	return (uint64_t)self->place->config->quota;
}

/* While no cell runs, something may that a cell left: looked at less and less often as
 * long as nothing changes. */
static int64_t rest_us(struct quota *quota)
{
	int64_t wait_us = quota->rest_us ? quota->rest_us : REST_US;

	quota->rest_us = wait_us * 2 < REST_MAX_US ? wait_us * 2 : REST_MAX_US;
	return wait_us;
}

static void plan_tick(struct workspace *self, int64_t took_us)
{
	struct quota *quota = &self->quota;
	int64_t wait_us = EVERY_US;

	loop_timer_stop(&quota->tick);
	if (!self->kernel)
		return;
	if (!workspace_running(self))
		wait_us = rest_us(quota);
	if (wait_us < COST_TIMES * took_us)
		wait_us = COST_TIMES * took_us;
	loop_timer_start(self->place->kernels.loop, &quota->tick, wait_us, on_tick,
			 self);
}

/* ---- what was found ---- */

static void write_words(struct workspace *self, const struct usage_found *found)
{
	struct quota *quota = &self->quota;
	char used[FILES_SIZE_TEXT], limit[FILES_SIZE_TEXT];

	buf_finish(&quota->words);
	if (!quota->over)
		return;
	files_size_text(used, found->bytes);
	files_size_text(limit, most(self));
	bool little = strcmp(used, limit) == 0;
	buf_printf(&quota->words,
		   "The workspace's files take %s%s the %s that they may",
		   little ? "a little more" : used, little ? " than" : " of", limit);
	if (found->unclear[0])
		buf_printf(&quota->words, " or more: it has %s", found->unclear);
	buf_text(&quota->words, " (VIVARIUM_WORKSPACE_QUOTA). Delete files");
	if (found->largest[0])
		buf_printf(&quota->words, "; the largest: %s", found->largest);
	buf_text(&quota->words, ".\n");
}

/* It went over, or again by a tenth. */
static void stop_writing(struct workspace *self)
{
	struct call *call = workspace_running(self);

	if (call) {
		call_over_quota(call);
		return;
	}
	if (!self->kernel || kernel_state(self->kernel) != KERNEL_IDLE)
		return;
	buf_text(&self->notice, "What earlier cells had left running went on writing "
				"files over the quota, so the kernel was stopped; this "
				"call runs in a new one.\n");
	kernel_stop(self->kernel);
}

static void take_found(struct workspace *self, const struct usage_found *found,
		       bool watching)
{
	struct quota *quota = &self->quota;
	uint64_t limit = most(self);

	if (found->bytes != quota->used)
		quota->rest_us = REST_US;
	quota->used = found->bytes;
	if (found->unclear[0] && quota->used <= limit)
		quota->used = limit + 1;
	quota->over = quota->used > limit;
	write_words(self, found);
	if (!quota->over || quota->ceiling < limit)
		quota->ceiling = limit;
	if (quota->used <= quota->ceiling)
		return;
	quota->ceiling = quota->used + limit / MORE_PART;
	if (watching)
		stop_writing(self);
}

static void answer(struct workspace *self)
{
	struct call *call = take(&self->quota.waiting);

	loop_timer_stop(&self->quota.patience);
	if (call)
		call_on_measured(call);
}

static void on_patience(void *arg)
{
	answer(arg);
}

/* ---- measuring ---- */

static void measure(struct workspace *self);

static void on_found(const struct usage_found *found, void *arg)
{
	struct workspace *self = arg;
	struct quota *quota = &self->quota;
	int64_t took_us = loop_now_us() - quota->began_us;
	bool again = quota->stale;

	quota->measuring = NULL;
	quota->stale = false;
	if (found)
		take_found(self, found, !again && !quota->waiting);
	if (again) {
		measure(self);
		return;
	}
	answer(self);
	plan_tick(self, took_us);
}

static void measure(struct workspace *self)
{
	struct quota *quota = &self->quota;
	const struct kernel_place *place = &self->place->kernels;
	struct usage_place places[USAGE_PLACES_MAX] = {{self->home, "~"}};
	size_t count = 1;
	struct err err;

	if (self->kernel) {
		places[count].dir = kernel_runtime_dir(self->kernel);
		places[count].shown =
		    walls_shown_runtime(place->walls, places[count].dir);
		count++;
	}
	quota->began_us = loop_now_us();
	if (usage_start(&quota->measuring, place->loop, place->paths,
			files_fd(self->files), places, count, on_found, self,
			&err) == 0)
		return;
	log_warn(self->name, "measure its files: %s", err.msg);
	answer(self);
	plan_tick(self, EVERY_US);
}

static void on_tick(void *arg)
{
	struct workspace *self = arg;

	if (!self->quota.measuring)
		measure(self);
}

/* ---- what the workspace tells ---- */

void quota_finish(struct workspace *self)
{
	loop_timer_stop(&self->quota.tick);
	loop_timer_stop(&self->quota.patience);
	usage_destroy(&self->quota.measuring);
	buf_finish(&self->quota.words);
}

void quota_on_begin(struct workspace *self)
{
	if (most(self) && !self->quota.measuring)
		plan_tick(self, 0);
}

void quota_on_end(struct workspace *self, struct call *call)
{
	struct quota *quota = &self->quota;

	if (!most(self)) {
		call_on_measured(call);
		return;
	}
	answer(self); /* of an earlier call, if it has waited for so long */
	quota->rest_us = REST_US;
	quota->waiting = call;
	loop_timer_start(self->place->kernels.loop, &quota->patience, PATIENCE_US,
			 on_patience, self);
	if (quota->measuring)
		quota->stale = true;
	else
		measure(self);
}

void quota_forget(struct workspace *self, const struct call *call)
{
	if (self->quota.waiting == call)
		self->quota.waiting = NULL;
}

int quota_take(struct workspace *self, uint64_t size, struct err *err)
{
	struct quota *quota = &self->quota;
	char limit[FILES_SIZE_TEXT];

	if (!most(self))
		return 0;
	bool fits = !quota->over && quota->used + size <= most(self);
	if (fits)
		quota->used += size;
	if (!quota->measuring)
		measure(self);
	files_size_text(limit, most(self));
	return fits ? 0
		    : err_set(err, ERR_LIMIT,
			      "the workspace's files may take %s "
			      "(VIVARIUM_WORKSPACE_QUOTA): delete some first",
			      limit);
}

void quota_tell(const struct workspace *self, struct buf *out)
{
	buf_text(out, buf_str(&self->quota.words));
}

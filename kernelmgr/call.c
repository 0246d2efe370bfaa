// SPDX-License-Identifier: MIT
#include "kernelmgr/call_impl.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "wire/json.h"
#include "wire/log.h"
#include "wire/mem.h"
#include "wire/utf8.h"
#include "wire/words.h"

enum {
	EXIT_NOT_RUN = 125,
	EXIT_TIMED_OUT = 124,
	EXIT_SIGNALLED = 128,          /* and the signal's number */
	EXTENSIONS_MAX = 150,          /* five minutes of backlog */
	PROMPT_CHARS = 1000,           /* of what input() shows */
	CROWDED_US = 20 * 1000 * 1000, /* for an answer, while another call waits */
};

#define TO(id) (1u << CALL_##id)
static const struct state_row rows[] = {
#define X(id, text, next, deadline_s, then)                                            \
	[CALL_##id] = {text, next, deadline_s, then},
    CALL_STATES(X)
#undef X
};

static void on_deadline(void *arg);
static void on_pictures_done(void *arg);

enum call_state call_state(const struct call *self)
{
	return self->state;
}

const char *call_state_name(enum call_state state)
{
	return rows[state].name;
}

static struct loop *loop_of(const struct call *self)
{
	return self->workspace->place->kernels.loop;
}

double call_deadline_s(enum call_state state)
{
	return rows[state].deadline_s;
}

void call_states_markdown(FILE *to)
{
	states_markdown(rows, CALL_STATE_COUNT, to);
}

/* What is left for a state that it may be in more than once; NULL: any other. */
static int64_t *time_for(struct call *self, enum call_state state)
{
	return state == CALL_RUNNING  ? &self->run_us
	       : state == CALL_ASKING ? &self->ask_us
				      : NULL;
}

/* In all, until the user answers: code that asks again and again of who declines would
 * go on for ever. */
static void give_time(struct call *self)
{
	self->run_us = self->options.timeout_s * 1000000;
	self->ask_us = (int64_t)rows[CALL_ASKING].deadline_s * 1000000;
}

static int64_t deadline_us(struct call *self, enum call_state state)
{
	const int64_t *left = time_for(self, state);

	if (!left)
		return (int64_t)rows[state].deadline_s * 1000000;
	if (state == CALL_ASKING && self->workspace->waiting > 1 && *left > CROWDED_US)
		return CROWDED_US;
	return *left > 0 ? *left : 1;
}

static void use_time(struct call *self)
{
	int64_t now = loop_now_us(), *left = time_for(self, self->state);

	if (left)
		*left -= now - self->since_us;
	self->since_us = now;
}

/* The only way to change state. */
static void set_state(struct call *self, enum call_state next, const char *why)
{
	assert(rows[self->state].next & (1u << next));
	log_debug(self->workspace->name, "call %llu: %s -> %s (%s)", self->cell,
		  rows[self->state].name, rows[next].name, why);
	use_time(self);
	self->state = next;
	loop_timer_stop(&self->deadline);
	if (deadline_us(self, next) > 0)
		loop_timer_start(loop_of(self), &self->deadline,
				 deadline_us(self, next), on_deadline, self);
}

/* Another call waits for it: if it only waits for an answer, that is not to take long.
 */
static void hurry(struct call *self)
{
	if (self->state != CALL_ASKING)
		return;
	use_time(self);
	loop_timer_start(loop_of(self), &self->deadline, deadline_us(self, CALL_ASKING),
			 on_deadline, self);
}

int call_create(struct call **out, struct workspace *workspace, const char *code,
		size_t size, const struct call_options *options, call_done_fn *done,
		void *arg, struct err *err)
{
	const struct config *config = workspace->place->config;
	/* The head of the queue has the kernel. */
	size_t waiting = workspace->waiting ? workspace->waiting - 1 : 0;

	if (workspace->draining)
		return err_set(err, ERR_KERNEL, "Vivarium is stopping");
	if (waiting >= (size_t)config->queue_limit)
		return err_set(err, ERR_LIMIT,
			       "%zu call%s in workspace %s already "
			       "(VIVARIUM_QUEUE_LIMIT); try again later",
			       waiting, waiting == 1 ? " waits" : "s wait",
			       workspace->name);

	struct call *self = xcalloc(1, sizeof *self);
	self->workspace = workspace;
	self->options = *options;
	give_time(self);
	self->done = done;
	self->arg = arg;
	buf_add(&self->code, code, size);
	outputs_init(&self->outputs, config_output_chars(config));
	TAILQ_INSERT_TAIL(&workspace->calls, self, link);
	if (++workspace->waiting == 2)
		hurry(TAILQ_FIRST(&workspace->calls));
	self->noted = journal_queued(workspace->place->journal, workspace->name);
	workspace_pump(workspace);
	*out = self;
	return 0;
}

void call_destroy(struct call **self)
{
	struct call *dead = take(self);

	if (!dead)
		return;
	loop_timer_stop(&dead->deadline);
	workspace_forget(dead->workspace, dead);
	branch_drop(dead->workspace, dead);
	quota_forget(dead->workspace, dead);
	pictures_destroy(&dead->pictures);
	json_decref(dead->back);
	files_list_finish(&dead->wrote);
	files_scan_finish(&dead->before);
	files_scan_finish(&dead->after);
	outputs_finish(&dead->outputs);
	buf_finish(&dead->code);
	buf_finish(&dead->notice);
	buf_finish(&dead->late);
	free(dead);
}

/* ---- the end ---- */

/* A turn of the loop later, so that nobody below us still holds the call. */
static void deliver(void *arg)
{
	struct call *self = arg;
	struct outcome outcome = {
	    .end = self->end,
	    .exit_code = self->exit_code,
	    .notice = buf_str(&self->notice),
	    .notice_before = self->notice_before,
	    .outputs = &self->outputs,
	    .lines = self->lines,
	    .late = buf_str(&self->late),
	    .pictures_left_out =
		self->pictures_left_out + self->outputs.displays_dropped,
	    .wrote = &self->wrote,
	    .workspace = &self->after,
	    .duration_us = self->ended_us - self->started_us,
	    .cell = self->cell,
	    .walls = self->workspace->place->kernels.walls->lower,
	    .branch = self->options.branch,
	    .back = self->back,
	};

	if (self->pictures)
		outcome.pictures =
		    pictures_results(self->pictures, &outcome.picture_count);
	/* Durations, sizes and outcomes; never code or output. */
	log_info(self->workspace->name,
		 "cell %llu: %lld ms, exit code %d, %zu byte%s of code", self->cell,
		 (long long)outcome.duration_us / 1000, self->exit_code,
		 self->code.size, plural_s(self->code.size));
	TAILQ_REMOVE(&self->workspace->finishing, self, link);
	journal_ended(self->workspace->place->journal, self->noted);
	self->done(&outcome, self->arg);
	call_destroy(&self);
}

static void finish(struct call *self, const char *why)
{
	set_state(self, CALL_DONE, why);
	loop_timer_start(loop_of(self), &self->deadline, 1, deliver, self);
}

static void leave_queue(struct call *self)
{
	TAILQ_REMOVE(&self->workspace->calls, self, link);
	self->workspace->waiting--;
	branch_drop(self->workspace, self);
	TAILQ_INSERT_TAIL(&self->workspace->finishing, self, link);
}

void call_fail(struct call *self, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	buf_printf(&self->notice, "%s\n", text);
	self->end = CALL_NOT_RUN;
	self->exit_code = EXIT_NOT_RUN;
	leave_queue(self);
	finish(self, text);
}

static void tell_changes(const struct call *self)
{
	owned(files_list_finish) struct files_list gone = {0};

	files_gone(&self->before, &self->after, &gone);
	bool names = gone.count || self->before.count != self->after.count;
	if (names || self->wrote.count)
		workspace_changed(self->workspace,
				  &(struct files_change){.wrote = &self->wrote,
							 .gone = &gone,
							 .names = names});
}

/* The kernel has done its part: look at what there is, let the next call run. */
static void end_run(struct call *self, const char *why)
{
	struct err err;

	self->ended_us = loop_now_us();
	if (files_scan(self->workspace->files, FILES_SCAN_LIMIT, &self->after, &err) <
	    0)
		log_warn(self->workspace->name, "%s", err.msg);
	files_diff(&self->before, &self->after, &self->wrote);
	tell_changes(self);
	if (self->workspace->kernel)
		kernel_tell_limits(self->workspace->kernel, &self->notice);
	set_state(self, CALL_PICTURES, why);
	leave_queue(self);
	workspace_release(self->workspace, self);
	self->measuring = true;
	quota_on_end(self->workspace, self);
	call_begin_pictures(self, on_pictures_done);
}

/* What its kernel began with belongs to what was before it. */
static void tell_restored(struct call *self)
{
	bool nothing_else = self->notice.size == self->notice_before;

	saving_tell_restored(self->workspace, self->outputs.summary, &self->notice);
	proof_tell(self->workspace, self->outputs.summary);
	if (nothing_else)
		self->notice_before = self->notice.size;
}

static void judge(struct call *self)
{
	const struct outputs *outputs = &self->outputs;
	long long code = json_integer_of(outputs->summary, "exit_code",
					 outputs->error_name || outputs->aborted);

	if (code < 0 || code > 255) /* no kernel of ours says that */
		code = 1;
	self->exit_code = (int)code;
	tell_restored(self);
	if (self->end == CALL_TIMED_OUT)
		self->exit_code = EXIT_TIMED_OUT;
	else if (self->end == CALL_CANCELLED)
		self->exit_code = EXIT_SIGNALLED + 2; /* SIGINT */
	else
		self->end = code ? CALL_ERROR : CALL_OK;
	call_tell_end(self);
}

/* ---- pictures ---- */

static void finish_with_all(struct call *self)
{
	if (!self->pictured || self->measuring)
		return;
	quota_tell(self->workspace, &self->notice);
	finish(self, "all is there");
}

static void on_pictures_done(void *arg)
{
	struct call *self = arg;

	self->pictured = true;
	finish_with_all(self);
}

void call_on_measured(struct call *self)
{
	self->measuring = false;
	finish_with_all(self);
}

/* ---- what happens to it ---- */

void call_starting(struct call *self)
{
	if (self->state != CALL_STARTING)
		set_state(self, CALL_STARTING, "needs a kernel");
}

void call_send(struct call *self)
{
	struct workspace *workspace = self->workspace;
	struct err err;

	files_scan_finish(&self->before); /* a second try has one already */
	if (files_scan(workspace->files, FILES_SCAN_LIMIT, &self->before, &err) < 0)
		log_warn(workspace->name, "%s", err.msg);
	if (kernel_execute(workspace->kernel, buf_str(&self->code), self->code.size,
			   self->options.input != NULL, self->msg_id, &err) < 0) {
		call_fail(self, "%s", err.msg);
		return;
	}
	self->cell = ++workspace->cells;
	journal_begun(workspace->place->journal, self->noted, self->cell);
	buf_add(&self->notice, buf_str(&workspace->notice), workspace->notice.size);
	buf_finish(&workspace->notice);
	self->notice_before = self->notice.size;
	clip_render(&workspace->late, &self->late);
	clip_finish(&workspace->late);
	workspace->late = (struct clip){.limit = workspace->late.limit};
	self->started_us = loop_now_us();
	set_state(self, CALL_SENT, self->msg_id);
	quota_on_begin(workspace);
}

static void interrupt(struct call *self, enum call_end end)
{
	self->end = end;
	self->interrupted_s = call_seconds_run(self);
	set_state(self, CALL_INTERRUPTING,
		  end == CALL_TIMED_OUT ? "timed out" : "cancelled");
	kernel_interrupt(self->workspace->kernel);
}

static bool can_be_interrupted(const struct call *self)
{
	return self->state == CALL_SENT || self->state == CALL_RUNNING ||
	       self->state == CALL_ASKING;
}

void call_over_quota(struct call *self)
{
	if (!can_be_interrupted(self))
		return;
	self->over_quota = true;
	interrupt(self, CALL_CANCELLED);
}

void call_cancel(struct call *self)
{
	if (self->state <= CALL_STARTING)
		call_fail(self, "Cancelled before it ran.");
	else if (can_be_interrupted(self))
		interrupt(self, CALL_CANCELLED);
}

static void look(struct call *self)
{
	const struct outputs *outputs = &self->outputs;

	if (self->state == CALL_SENT && outputs->busy)
		set_state(self, CALL_RUNNING, "busy");
	if (outputs->replied && outputs->idle) {
		judge(self);
		end_run(self, "reply and idle");
	} else if (outputs->replied && self->state != CALL_REPLIED) {
		kernel_release(self->workspace->kernel); /* nothing to interrupt */
		set_state(self, CALL_REPLIED, "execute_reply");
	} else if (outputs->idle && self->state != CALL_IDLED) {
		set_state(self, CALL_IDLED, "idle");
	}
}

/* By the kernel's report, since code that holds the interpreter lock from its first
 * moment on keeps "busy" from being sent. */
void call_on_begun(struct call *self)
{
	if (self->state == CALL_SENT)
		set_state(self, CALL_RUNNING, "begun");
}

/* The kernel numbers its cells, and it is its numbers that the user sees. */
static void take_number(struct call *self)
{
	long long number = self->outputs.execution_count;

	if (number > 0)
		self->cell = self->workspace->cells = (unsigned long long)number;
}

/* One at a time; code in the kernel can send anything. */
static void on_stdin(struct call *self, const struct jmsg *message)
{
	owned(buf_finish) struct buf prompt = {0};
	const json_t *text = json_object_get(message->content, "prompt");

	if (!self->options.input || strcmp(message->type, "input_request") != 0 ||
	    (self->state != CALL_SENT && self->state != CALL_RUNNING))
		return;
	if (self->state == CALL_SENT)
		set_state(self, CALL_RUNNING, "asks");
	set_state(self, CALL_ASKING, "input_request");
	utf8_show_cut(&prompt, json_is_string(text) ? json_string_value(text) : "",
		      json_string_length(text), PROMPT_CHARS);
	self->options.input(buf_str(&prompt), self->arg);
}

void call_answer(struct call *self, const char *text, size_t size)
{
	static const char end_of_file[] = "\4"; /* as ipykernel reads it */

	if (self->state != CALL_ASKING)
		return;
	use_time(self);
	if (text)
		give_time(self);
	set_state(self, CALL_RUNNING, text ? "answered" : "not answered");
	kernel_answer(self->workspace->kernel, text ? text : end_of_file,
		      text ? size : sizeof end_of_file - 1);
}

void call_on_message(struct call *self, enum kernel_channel channel,
		     const struct jmsg *message)
{
	self->messages++;
	if (channel == KERNEL_STDIN) {
		on_stdin(self, message);
		return;
	}
	if (channel == KERNEL_IOPUB) {
		outputs_add(&self->outputs, message);
		call_show(self, message);
	} else if (strcmp(message->type, "execute_reply") == 0) {
		outputs_reply(&self->outputs, message);
	}
	take_number(self);
	look(self);
}

void call_on_death(struct call *self, const struct kernel_death *death)
{
	bool timed_out = self->end == CALL_TIMED_OUT;

	call_tell_death(self, death);
	self->end =
	    timed_out || self->end == CALL_CANCELLED ? CALL_KILLED : CALL_KERNEL_DIED;
	if (timed_out)
		self->exit_code = EXIT_TIMED_OUT;
	else if (death->status >= 0 && WIFSIGNALED(death->status))
		self->exit_code = EXIT_SIGNALLED + WTERMSIG(death->status);
	else if (death->status >= 0)
		self->exit_code = WEXITSTATUS(death->status);
	else
		self->exit_code = EXIT_SIGNALLED + 9;
	end_run(self, "kernel died");
}

void call_on_back(const json_t *answer, void *arg)
{
	struct call *self = arg;
	struct workspace *workspace = self->workspace;
	const char *error = json_text(answer, "error", NULL);

	if (self->state != CALL_STARTING)
		return; /* cancelled, or it waited too long */
	buf_text(&self->notice, json_text(answer, "words", ""));
	if (error) {
		call_fail(self, "%s.", error);
	} else {
		self->back = json_incref((json_t *)(uintptr_t)answer);
		self->end = CALL_OK;
		saving_went_back(workspace, answer);
		leave_queue(self);
		finish(self, "went back");
	}
	workspace_pump(workspace);
}

void call_on_branched(struct call *self, const json_t *answer)
{
	self->back = json_incref((json_t *)(uintptr_t)answer);
	self->end = CALL_OK;
	leave_queue(self);
	finish(self, "branched");
	workspace_pump(self->workspace);
}

/* A reply can be far ahead of the output: what the kernel has printed waits in its
 * memory until we have read it. */
static bool output_still_comes(struct call *self)
{
	bool comes = self->messages != self->messages_at_deadline &&
		     ++self->extensions <= EXTENSIONS_MAX;

	self->messages_at_deadline = self->messages;
	return comes;
}

static void on_deadline(void *arg)
{
	struct call *self = arg;

	switch (self->state) {
	case CALL_STARTING:
		call_fail(self, "The kernel was not ready within %.0f s.",
			  rows[CALL_STARTING].deadline_s);
		break;
	case CALL_ASKING:
		self->options.input(NULL, self->arg);
		call_answer(self, NULL, 0);
		break;
	case CALL_SENT:
	case CALL_RUNNING:
		interrupt(self, CALL_TIMED_OUT);
		break;
	case CALL_INTERRUPTING:
	case CALL_IDLED:
		kernel_kill(self->workspace->kernel);
		break; /* its death ends the call */
	case CALL_REPLIED:
		if (output_still_comes(self)) {
			set_state(self, CALL_REPLIED, "output still comes");
			break;
		}
		buf_text(&self->notice, "The end of the output may be missing: the "
					"kernel did not say that it was idle.\n");
		judge(self);
		end_run(self, "no idle");
		break;
	case CALL_PICTURES:
		buf_text(&self->notice, "The pictures took too long.\n");
		finish(self, "too late");
		break;
	case CALL_QUEUED:
	case CALL_DONE:
	case CALL_STATE_COUNT:
		break;
	}
}

// SPDX-License-Identifier: MIT
#include "kernelmgr/kernel_impl.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernelmgr/sweep.h"
#include "wire/log.h"
#include "wire/mem.h"
#include "wire/utf8.h"

enum {
	CRASH_LINES = 3,        /* of its last output, shown when it dies */
	CRASH_LINE_SHOWN = 120, /* characters of each */
	CLOSING_TURNS_MAX = 40, /* of CLOSING's deadline while output comes */
};

#define TO(id) (1u << KERNEL_##id)
static const struct state_row rows[] = {
#define X(id, text, next, deadline_s, then)                                            \
	[KERNEL_##id] = {text, next, deadline_s, then},
    KERNEL_STATES(X)
#undef X
};

static void on_deadline(void *arg);

enum kernel_state kernel_state(const struct kernel *self)
{
	return self->state;
}

const char *kernel_state_name(enum kernel_state state)
{
	return rows[state].name;
}

const char *kernel_runtime_dir(const struct kernel *self)
{
	return self->runtime_dir;
}

pid_t kernel_pid(const struct kernel *self)
{
	return self->pid;
}

void kernel_states_markdown(FILE *to)
{
	states_markdown(rows, KERNEL_STATE_COUNT, to);
}

void kernel_set_state(struct kernel *self, enum kernel_state next, const char *why)
{
	assert(rows[self->state].next & (1u << next));
	log_debug(self->name, "%s -> %s (%s)", rows[self->state].name, rows[next].name,
		  why);
	self->state = next;
	loop_timer_stop(&self->deadline);
	if (rows[next].deadline_s > 0)
		loop_timer_start(self->place->loop, &self->deadline,
				 (int64_t)(rows[next].deadline_s * 1e6), on_deadline,
				 self);
}

static void tell_supervisor(struct kernel *self, const char *text)
{
	if (self->control_watch)
		send(self->control, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* ---- death ---- */

/* The last lines that it wrote to our pipe, such as a start-up error or the report
 * of a crash: each cut, so that a long one does not hide the one that tells. */
static void add_crash_output(struct kernel *self)
{
	struct buf *out = &self->crash_output;
	owned(buf_finish) struct buf shown = {0};
	const char *from, *end;
	int lines = 0;

	const char *fatal = strstr(buf_str(out), "Fatal Python error");
	if (fatal) { /* faulthandler: this line tells, those after it are frames */
		buf_drop(out, (size_t)(fatal - buf_str(out)));
		out->size = strcspn(out->data, "\n");
		out->data[out->size] = '\0';
	}
	while (out->size && strchr("\n ", out->data[out->size - 1]))
		out->data[--out->size] = '\0';
	from = end = buf_str(out) + out->size;
	while (from > buf_str(out) && (from[-1] != '\n' || ++lines < CRASH_LINES))
		from--;
	for (; from < end; from += strcspn(from, "\n") + 1) {
		buf_text(&shown, shown.size ? " | " : " (it said: ");
		utf8_show_cut(&shown, from, strcspn(from, "\n"), CRASH_LINE_SHOWN);
	}
	size_t at = strlen(self->death.words);
	snprintf(self->death.words + at, sizeof self->death.words - at, "%s%s",
		 buf_str(&shown), shown.size ? ")" : "");
}

static void describe_death(struct kernel *self)
{
	struct kernel_death *death = &self->death;
	char *words = death->words;
	size_t size = sizeof death->words;

	if (death->words[0] || death->status < 0) {
		if (!death->words[0])
			snprintf(words, size, "was lost: its supervisor was killed");
	} else if (WIFSIGNALED(death->status)) {
		int number = WTERMSIG(death->status);
		const char *name = sigabbrev_np(number);

		if (number == SIGKILL && !death->requested &&
		    limits_tell_death(self->place->limits, &self->limits, words, size))
			return;
		int len = snprintf(words, size, "was killed by signal %d (SIG%s)",
				   number, name ? name : "?");

		if (number == SIGKILL && !death->requested && death->memory_kb)
			snprintf(words + len, size - (size_t)len,
				 " at a peak of %lld MB of memory",
				 (long long)(death->memory_kb >> 10));
	} else {
		snprintf(words, size, "exited with status %d",
			 WEXITSTATUS(death->status));
	}
	if (!death->requested && death->status != 0)
		add_crash_output(self);
}

static void release_resources(struct kernel *self)
{
	loop_timer_stop(&self->deadline);
	loop_timer_stop(&self->probe);
	for (size_t i = 0; i < COUNT_OF(self->sockets); i++) {
		zsock_destroy(&self->sockets[i]);
		replay_finish(&self->replays[i]);
	}
	loop_unwatch(&self->report_watch);
	loop_unwatch(&self->output_watch);
	/* This tells the supervisor to end all that is left, if it is still there. */
	loop_unwatch(&self->control_watch);
	child_forget(&self->supervisor);
	close_fd(&self->notices);
	lastwords_close(&self->last_words);
	limits_end(self->place->limits, &self->limits);
	buf_finish(&self->crash_output);
	buf_finish(&self->reported);
	explicit_bzero(&self->session, sizeof self->session);
}

void kernel_destroy(struct kernel **self)
{
	struct kernel *dead = take(self);

	if (!dead)
		return;
	release_resources(dead);
	free(dead);
}

static void finish_death(struct kernel *self)
{
	describe_death(self);
	kernel_set_state(self, KERNEL_DEAD, self->death.words);
	if (self->dropped)
		log_warn(self->name, "dropped %llu of its messages", self->dropped);
	log_info(self->name, "kernel %s", self->death.words);
	if (self->owner.last_words)
		lastwords_tell(&self->last_words, self->owner.last_words,
			       self->owner.arg);
	if (self->death.status < 0) /* no supervisor has done it */
		sweep_tree(self->runtime_dir);
	self->owner.dead(&self->death, self->owner.arg);
	kernel_destroy(&self);
}

void kernel_begin_closing(struct kernel *self, const char *why)
{
	if (self->state >= KERNEL_CLOSING)
		return;
	self->death.started = self->probe_answered;
	self->death.requested =
	    self->state == KERNEL_STOPPING || self->state == KERNEL_KILLING;
	self->death.restoring = self->restoring;
	if (self->restoring)
		kernel_progress(self, self->death.culprit);
	loop_timer_stop(&self->probe);
	kernel_set_state(self, KERNEL_CLOSING, why);
}

/* One value must not hold up all the others for ever. */
static void watch_restoring(struct kernel *self)
{
	char name[KERNEL_NAME_SIZE];
	long long upto = kernel_progress(self, name);

	if (upto > self->restored_upto) {
		self->restored_upto = upto;
		kernel_set_state(self, KERNEL_RESTORING, "got on");
		return;
	}
	snprintf(self->death.words, sizeof self->death.words,
		 "did not get done with restoring %.100s within %.0f s",
		 name[0] ? name : "its state", rows[KERNEL_RESTORING].deadline_s);
	kernel_kill(self);
}

static void on_deadline(void *arg)
{
	struct kernel *self = arg;
	bool flowing = self->messages != self->messages_at_turn;

	switch (self->state) {
	case KERNEL_LAUNCHING:
	case KERNEL_PROBING:
		snprintf(self->death.words, sizeof self->death.words,
			 "did not answer within %.0f s of its start",
			 rows[self->state].deadline_s);
		add_crash_output(self);
		kernel_kill(self);
		break;
	case KERNEL_RESTORING:
		watch_restoring(self);
		break;
	case KERNEL_INTERRUPTING:
		kernel_interrupt(self);
		break;
	case KERNEL_STOPPING:
		kernel_kill(self);
		break;
	case KERNEL_KILLING: /* the supervisor does not do its work */
		log_warn(self->name, "killing its supervisor");
		if (self->supervisor)
			child_kill(self->supervisor);
		self->death.status = -1;
		kernel_begin_closing(self, "supervisor killed");
		break;
	case KERNEL_CLOSING:
		self->messages_at_turn = self->messages;
		if (flowing && ++self->closing_turns < CLOSING_TURNS_MAX)
			kernel_set_state(self, KERNEL_CLOSING, "output still comes");
		else
			finish_death(self);
		break;
	case KERNEL_IDLE:
	case KERNEL_BUSY:
	case KERNEL_DEAD:
	case KERNEL_STATE_COUNT:
		break;
	}
}

int kernel_create(struct kernel **out, const struct kernel_place *place,
		  const char *name, const struct kernel_begin *begin,
		  const struct kernel_owner *owner, struct err *err)
{
	static unsigned number;
	owned(kernel_destroy) struct kernel *self = xcalloc(1, sizeof *self);

	self->number = ++number;
	self->notices = -1;
	self->place = place;
	self->owner = *owner;
	self->death.status = -1;
	lastwords_init(&self->last_words);
	snprintf(self->name, sizeof self->name, "%.60s/k%u", name, number);
	snprintf(self->runtime_dir, sizeof self->runtime_dir, "%s/k%u",
		 place->runtime_dir, number);
	jmsg_session_init(&self->session);
	if (mkdir(self->runtime_dir, 0700) < 0)
		return err_set(err, ERR_SYSTEM, "make %s", self->runtime_dir);
	if (kernel_start(self, begin, err) < 0) {
		sweep_tree(self->runtime_dir);
		return err_wrap(err, "start a kernel");
	}
	loop_timer_start(place->loop, &self->deadline,
			 (int64_t)(rows[KERNEL_LAUNCHING].deadline_s * 1e6),
			 on_deadline, self);
	*out = take(&self);
	return 0;
}

/* ---- what the owner may do ---- */

bool kernel_has_begun(const struct kernel_death *death, const char *id)
{
	return !death->tells_begun || strcmp(death->last_begun, id) == 0;
}

int kernel_execute(struct kernel *self, const char *code, size_t size, bool asks,
		   char id[JMSG_ID_SIZE], struct err *err)
{
	json_t *content = json_pack("{ss% sb sb s{} sb sb}", "code", code, size,
				    "silent", 0, "store_history", 1, "user_expressions",
				    "allow_stdin", asks, "stop_on_error", 0);

	if (!content)
		return err_set(err, ERR_ARGUMENT, "the code is not valid UTF-8");
	kernel_tell(self, "yield");
	if (jmsg_send(&self->session, self->sockets[KERNEL_SHELL], "execute_request",
		      content, id, err) < 0)
		return -1;
	kernel_set_state(self, KERNEL_BUSY, id);
	return 0;
}

void kernel_answer(struct kernel *self, const char *text, size_t size)
{
	json_t *content = json_pack("{ss%}", "value", text, size);
	char id[JMSG_ID_SIZE];
	struct err err;

	if (!content || jmsg_send(&self->session, self->sockets[KERNEL_STDIN],
				  "input_reply", content, id, &err) < 0)
		log_warn(self->name, "its input() cannot be answered");
}

void kernel_tell(struct kernel *self, const char *fmt, ...)
{
	char line[512];
	va_list ap;

	if (!self->spool[0])
		return;
	va_start(ap, fmt);
	int len = vsnprintf(line, sizeof line - 1, fmt, ap);
	va_end(ap);
	if (len >= (int)sizeof line - 1)
		len = (int)sizeof line - 2;
	line[len] = '\n';
	if (write(self->notices, line, (size_t)len + 1) < 0)
		log_debug(self->name, "it does not read notices");
}

void kernel_tell_limits(struct kernel *self, struct buf *out)
{
	limits_tell(self->place->limits, &self->limits, out);
}

void kernel_release(struct kernel *self)
{
	if (self->state == KERNEL_BUSY || self->state == KERNEL_INTERRUPTING)
		kernel_set_state(self, KERNEL_IDLE, "released");
}

void kernel_interrupt(struct kernel *self)
{
	if (self->state != KERNEL_BUSY && self->state != KERNEL_INTERRUPTING)
		return;
	kernel_set_state(self, KERNEL_INTERRUPTING, "SIGINT");
	tell_supervisor(self, "interrupt");
	kernel_probe(self);
}

void kernel_stop(struct kernel *self)
{
	struct err err;
	char id[JMSG_ID_SIZE];

	if (self->state < KERNEL_IDLE) {
		kernel_kill(self);
		return;
	}
	if (self->state >= KERNEL_STOPPING)
		return;
	kernel_set_state(self, KERNEL_STOPPING, "asked to");
	if (jmsg_send(&self->session, self->sockets[KERNEL_CONTROL], "shutdown_request",
		      json_pack("{sb}", "restart", 0), id, &err) < 0)
		kernel_kill(self);
}

void kernel_kill(struct kernel *self)
{
	if (self->state >= KERNEL_KILLING)
		return;
	kernel_set_state(self, KERNEL_KILLING, "SIGKILL");
	tell_supervisor(self, "kill");
}

void kernel_dismiss(struct kernel *self, const char *words)
{
	if (self->state < KERNEL_KILLING)
		snprintf(self->death.words, sizeof self->death.words, "%s: ended",
			 words);
	kernel_kill(self);
}

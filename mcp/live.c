// SPDX-License-Identifier: MIT
#include "mcp/live.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "mcp/server.h"
#include "wire/ansi.h"
#include "wire/json.h"
#include "wire/words.h"

enum {
	TICK_US = 1000 * 1000,
	LINE_BYTES = 1000,       /* of one line; its rest is left out */
	FRESH_BYTES = 8000,      /* sent at once; lines before are counted */
	BAR_SILENT_US = 10000000 /* then another bar may take its place */
};
static const double HEARTBEAT = 0.001; /* as progress has to grow */

static bool wants_log(const struct live *self, bool is_err)
{
	int level = self->context->log_level;

	return level != LOG_NONE && level <= outlet_level(is_err ? "warning" : "info");
}

/* ---- what is printed ---- */

static void look_for_bar(struct live *self, const struct buf *line)
{
	owned(buf_finish) struct buf plain = {0};

	if (!self->context->progress_token || !line->size)
		return;
	ansi_strip(&plain, line->data, line->size);
	self->has_bar |= bar_read(&self->seen, buf_str(&plain), plain.size);
}

static void drop_oldest_lines(struct live_text *self)
{
	while (self->fresh.size > FRESH_BYTES) {
		const char *end = memchr(self->fresh.data, '\n', self->fresh.size);

		buf_drop(&self->fresh, (size_t)(end - self->fresh.data) + 1);
		self->skipped++;
	}
}

static void end_line(struct live *self, struct live_text *text)
{
	self->lines++;
	look_for_bar(self, &text->line);
	if (wants_log(self, text == &self->err)) {
		ansi_strip(&text->fresh, buf_str(&text->line), text->line.size);
		buf_text(&text->fresh, "\n");
		drop_oldest_lines(text);
	}
	text->line.size = 0;
}

/* Text without controls. */
static void add(struct live_text *self, const char *text, size_t size)
{
	size_t room = LINE_BYTES - self->line.size;

	buf_add(&self->line, text, size < room ? size : room);
}

void live_print(bool is_err, const char *text, size_t size, void *arg)
{
	struct live *self = arg;
	struct live_text *to = is_err ? &self->err : &self->out;
	const char *end = text + size;

	while (text < end) {
		size_t plain = 0;

		while (text + plain < end && text[plain] != '\n' && text[plain] != '\r')
			plain++;
		if (to->returned && (plain || *text == '\r')) {
			look_for_bar(self, &to->line); /* it is overwritten */
			to->line.size = 0;
		}
		if (plain || *text == '\r')
			to->returned = false;
		add(to, text, plain);
		text += plain;
		if (text == end)
			break;
		to->returned = *text == '\r';
		if (*text++ == '\n')
			end_line(self, to);
	}
}

/* ---- progress ---- */

static bool is_same(const struct bar *a, const struct bar *b)
{
	return a->total == b->total && strcmp(a->label, b->label) == 0;
}

static bool is_finished(const struct bar *bar)
{
	return bar->total >= 0 && bar->done >= bar->total;
}

/* Takes the bar that was printed last, unless it stands inside another one that still
 * moves. */
static void take_bar(struct live *self, int64_t now)
{
	const struct bar *seen = &self->seen;
	bool same = is_same(seen, &self->bar), had = self->moved_us != 0;

	if (!self->has_bar)
		return;
	if (had && !same && !is_finished(&self->bar) &&
	    now - self->moved_us < BAR_SILENT_US)
		return;
	bool begins = !had || !same || seen->done < self->bar.done;
	if (!had || !same || seen->done != self->bar.done)
		self->moved_us = now;
	/* A second bar goes on where the first one ended. */
	if (begins && had && self->base + seen->done <= self->sent)
		self->base = self->sent;
	self->bar = *seen;
}

static const char *state_text(const struct live *self)
{
	enum call_state state = self->call ? call_state(self->call) : CALL_RUNNING;

	return state == CALL_QUEUED     ? ", waiting for the calls before it"
	       : state == CALL_STARTING ? ", starting a kernel"
	       : state == CALL_ASKING   ? ", waiting for an answer to its input()"
					: "";
}

static void tell_time(struct live *self, int64_t now)
{
	double seconds = floor((double)(now - self->began_us) / 1e5) / 10;
	double progress = seconds > self->sent ? seconds : self->sent + HEARTBEAT;
	char text[100];

	snprintf(text, sizeof text, "%.0f s%s", seconds, state_text(self));
	if (self->lines)
		snprintf(text + strlen(text), sizeof text - strlen(text),
			 ", %llu line%s so far", self->lines, plural_s(self->lines));
	if (outlet_progress(self->context, progress, -1, text))
		self->sent = progress;
}

static void tell_progress(struct live *self)
{
	int64_t now = loop_now_us();

	look_for_bar(self, &self->out.line);
	look_for_bar(self, &self->err.line);
	take_bar(self, now);
	double progress = self->base + self->bar.done;
	double total = self->bar.total < 0 ? -1 : self->base + self->bar.total;
	if (!self->moved_us || (is_finished(&self->bar) && progress <= self->sent)) {
		tell_time(self, now);
		return;
	}
	if (progress <= self->sent)
		progress = self->sent + HEARTBEAT;
	if (outlet_progress(self->context, progress, total < progress ? -1 : total,
			    self->bar.text))
		self->sent = progress;
}

/* ---- lines ---- */

static void tell_lines(struct live *self, struct live_text *text, bool is_err)
{
	owned(buf_finish) struct buf data = {0};

	if (!text->fresh.size)
		return;
	if (text->skipped)
		buf_printf(&data, "[... %llu line%s left out ...]\n", text->skipped,
			   plural_s(text->skipped));
	buf_add(&data, text->fresh.data, text->fresh.size - 1);
	if (!outlet_log(self->context, is_err ? "warning" : "info",
			is_err ? "stderr" : "stdout",
			json_string_lossy(data.data, data.size)))
		return; /* perhaps the next time */
	text->fresh.size = 0;
	text->skipped = 0;
}

/* ---- beginning and end ---- */

void live_tick(struct live *self)
{
	tell_lines(self, &self->out, false);
	tell_lines(self, &self->err, true);
	if (self->context->progress_token)
		tell_progress(self);
}

static void on_tick(void *arg)
{
	struct live *self = arg;

	live_tick(self);
	loop_timer_start(self->loop, &self->timer, TICK_US, on_tick, self);
}

void live_start(struct live *self, struct loop *loop,
		const struct server_context *context)
{
	*self =
	    (struct live){.loop = loop, .context = context, .began_us = loop_now_us()};
	if (context->progress_token || wants_log(self, true))
		loop_timer_start(loop, &self->timer, TICK_US, on_tick, self);
	else
		self->context = NULL;
}

/* What was printed before counts, too, and the bar that stands last. */
static void catch_up(struct live *self)
{
	owned(buf_finish) struct buf text = {0};
	struct outcome outcome;

	call_peek(self->call, &outcome);
	self->lines = outcome.lines;
	outputs_err(outcome.outputs, &text);
	if (!text.size)
		outputs_out(outcome.outputs, &text);
	while (text.size && text.data[text.size - 1] == '\n')
		text.size--;
	const char *end = text.size ? memrchr(text.data, '\n', text.size) : NULL;
	buf_drop(&text, end ? (size_t)(end - text.data) + 1 : 0);
	look_for_bar(self, &text);
}

void live_follow(struct live *self, struct call *call)
{
	if (!self->context)
		return;
	if (self->call)
		call_unwatch(self->call, self);
	self->call = call;
	if (!call)
		return;
	call_watch(call, live_print, self);
	catch_up(self);
}

void live_stop(struct live *self)
{
	live_follow(self, NULL);
	loop_timer_stop(&self->timer);
	buf_finish(&self->out.line);
	buf_finish(&self->out.fresh);
	buf_finish(&self->err.line);
	buf_finish(&self->err.fresh);
	self->context = NULL;
}

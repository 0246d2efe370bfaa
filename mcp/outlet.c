// SPDX-License-Identifier: MIT
#include "mcp/outlet.h"

#include <math.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mcp/server.h"
#include "wire/json.h"
#include "wire/mem.h"

enum { ABOUT_SIZE = 300 };

struct question {
	LIST_ENTRY(question) link;
	struct questions *questions; /* borrowed */
	struct outlet outlet;
	uint64_t session;
	char id[24]; /* nobody else can guess it */
	question_fn *done;
	void *arg;
	struct loop_timer timer;
};

static json_t *message_of(const char *id, const char *method, json_t *params)
{
	return json_pack("{ss ss* ss so}", "jsonrpc", "2.0", "id", id, "method", method,
			 "params", params ? params : json_object());
}

bool outlet_notify(const struct outlet *self, const char *method, json_t *params)
{
	json_auto_t *message = message_of(NULL, method, params);

	return self->send && self->send(self->arg, message, false);
}

bool outlet_disconnect(const struct outlet *self)
{
	return self->disconnect && self->disconnect(self->arg);
}

void outlet_about(const struct outlet *self, const char *fmt, ...)
{
	char line[ABOUT_SIZE];
	va_list ap;

	if (!self->about)
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	self->about(self->arg, xstrdup(line));
}

/* ---- progress and log ---- */

static json_t *number_json(double value)
{
	return value == floor(value) && fabs(value) < 1e15
		   ? json_integer((json_int_t)value)
		   : json_real(value);
}

bool outlet_progress(const struct server_context *context, double progress,
		     double total, const char *message)
{
	if (!context->progress_token)
		return false;
	json_t *params = json_pack("{sO so}", "progressToken", context->progress_token,
				   "progress", number_json(progress));
	if (total >= 0)
		json_object_set_new(params, "total", number_json(total));
	if (message && context->revision >= MCP_2025_03_26)
		json_object_set_new(params, "message",
				    json_string_lossy(message, strlen(message)));
	return outlet_notify(&context->outlet, "notifications/progress", params);
}

int outlet_level(const char *name)
{
	static const char *const names[] = {"debug", "info",     "notice", "warning",
					    "error", "critical", "alert",  "emergency"};

	for (size_t i = 0; i < COUNT_OF(names); i++)
		if (strcmp(names[i], name) == 0)
			return (int)i;
	return LOG_NONE;
}

bool outlet_log(const struct server_context *context, const char *level,
		const char *logger, json_t *data)
{
	if (context->log_level == LOG_NONE ||
	    outlet_level(level) < context->log_level) {
		json_decref(data);
		return false;
	}
	return outlet_notify(
	    &context->outlet, "notifications/message",
	    json_pack("{ss ss so}", "level", level, "logger", logger, "data", data));
}

/* ---- requests of ours ---- */

static void end(struct question *self, const json_t *response)
{
	question_fn *done = self->done;
	void *arg = self->arg;

	LIST_REMOVE(self, link);
	loop_timer_stop(&self->timer);
	free(self);
	done(response, arg);
}

static void on_over(void *arg)
{
	end(arg, NULL);
}

static bool is_full(const struct questions *self, uint64_t session)
{
	const struct question *question;
	size_t all = 0, of_one = 0;

	LIST_FOREACH(question, &self->all, link)
	{
		all++;
		of_one += question->session == session;
	}
	return all >= QUESTIONS_MAX || of_one >= QUESTIONS_OF_ONE_MAX;
}

struct question *outlet_ask(struct questions *questions,
			    const struct server_context *context, const char *method,
			    json_t *params, int64_t timeout_s, question_fn *done,
			    void *arg)
{
	struct question *self = xcalloc(1, sizeof *self);

	*self = (struct question){.questions = questions,
				  .outlet = context->outlet,
				  .session = context->session,
				  .done = done,
				  .arg = arg};
	snprintf(self->id, sizeof self->id, "q-%08x%08x", randombytes_random(),
		 randombytes_random());
	json_auto_t *message = message_of(self->id, method, params);
	if (context->revision >= MCP_STATELESS ||
	    is_full(questions, context->session) || !self->outlet.send ||
	    !self->outlet.send(self->outlet.arg, message, true)) {
		free(self);
		return NULL;
	}
	LIST_INSERT_HEAD(&questions->all, self, link);
	loop_timer_start(questions->loop, &self->timer, timeout_s * 1000000, on_over,
			 self);
	return self;
}

void outlet_withdraw(struct question **self)
{
	struct question *dead = take(self);

	if (!dead)
		return;
	json_auto_t *message = message_of(NULL, "notifications/cancelled",
					  json_pack("{ss ss}", "requestId", dead->id,
						    "reason", "not needed any more"));
	if (dead->outlet.send) /* must: its own request may be cancelled */
		dead->outlet.send(dead->outlet.arg, message, true);
	LIST_REMOVE(dead, link);
	loop_timer_stop(&dead->timer);
	free(dead);
}

void questions_take(struct questions *self, const json_t *response, uint64_t session)
{
	const char *id = json_text(response, "id", "");
	struct question *question;

	LIST_FOREACH(question, &self->all, link)
	if (question->session == session && strcmp(question->id, id) == 0) {
		end(question, response);
		return;
	}
}

void questions_left(struct questions *self, uint64_t session)
{
	struct question *question;

	LIST_FOREACH(question, &self->all, link)
	if (question->session == session) { /* not here: who calls us is at work */
		question->outlet = (struct outlet){0};
		loop_timer_start(self->loop, &question->timer, 1, on_over, question);
	}
}

void questions_finish(struct questions *self)
{
	struct question *question;

	while ((question = LIST_FIRST(&self->all))) {
		LIST_REMOVE(question, link);
		loop_timer_stop(&question->timer);
		free(question);
	}
}

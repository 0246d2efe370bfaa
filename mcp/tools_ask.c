// SPDX-License-Identifier: MIT
/* What a call of a tool asks its client before it goes on. */
#include <string.h>

#include "mcp/jobs.h"
#include "mcp/outlet.h"
#include "mcp/tools.h"
#include "wire/json.h"
#include "wire/mem.h"

bool tool_can_ask(const struct tool_call *self)
{
	return self->config->confirm && asks_can(&self->asks, ASK_USER);
}

bool tool_confirm(struct tool_call *self, const char *message, json_t *state)
{
	const json_t *answer = asks_answer(&self->asks, ASK_USER, "confirm");
	const char *action = json_text(answer, "action", "");
	json_auto_t *now = state;
	struct err err;

	if (!tool_can_ask(self))
		return true;
	bool same = !now || json_equal(now, self->asks.state);
	if (same && strcmp(action, "accept") == 0)
		return true;
	if (answer && strcmp(action, "accept") != 0) {
		err_set(&err, ERR_DECLINED,
			"the user did not agree; nothing was changed");
		tool_fail(self, &err);
		return false;
	}
	asks_want(
	    &self->asks, ASK_USER, "confirm",
	    asks_form(message, json_pack("{ss s{}}", "type", "object", "properties")));
	tool_ask(self, json_incref(now));
	return false;
}

void tool_withdraw(struct tool_call *self)
{
	outlet_withdraw(&self->question);
	free_text(&self->question_name);
	if (!self->outstanding)
		return;
	json_decref(take(&self->outstanding));
	self->input_changed(self->arg);
}

void tool_give_up(struct tool_call *self, const struct err *err)
{
	if (!self->call) {
		tool_fail(self, err);
		return;
	}
	tool_withdraw(self);
	call_answer(self->call, NULL, 0);
}

static void ask_next(struct tool_call *self);

static void on_answer(const json_t *response, void *arg)
{
	struct tool_call *self = arg;
	owned(free_text) char *name = take(&self->question_name);
	json_t *result = json_object_get(response, "result");
	struct err err;

	self->question = NULL;
	if (result) {
		asks_put(&self->asks, name, result);
		ask_next(self);
		return;
	}
	err_set(&err, ERR_ARGUMENT,
		"the client did not answer what it was asked%s%.150s",
		response ? ": " : "",
		json_text(json_object_get(response, "error"), "message", ""));
	tool_give_up(self, &err);
}

/* One question after the other, then the tool again: it may have more. */
static void ask_next(struct tool_call *self)
{
	const char *method = NULL;
	json_t *params;
	struct err err;

	if (!asks_next(&self->asks, &self->question_name, &params, &method)) {
		tool_run(self);
		return;
	}
	self->question = outlet_ask(self->questions, self->context, method, params,
				    ASKS_STATE_S, on_answer, self);
	if (self->question)
		return;
	err_set(&err, ERR_ARGUMENT,
		"the client has to be asked something, but takes no stream on which "
		"to ask it, or leaves %d questions open already",
		QUESTIONS_OF_ONE_MAX);
	tool_give_up(self, &err);
}

/* ---- of a task ---- */

/* By keys that say the round, as a key may come once only in a task's life. */
static json_t *key_questions(struct tool_call *self)
{
	json_auto_t *wanted = self->asks.wanted ? take(&self->asks.wanted) : NULL;
	json_t *out = json_object(), *request;
	const char *name;

	json_object_foreach(wanted, name, request)
	{
		owned(buf_finish) struct buf key = {0};

		buf_printf(&key, "%d.%s", self->asks.rounds, name);
		json_object_set(out, buf_str(&key), request);
	}
	return out;
}

void tool_put_up(struct tool_call *self)
{
	self->outstanding = key_questions(self);
	if (json_object_size(self->outstanding)) {
		self->input_changed(self->arg);
		return;
	}
	json_decref(take(&self->outstanding));
	tool_run(self);
}

void tool_leave_request(struct tool_call *self, void (*input_changed)(void *arg))
{
	bool asks = self->question;

	self->input_changed = input_changed;
	tool_withdraw(self);
	if (asks)
		tool_run(self);
}

void tool_answer(struct tool_call *self, json_t *responses)
{
	size_t before = json_object_size(self->outstanding);
	const char *key;
	json_t *response;

	json_object_foreach(responses, key, response)
	{
		if (!json_object_get(self->outstanding, key))
			continue;
		asks_put(&self->asks, strchr(key, '.') + 1, response);
		json_object_del(self->outstanding, key);
	}
	size_t left = json_object_size(self->outstanding);
	if (left == before)
		return;
	if (!left)
		json_decref(take(&self->outstanding));
	self->input_changed(self->arg);
	if (!left)
		tool_run(self);
}

/* A cell may ask as often as it likes; other tools ask for what they need. */
static bool asks_too_often(struct tool_call *self)
{
	return ++self->asks.rounds > ASKS_ROUNDS_MAX && !self->call;
}

void tool_ask(struct tool_call *self, json_t *state)
{
	bool waits = self->revision >= MCP_STATELESS && !self->input_changed;
	struct err err;

	if (waits && !self->call) {
		tool_finish(self, asks_result(&self->asks, state));
		return;
	}
	json_decref(self->asks.state);
	self->asks.state = state;
	if (asks_too_often(self)) {
		err_set(&err, ERR_ARGUMENT,
			"the client was asked %d times and gave no answer that fits",
			ASKS_ROUNDS_MAX);
		tool_fail(self, &err);
	} else if (waits) {
		job_ask(self);
	} else if (self->input_changed) {
		tool_put_up(self);
	} else {
		ask_next(self);
	}
}

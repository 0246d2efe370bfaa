// SPDX-License-Identifier: MIT
/* The fixtures that become tasks of the extension, by the names that the suite has for
 * them, and one that never does. */
#include "mcp/conformance_impl.h"

#include "mcp/jobs.h"
#include "wire/json.h"
#include "wire/mem.h"

#define CONFIRM_SCHEMA                                                                 \
	"\"requestedSchema\":{\"type\":\"object\",\"properties\":{\"confirm\":{"       \
	"\"type\":\"boolean\"}},\"required\":[\"confirm\"]}"

static const struct fixture_question confirm = {
    ASK_USER, "confirm", "{\"message\":\"Delete the file?\"," CONFIRM_SCHEMA "}"};
static const struct fixture_question first = {
    ASK_USER, "first", "{\"message\":\"The first?\"," CONFIRM_SCHEMA "}"};
static const struct fixture_question second = {
    ASK_USER, "second", "{\"message\":\"The second?\"," CONFIRM_SCHEMA "}"};

/* True if it is a task now; else the call is refused. */
static bool be_task(struct tool_call *self)
{
	struct rpc_refusal refusal = {0};

	if (job_defer(self))
		return true;
	jobs_refuse(&refusal);
	fixture_refuse(self, &refusal);
	return false;
}

/* Goes on as a call of run_python. */
static void run_cell(struct tool_call *self, const char *code)
{
	json_decref(self->arguments);
	self->arguments = json_pack("{ss si}", "code", code, "timeout_seconds", 100);
	self->tool = &tool_run_python;
	tool_run(self);
}

static void run_greet(struct tool_call *self, const struct arg_value *args)
{
	owned(buf_finish) struct buf text = {0};

	buf_printf(&text, "Hello, %s!", args[0].text);
	fixture_finish(self, buf_str(&text), NULL);
}

static void run_slow(struct tool_call *self, const struct arg_value *args)
{
	owned(buf_finish) struct buf code = {0};

	(void)job_defer(self); /* who knows no tasks waits */
	buf_printf(&code,
		   "import threading; threading.Event().wait(%g); print('Computed.')",
		   args[0].number);
	run_cell(self, buf_str(&code));
}

static void run_failing(struct tool_call *self, const struct arg_value *args)
{
	(void)args;
	if (be_task(self))
		run_cell(self, "import threading; threading.Event().wait(1); raise "
			       "ValueError('as it is meant to')");
}

static void run_protocol_error(struct tool_call *self, const struct arg_value *args)
{
	struct rpc_refusal refusal = {.code = RPC_INTERNAL_ERROR};

	(void)args;
	(void)job_defer(self);
	err_set(&refusal.err, ERR_REQUEST, "this fails, as it is meant to");
	fixture_refuse(self, &refusal);
}

static void run_questions(struct tool_call *self,
			  const struct fixture_question *const *questions, size_t count)
{
	size_t answers = 0;

	(void)job_defer(self); /* who knows no tasks is asked in its result */
	if (!fixture_can_ask(self, ASK_USER))
		return;
	for (size_t i = 0; i < count; i++)
		answers += fixture_answer(self, questions[i]) != NULL;
	if (answers == count)
		fixture_finish(self, "Answered: ", self->asks.answers);
	else
		tool_ask(self, NULL);
}

static void run_confirm(struct tool_call *self, const struct arg_value *args)
{
	static const struct fixture_question *const questions[] = {&confirm};

	(void)args;
	run_questions(self, questions, COUNT_OF(questions));
}

static void run_multi(struct tool_call *self, const struct arg_value *args)
{
	static const struct fixture_question *const questions[] = {&first, &second};

	(void)args;
	run_questions(self, questions, COUNT_OF(questions));
}

/* Asks before it becomes a task. */
static void run_asking(struct tool_call *self, const struct arg_value *args)
{
	const json_t *answer;

	(void)args;
	if (!fixture_can_ask(self, ASK_USER))
		return;
	answer = fixture_answer(self, &fixture_user_name);
	if (!answer)
		tool_ask(self, NULL);
	else if (be_task(self))
		fixture_finish(self, "Hello, ", answer);
}

#define TASK(word, what, how, ...)                                                     \
	const struct tool word = {.name = #word,                                       \
				  .title = (what),                                     \
				  .description = what ".",                             \
				  .read_only = true,                                   \
				  .run = (how),                                        \
				  __VA_ARGS__}

TASK(greet, "Says hello and is no task", run_greet,
     .args = {{"name", ARG_TEXT, true, 0, 0, "Whom to greet."}});
TASK(slow_compute, "Sleeps in the kernel", run_slow,
     .args = {{"seconds", ARG_NUMBER, true, 0, 0, "How long."},
	      {"label", ARG_TEXT, false, 0, 0, "Anything."}});
TASK(failing_job, "Fails in the kernel, only as a task", run_failing, .args = {{0}});
TASK(protocol_error_job, "Ends in a JSON-RPC error", run_protocol_error, .args = {{0}});
TASK(confirm_delete, "Asks once", run_confirm,
     .args = {{"filename", ARG_TEXT, true, 0, 0, "Any name."}});
TASK(multi_input, "Asks two things at once", run_multi, .args = {{0}});
TASK(test_tool_with_task, "Asks, then becomes a task", run_asking, .args = {{0}});

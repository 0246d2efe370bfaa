// SPDX-License-Identifier: MIT
/* run_python - runs code in the workspace's live kernel. */
#include <math.h>
#include <string.h>

#include "mcp/icons.h"
#include "mcp/jobs.h"
#include "mcp/live.h"
#include "mcp/render.h"
#include "mcp/server.h"
#include "mcp/tools.h"
#include "wire/json.h"
#include "wire/utf8.h"

enum { CODE, TIMEOUT, FRESH };

static const char input_schema[] =
    "{\"type\":\"object\",\"properties\":{\"line\":{\"type\":\"string\",\"title\":"
    "\"Answer\"}},\"required\":[\"line\"]}";

/* For when it gets to nobody.  Nobody misses what was cancelled or never ran. */
static void name_answer(const struct tool_call *self, const struct outcome *outcome)
{
	const struct outlet *outlet = &self->context->outlet;

	if (!outcome->cell || outcome->end == CALL_CANCELLED)
		outlet_about(outlet, "%s", "");
	else
		outlet_about(outlet,
			     "The answer of cell [%llu] did not reach its client; what "
			     "the cell did is there: see %s.\n",
			     outcome->cell,
			     config_offers_tool(self->config, "history") ? "history"
			     : self->config->persist ? "the variables and files"
						     : "the files");
}

static void on_done(const struct outcome *outcome, void *arg)
{
	struct tool_call *self = arg;
	const struct render_options options = {
	    .structure = self->structure,
	    .plain_errors = self->context->client & CLIENT_PLAIN_ERRORS,
	    .footer = self->config->state_summary != 0,
	    .workspace = workspace_name(self->workspace),
	    .stateless = !self->config->persist,
	    .preface = buf_str(&self->preface),
	};

	self->call = NULL;
	live_follow(self->live, NULL);
	name_answer(self, outcome);
	tool_finish(self, render_outcome(outcome, &options));
}

static json_t *partial(const struct tool_call *self, const char *words)
{
	owned(buf_finish) struct buf preface = {0};
	struct outcome outcome;

	buf_text(&preface, words);
	buf_add(&preface, buf_str(&self->preface), self->preface.size);
	call_peek(self->call, &outcome);
	return render_outcome(&outcome,
			      &(struct render_options){.structure = self->structure,
						       .preface = buf_str(&preface)});
}

static int check_code(const struct arg_value *code, struct err *err)
{
	const char *nul = memchr(code->text, '\0', code->size);

	if (nul)
		return err_set(err, ERR_ARGUMENT,
			       "code has a NUL character at character %zu, which "
			       "Python source cannot hold; write \\x00 in a string "
			       "literal instead",
			       utf8_count(code->text, (size_t)(nul - code->text)) + 1);
	return 0;
}

/* Whole seconds; over the limit they are clamped, and the result of who asked for them
 * says so. */
static int64_t read_timeout(struct tool_call *self, double seconds)
{
	double max = (double)self->config->max_timeout_s;

	if (seconds <= max)
		return (int64_t)ceil(seconds);
	if (json_is_number(json_object_get(self->arguments, "timeout_seconds")))
		buf_printf(&self->preface,
			   "timeout_seconds was lowered from %g to %.0f "
			   "(VIVARIUM_MAX_TIMEOUT).\n",
			   seconds, max);
	return (int64_t)max;
}

/* ---- input() ---- */

#define INPUT "input"

static void ask_for_input(struct tool_call *self)
{
	asks_want(&self->asks, ASK_USER, INPUT, json_incref(self->kept));
	tool_ask(self, NULL);
}

static void on_input(const char *prompt, void *arg)
{
	struct tool_call *self = arg;
	owned(buf_finish) struct buf message = {0};

	if (!prompt) {
		tool_withdraw(self);
		return;
	}
	buf_printf(&message, "The Python code that runs asks: %s", prompt);
	json_decref(self->kept);
	self->kept = asks_form(buf_str(&message), json_loads(input_schema, 0, NULL));
	ask_for_input(self);
}

/* There is an answer, or what should be one. */
static void take_input(struct tool_call *self)
{
	const json_t *schema = json_object_get(self->kept, "requestedSchema");
	const json_t *answer = asks_answer(&self->asks, ASK_USER, INPUT);
	const json_t *content = asks_content(&self->asks, INPUT, schema);
	const json_t *line = json_object_get(content, "line");

	if (line)
		call_answer(self->call, json_string_value(line),
			    json_string_length(line));
	else if (answer && strcmp(json_text(answer, "action", ""), "accept") != 0)
		call_answer(self->call, NULL, 0);
	bool over = call_state(self->call) != CALL_ASKING;
	json_object_del(self->asks.answers, INPUT);
	if (!over)
		ask_for_input(self);
}

static void run(struct tool_call *self, const struct arg_value *args)
{
	const char *parked = json_text(self->asks.state, "call", NULL);
	struct err err;

	if (self->call) {
		take_input(self);
		return;
	}
	if (parked) { /* this is the answer to a cell that runs */
		self->passes_cancel = true;
		tool_attend(self, parked, INFINITY);
		return;
	}

	jobs_tell_lost(self->jobs, self->home, &self->preface);
	server_tell_unread(self->context->server, self->home, &self->preface);
	if (check_code(&args[CODE], &err) == 0 &&
	    tool_call_kernel(self, &args[CODE],
			     &(struct call_options){
				 .timeout_s = read_timeout(self, args[TIMEOUT].number),
				 .input = tool_can_ask(self) ? on_input : NULL,
				 .fresh = args[FRESH].number != 0},
			     on_done, &err) == 0)
		live_follow(self->live, self->call);
	else
		tool_fail(self, &err);
}

/* ---- what it is ---- */

#define LIVE                                                                           \
	"Run Python code in a live IPython kernel that keeps its state: variables, "   \
	"imports and functions of earlier calls are still there, so do not repeat "    \
	"them.\n"
#define STATELESS                                                                      \
	"Run Python code in an IPython kernel that starts empty with each call: "      \
	"nothing of earlier calls is there but files.\n"

static void describe(struct buf *out, const struct config *config)
{
	buf_text(out, config->persist ? LIVE : STATELESS);
	buf_text(out, "The working directory is the workspace; files stay. Returns "
		      "stdout, stderr, the value of the last expression, the "
		      "traceback of an error");
	buf_text(out, config->max_images
			  ? ", and pictures (matplotlib figures, new or changed *.png "
			    "files)."
			  : ". Pictures do not come back here: save them as files.");
	buf_text(out, " vivarium_charts has line_chart, bar_chart, scatter_chart (any "
		      "script, one line: line_chart(df, title=...)) and "
		      "clean_numeric.");
	if (config->persist && config->state_summary)
		buf_text(out, " The footer lists the variables, imports and new files "
			      "that the next call will find.");
	buf_text(out, " Top-level await, %magics and !shell commands work; input() "
		      "asks the user if the client can.");
	if (config->persist)
		buf_text(out, " A call that times out is interrupted and keeps the "
			      "variables.");
}

const struct tool tool_run_python = {
    .name = "run_python",
    .title = "Run Python",
    .icon = ICON_PLAY,
    .description = LIVE,
    .describe = describe,
    .read_only = false,
    .destructive = true,
    .idempotent = false,
    .open_world = true,
    .args = {[CODE] = {"code", ARG_TEXT, true, 0, 0, "Python source to run."},
	     [TIMEOUT] = {"timeout_seconds", ARG_NUMBER, false, 60, 0.1,
			  "Seconds the code may run before it is interrupted."},
	     [FRESH] = {"fresh", ARG_FLAG, false, 0, 0,
			"true: throw the namespace away first and start a new "
			"kernel. Files stay."}},
    .output_schema = render_schema,
    .run = run,
    .partial = partial,
};

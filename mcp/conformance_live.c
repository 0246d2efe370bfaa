// SPDX-License-Identifier: MIT
/* The fixtures that say something while they run. */
#include "mcp/conformance_impl.h"

#include "mcp/server.h"
#include "wire/mem.h"

static void run_logging(struct tool_call *self, const struct arg_value *args)
{
	static const char *const lines[] = {"Tool execution started",
					    "Tool processing data",
					    "Tool execution completed"};

	(void)args;
	for (size_t i = 0; i < COUNT_OF(lines); i++)
		outlet_log(self->context, "info", "conformance", json_string(lines[i]));
	fixture_finish(self, "Logged three lines.", NULL);
}

static void run_progress(struct tool_call *self, const struct arg_value *args)
{
	(void)args;
	for (int done = 0; done <= 100; done += 50)
		outlet_progress(self->context, done, 100, NULL);
	fixture_finish(self, "All 100 are done.", NULL);
}

/* The answer is kept for who comes back with Last-Event-ID. */
static void run_reconnection(struct tool_call *self, const struct arg_value *args)
{
	(void)args;
	outlet_disconnect(&self->context->outlet);
	fixture_finish(self, "The connection was closed before this was said.", NULL);
}

static void run_tool_change(struct tool_call *self, const struct arg_value *args)
{
	(void)args;
	server_list_changed(self->context->server, "tools");
	fixture_finish(self, "Said that the list of tools has changed.", NULL);
}

static void run_prompt_change(struct tool_call *self, const struct arg_value *args)
{
	(void)args;
	server_list_changed(self->context->server, "prompts");
	fixture_finish(self, "Said that the list of prompts has changed.", NULL);
}

#define LIVE(word, what, how)                                                          \
	const struct tool word = {.name = #word,                                       \
				  .title = (what),                                     \
				  .description = what ".",                             \
				  .read_only = true,                                   \
				  .run = (how)}

LIVE(test_tool_with_logging, "Logs three lines", run_logging);
LIVE(test_logging_tool, "Logs if it is asked to", run_logging);
LIVE(test_tool_with_progress, "Tells its progress", run_progress);
LIVE(test_reconnection, "Closes its connection", run_reconnection);
LIVE(test_trigger_tool_change, "Tells of a change of tools", run_tool_change);
LIVE(test_trigger_prompt_change, "Tells of a change of prompts", run_prompt_change);

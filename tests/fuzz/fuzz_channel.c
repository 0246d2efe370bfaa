// SPDX-License-Identifier: MIT
/*
 * A conversation over lines or a WebSocket.  Input: messages, one a line, as long as
 * no workspace is there: what needs one is told to be elsewhere.
 */
#include "mcp/channel.h"

#include "fuzz.h"
#include "mcp/server.h"

struct seen {
	size_t sent, diverted;
};

/* Whatever came, what goes out is JSON-RPC. */
static bool on_send(void *arg, const char *text, size_t size, bool must)
{
	struct seen *self = arg;
	json_auto_t *message = json_loadb(text, size, 0, NULL);
	const json_t *first =
	    json_is_array(message) ? json_array_get(message, 0) : message;

	(void)must;
	MUST(json_is_object(first));
	MUST(json_object_get(first, "id"));
	MUST(!json_object_get(first, "result") != !json_object_get(first, "error"));
	self->sent++;
	return true;
}

static bool on_divert(void *arg, json_t *message)
{
	struct seen *self = arg;

	MUST(json_is_object(message) || json_is_array(message));
	self->diverted++;
	return true;
}

static void nobody(void *arg, struct server_context *context)
{
	const bool asked_without_a_workspace = true;

	(void)arg;
	(void)context;
	MUST(!asked_without_a_workspace);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct config config = {.tools = "run_python", .persist = 1};
	struct input input = {data, size};
	struct seen seen = {0};
	struct server *server = server_create(&config, NULL);
	struct channels channels = {.server = server};
	const struct channel_link link = {
	    .send = on_send, .who = nobody, .divert = on_divert, .arg = &seen};
	struct channel *channel = channel_create(&channels, &link);

	while (input.left) {
		owned(free_text) char *line = input_line(&input);
		size_t before = seen.sent + seen.diverted;

		channel_take(channel, line, strlen(line));
		MUST(seen.sent + seen.diverted <= before + 1);
		MUST(channel_open(channel) == 0); /* all of it is answered at once */
	}
	channel_destroy(&channel);
	server_destroy(&server);
	channels_finish(&channels);
	return 0;
}

// SPDX-License-Identifier: MIT
/* What is seen of a call while it runs. */
#include "kernelmgr/call_impl.h"

#include <string.h>

#include "wire/json.h"

void call_watch(struct call *self, call_print_fn *fn, void *arg)
{
	self->print = fn;
	self->print_arg = arg;
}

void call_unwatch(struct call *self, const void *arg)
{
	if (self->print_arg == arg)
		call_watch(self, NULL, NULL);
}

void call_peek(const struct call *self, struct outcome *out)
{
	static const struct files_list nothing;

	*out = (struct outcome){
	    .end = CALL_GOES_ON,
	    .notice = buf_str(&self->notice),
	    .notice_before = self->notice_before,
	    .outputs = &self->outputs,
	    .lines = self->lines,
	    .late = buf_str(&self->late),
	    .wrote = &nothing,
	    .workspace = &self->before,
	    .duration_us = self->started_us ? loop_now_us() - self->started_us : 0,
	    .cell = self->cell,
	    .walls = "",
	    .branch = "",
	};
}

void call_show(struct call *self, const struct jmsg *message)
{
	const json_t *value = json_object_get(message->content, "text");
	const char *text = json_string_value(value);
	size_t size = json_string_length(value);

	if (!text || strcmp(message->type, "stream") != 0)
		return;
	for (const char *at = text; (at = memchr(at, '\n', (size_t)(text + size - at)));
	     at++)
		self->lines++;
	if (self->print)
		self->print(strcmp(json_text(message->content, "name", ""), "stderr") ==
				0,
			    text, size, self->print_arg);
}

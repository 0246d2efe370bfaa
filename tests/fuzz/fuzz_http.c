// SPDX-License-Identifier: MIT
/*
 * HTTP connections, whole: heads, bodies, event streams and coming back to them.
 * Input: pieces that are sent one after the other, up to a byte 0xFE, after which the
 * session's streams are told something, or 0xFF, which ends the connection.  "$S"
 * stands for a good session, "$E" for the id of the event that came last.
 */
#include "served.h"

static char session[SESSION_ID_SIZE], event[192];

/* To what is no HTTP lws itself says 403, by HTTP/1.0. */
static void look_at(struct served *self)
{
	const char *text = buf_str(&self->answer), *at = text;

	MUST(!self->answer.size || strncmp(text, "HTTP/1.", 7) == 0);
	while ((at = strstr(at, "\nid: ")))
		MUST(sscanf(at += 5, "%191[^\n]", event) == 1);
}

static void add_piece(struct buf *out, const char *piece)
{
	const char *at;

	while ((at = strchr(piece, '$'))) {
		bool known = at[1] == 'S' || at[1] == 'E';

		buf_add(out, piece, (size_t)(at - piece) + !known);
		piece = at + 1 + known;
		if (known)
			buf_text(out, at[1] == 'S' ? session : event);
	}
	buf_text(out, piece);
}

static void send_piece(struct served *self, struct input *input, size_t size)
{
	owned(free_text) char *piece = input_copy(input, size, true);
	owned(buf_finish) struct buf text = {0};

	if (strlen(piece) < size) /* has NULs: as it is */
		buf_add(&text, piece, size);
	else
		add_piece(&text, piece);
	served_send(self, text.data, text.size);
}

/* So that the next input finds none of its streams. */
static void forget_session(struct served *self)
{
	static const char end[] = "DELETE /mcp HTTP/1.1\r\nHost: localhost\r\n"
				  "Mcp-Session-Id: $S\r\n\r\n";
	owned(buf_finish) struct buf text = {0};

	add_piece(&text, end);
	served_connect(self);
	served_send(self, text.data, text.size);
	served_end(self);
	session[0] = '\0';
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct served *self = served();
	struct input input = {data, size};
	bool open = false;

	if (!session[0])
		session_begin(&self->sessions, MCP_2025_03_26, 0, session);
	event[0] = '\0';
	while (input.left) {
		size_t length = 0;

		while (length < input.left && input.at[length] < 0xFE)
			length++;
		if (!open)
			served_connect(self);
		open = true;
		send_piece(self, &input, length);
		if (input_byte(&input) == 0xFE) {
			server_list_changed(self->server, "prompts");
			continue;
		}
		served_end(self);
		look_at(self);
		open = false;
	}
	if (open) {
		served_end(self);
		look_at(self);
	}
	forget_session(self);
	return 0;
}

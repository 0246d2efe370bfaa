// SPDX-License-Identifier: MIT
/*
 * What comes over a WebSocket once it is one, through lws and all of ours.  Input:
 * frames: the first byte as it is sent; one with the length of the data, at most 127,
 * and, as 128, whether the frame comes in two pieces; then the data, masked here.  A
 * first byte of 0xFF: all that follows is sent as it is.
 */
#include "served.h"

static const char handshake[] =
    "GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
    "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n";

enum { OP_TEXT = 1, OP_CLOSE = 8, OP_PING, OP_PONG, FIN = 0x80 };

static void look_at_close(const struct input *data)
{
	if (data->left < 2)
		return;
	int code = data->at[0] << 8 | data->at[1];

	/* These are never sent; the other side's own is sent back. */
	MUST(code >= 1000 && code != 1005 && code != 1006 && code != 1015);
}

static size_t read_length(struct input *input)
{
	size_t length = input_byte(input);
	int more = length == 126 ? 2 : length == 127 ? 8 : 0;

	MUST(length < 128); /* a server does not mask */
	if (more)
		length = 0;
	while (more--)
		length = length << 8 | input_byte(input);
	return length;
}

/* Frames in one piece or several; text is JSON-RPC.  The last may be cut. */
static void look_at_frames(struct input input)
{
	owned(buf_finish) struct buf text = {0};

	while (input.left) {
		uint8_t first = input_byte(&input);
		size_t length = read_length(&input);

		MUST(!(first & 0x70));
		if (length > input.left)
			return;
		struct input data = {input.at, length};
		input.at += length;
		input.left -= length;
		if ((first & 15) == OP_CLOSE)
			look_at_close(&data);
		if ((first & 15) >= OP_CLOSE)
			continue;
		MUST((first & 15) <= OP_TEXT);
		buf_add(&text, data.at, data.left);
		if (!(first & FIN))
			continue;
		json_auto_t *message = json_loadb(buf_str(&text), text.size, 0, NULL);
		MUST(json_is_object(message) || json_is_array(message));
		text.size = 0;
	}
}

static void look_at(struct served *self)
{
	static const char switching[] = "HTTP/1.1 101 ";
	const char *text = buf_str(&self->answer), *end = strstr(text, "\r\n\r\n");

	MUST(strncmp(text, switching, strlen(switching)) == 0 && end);
	size_t head = (size_t)(end + 4 - text);
	look_at_frames(
	    (struct input){(const uint8_t *)text + head, self->answer.size - head});
}

static void send_frame(struct served *self, struct input *input, uint8_t first)
{
	uint8_t how = input_byte(input), frame[2 + 4 + 127];
	size_t length = how & 127, cut;

	length = length < 126 ? length : 125;
	length = length < input->left ? length : input->left;
	frame[0] = first;
	frame[1] = (uint8_t)(0x80 | length);
	for (size_t i = 0; i < 4; i++)
		frame[2 + i] = (uint8_t)(first * 7 + how * i);
	for (size_t i = 0; i < length; i++)
		frame[6 + i] = (uint8_t)(input_byte(input) ^ frame[2 + i % 4]);
	cut = how & 128 ? (length + 6) / 2 : 0;
	if (cut)
		served_send(self, frame, cut);
	served_send(self, frame + cut, length + 6 - cut);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct served *self = served();
	struct input input = {data, size};

	served_connect(self);
	served_send(self, handshake, strlen(handshake));
	while (input.left) {
		uint8_t first = input_byte(&input);

		if (first == 0xFF) {
			served_send(self, input.at, input.left);
			break;
		}
		send_frame(self, &input, first);
	}
	served_end(self);
	look_at(self);
	return 0;
}

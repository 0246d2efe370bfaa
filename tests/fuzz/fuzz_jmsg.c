// SPDX-License-Identifier: MIT
/*
 * Messages from a kernel.  Input: a byte (odd: the driver signs the message, so that
 * the JSON in it is reached), then frames, each with its size in two bytes before it.
 */
#include "wire/jmsg.h"

#include "fuzz.h"
#include "texts.h"

static const char key[] = "a key that no input was signed with";

static size_t load(struct input *input, struct frame *frames)
{
	size_t count = 0;

	while (input->left && count < FRAMES_MAX) {
		size_t size = input_byte(input);

		size |= (size_t)input_byte(input) << 8;
		if (size > input->left)
			size = input->left;
		frames[count++] = (struct frame){input_copy(input, size, false), size};
	}
	return count;
}

static void check_split(const struct jmsg_frames *split, const struct frame *frames,
			size_t count)
{
	MUST(split->signature > frames && split->signature < frames + count);
	MUST(split->parts == split->signature + 1);
	MUST(split->buffers == split->parts + SIGN_PARTS);
	MUST(split->buffer_count < count);
	MUST(split->buffers + split->buffer_count == frames + count);
}

static void sign(const struct jmsg_frames *split, struct frame *signature)
{
	struct sign_part parts[SIGN_PARTS];
	char *text = xcalloc(1, SIGN_HEX + 1);

	for (int i = 0; i < SIGN_PARTS; i++)
		parts[i] =
		    (struct sign_part){split->parts[i].data, split->parts[i].size};
	sign_parts(key, parts, text);
	free((void *)(uintptr_t)signature->data);
	*signature = (struct frame){text, SIGN_HEX};
}

static void read_all(const struct frame *frames, size_t count, bool is_signed)
{
	owned(replay_finish) struct replay_guard guard = {0};
	owned(jmsg_finish) struct jmsg message = {0};
	struct jmsg other;
	struct err err;

	MUST(jmsg_read(&other, "another key", NULL, frames, count, &err) < 0);
	if (jmsg_read(&message, key, &guard, frames, count, &err) < 0)
		return;
	MUST(is_signed); /* nobody else can */
	MUST(message.type && message.id && message.parent_id);
	check_texts(message.header);
	check_texts(message.parent);
	check_texts(message.metadata);
	check_texts(message.content);
	MUST(jmsg_read(&other, key, &guard, frames, count, &err) < 0); /* a replay */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	bool is_signed = input_byte(&input) & 1;
	struct frame frames[FRAMES_MAX] = {{0}};
	struct jmsg_frames split;
	struct err err;
	size_t count = load(&input, frames);

	if (jmsg_split(&split, frames, count, &err) == 0) {
		check_split(&split, frames, count);
		if (is_signed)
			sign(&split, &frames[split.signature - frames]);
		read_all(frames, count, is_signed);
	}
	for (size_t i = 0; i < count; i++)
		free((void *)(uintptr_t)frames[i].data);
	return 0;
}

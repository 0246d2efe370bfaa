// SPDX-License-Identifier: MIT
/* What a kernel sends on a connection.  Input: a byte that says how to cut, then what
 * came from the wire; behind a good greeting and READY if that byte is odd. */
#include "wire/zmtp.h"

#include "fuzz.h"
#include "wire/buf.h"

enum { MESSAGE_MAX = 300 };

static size_t next_size(uint32_t *seed, size_t most)
{
	*seed = *seed * 1664525 + 1013904223;
	size_t size = 1 + (*seed >> 24) % 40;
	return size < most ? size : most;
}

/* All messages of the connection, in a form that tells them apart. */
static void note(struct buf *out, const struct zmtp *self)
{
	if (self->too_long) {
		buf_text(out, "dropped\n");
		return;
	}
	MUST(self->count && self->count <= FRAMES_MAX);
	MUST(self->ends[self->count - 1] == self->body.size);
	MUST(self->body.size <= MESSAGE_MAX);
	for (size_t i = 0; i < self->count; i++) {
		MUST(i == 0 || self->ends[i] >= self->ends[i - 1]);
		buf_printf(out, "%zu ", self->ends[i]);
	}
	buf_add(out, buf_str(&self->body), self->body.size);
	buf_text(out, "\n");
}

static void read_all(struct zmtp *self, const struct buf *wire, uint32_t seed,
		     bool in_pieces, struct buf *out)
{
	struct input input = {(const uint8_t *)buf_str(wire), wire->size};

	while (input.left) {
		size_t part = in_pieces ? next_size(&seed, input.left) : input.left;
		owned(free_text) char *copy = input_copy(&input, part, false);
		size_t at = 0, used;

		while (at < part) {
			bool whole = zmtp_read(self, copy + at, part - at, &used);

			MUST(used <= part - at);
			MUST(whole || used == part - at);
			MUST(self->body.room <= 2 * (MESSAGE_MAX + 4096) + 64);
			at += used;
			if (!whole)
				break;
			note(out, self);
			zmtp_next(self);
		}
	}
	buf_printf(out, "state %d", (int)self->state);
}

/* However the network cuts it, it says the same. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	uint8_t how = input_byte(&input);
	owned(buf_finish) struct buf wire = {0}, whole = {0}, pieces = {0};
	owned(zmtp_finish) struct zmtp one = {.message_max = MESSAGE_MAX};
	owned(zmtp_finish) struct zmtp many = {.message_max = MESSAGE_MAX};

	if (how & 1)
		zmtp_greet(&wire, "ROUTER", "");
	buf_add(&wire, input.at, input.left);
	read_all(&one, &wire, 0, false, &whole);
	read_all(&many, &wire, how * 2654435761u, true, &pieces);
	MUST(whole.size == pieces.size);
	MUST(memcmp(buf_str(&whole), buf_str(&pieces), whole.size) == 0);
	return 0;
}

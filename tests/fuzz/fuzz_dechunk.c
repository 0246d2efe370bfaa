// SPDX-License-Identifier: MIT
/* Chunked bodies.  Input: a byte that says how to cut, then what came from the wire. */
#include "wire/dechunk.h"

#include "fuzz.h"
#include "wire/buf.h"

/* The sizes of pieces: anything, but the same for the same byte. */
static size_t next_size(uint32_t *seed, size_t most)
{
	*seed = *seed * 1664525 + 1013904223;
	size_t size = 1 + (*seed >> 24) % 16;
	return size < most ? size : most;
}

/* Feeds all of data in pieces; -1 if any of them is refused. */
static int feed(struct dechunk *self, const uint8_t *data, size_t size, bool in_pieces,
		uint32_t seed, struct buf *out)
{
	struct input input = {data, size};

	while (input.left) {
		size_t part = in_pieces ? next_size(&seed, input.left) : input.left;
		owned(free_text) char *copy = input_copy(&input, part, false);
		long got = dechunk_feed(self, (unsigned char *)copy, part);

		if (got < 0)
			return -1;
		MUST((size_t)got <= part);
		buf_add(out, copy, (size_t)got);
	}
	return 0;
}

/* However the network cuts it, it says the same. */
static void check_cuts(const uint8_t *data, size_t size, uint32_t seed)
{
	owned(buf_finish) struct buf whole = {0}, joined = {0};
	struct dechunk one = {0}, many = {0};
	int rc = feed(&one, data, size, false, 0, &whole);

	MUST(feed(&many, data, size, true, seed, &joined) == rc);
	if (rc < 0)
		return;
	MUST(whole.size == joined.size && one.state == many.state);
	MUST(memcmp(buf_str(&whole), buf_str(&joined), whole.size) == 0);
}

/* What a client chunks comes back as it was. */
static void check_round_trip(const uint8_t *data, size_t size, uint32_t seed)
{
	owned(buf_finish) struct buf wire = {0}, back = {0};
	struct dechunk self = {0};
	struct input input = {data, size};

	while (input.left) {
		size_t part = next_size(&seed, input.left);

		buf_printf(&wire, "%zx%s\r\n", part, part % 2 ? ";a=\"b\"" : "");
		buf_add(&wire, input.at, part);
		buf_text(&wire, "\r\n");
		input.at += part;
		input.left -= part;
	}
	buf_text(&wire, "0\r\nTrailer: x\r\n\r\nGET /next");
	MUST(feed(&self, (const uint8_t *)wire.data, wire.size, true, ~seed, &back) ==
	     0);
	MUST(self.state == DECHUNK_DONE && back.size == size);
	MUST(memcmp(buf_str(&back), data, size) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	uint32_t seed = input_byte(&input) * 2654435761u;

	check_cuts(input.at, input.left, seed);
	if (input.left)
		check_round_trip(input.at, input.left, seed);
	return 0;
}

// SPDX-License-Identifier: MIT
/* Text that may not be text, and control sequences in it.  Input: a byte that says
 * where to cut, then the text. */
#include "wire/utf8.h"

#include <jansson.h>

#include "fuzz.h"
#include "wire/ansi.h"

static void check_clean(const char *text, size_t size, const struct buf *clean,
			size_t replaced)
{
	json_t *other_opinion = json_stringn(clean->data, clean->size);

	MUST(other_opinion);
	json_decref(other_opinion);
	MUST(utf8_valid_up_to(clean->data, clean->size) == clean->size);
	MUST(clean->size <= 3 * size);
	MUST((utf8_valid_up_to(text, size) == size) == !replaced);
	MUST(replaced || (clean->size == size && memcmp(clean->data, text, size) == 0));
	MUST(utf8_count(clean->data, clean->size) == utf8_count(text, size));
}

static void check_counts(const char *text, size_t size, size_t some)
{
	size_t all = utf8_count(text, size);
	size_t front = utf8_prefix(text, size, some);

	MUST(front <= size && utf8_suffix(text, size, some) <= size);
	MUST(utf8_count(text, front) == (some < all ? some : all));
	if (some <= all)
		MUST(front + utf8_suffix(text, size, all - some) == size);
	MUST(utf8_prefix(text, size, all) == size);
	MUST(utf8_suffix(text, size, all) == size);
}

/* Text in two pieces, with what is unfinished kept back, cleans to the same. */
static void check_pieces(const char *text, size_t size, size_t cut,
			 const struct buf *clean)
{
	owned(buf_finish) struct buf joined = {0};
	size_t back = utf8_unfinished(text, cut);

	MUST(back <= 3 && back <= cut);
	utf8_clean(&joined, text, cut - back);
	utf8_clean(&joined, text + cut - back, size - cut + back);
	MUST(joined.size == clean->size);
	MUST(memcmp(buf_str(&joined), clean->data, joined.size) == 0);
}

static void check_shown(const char *text, size_t size)
{
	owned(buf_finish) struct buf shown = {0};

	utf8_show(&shown, text, size);
	MUST(utf8_valid_up_to(buf_str(&shown), shown.size) == shown.size);
	for (size_t i = 0; i < shown.size; i++)
		MUST((unsigned char)shown.data[i] >= ' ' && shown.data[i] != 0x7f);
}

static void check_stripped(const char *text, size_t size)
{
	owned(buf_finish) struct buf plain = {0};

	ansi_strip(&plain, text, size);
	MUST(plain.size <= size);
	MUST(!memchr(buf_str(&plain), 0x1b, plain.size));
	if (utf8_valid_up_to(text, size) == size) /* not cut inside a character */
		MUST(utf8_valid_up_to(buf_str(&plain), plain.size) == plain.size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	size_t some = input_byte(&input);
	const char *text = (const char *)input.at;
	owned(buf_finish) struct buf clean = {0};

	if (!input.left)
		return 0;
	check_clean(text, input.left, &clean, utf8_clean(&clean, text, input.left));
	check_counts(text, input.left, some);
	check_pieces(text, input.left, some % (input.left + 1), &clean);
	check_shown(text, input.left);
	check_stripped(text, input.left);
	check_stripped(clean.data, clean.size);
	return 0;
}

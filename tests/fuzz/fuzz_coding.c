// SPDX-License-Identifier: MIT
/*
 * A text file in whatever code.  Input: a byte for the size of the pieces, then the
 * file.  The coding is the one that its beginning tells.
 */
#include "kernelmgr/coding.h"

#include "fuzz.h"
#include "wire/utf8.h"

enum { ALL = 1 << 20 };

/* Takes it in pieces of at least a character each, as a reader from an offset does. */
static size_t take_in_pieces(enum coding coding, const char *text, size_t size,
			     size_t step, struct buf *out)
{
	size_t left = ALL;

	for (size_t at = 0; at < size;) {
		size_t part = size - at < step ? size - at : step;
		size_t used =
		    coding_take(coding, text + at, part, at + part == size, &left, out);

		MUST(used > 0 && used <= part);
		at += used;
	}
	return ALL - left;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	size_t step = CODING_BYTES_MAX + input_byte(&input);
	size_t length = input.left, left = ALL;
	owned(free_text) char *text = input_copy(&input, length, false);
	owned(buf_finish) struct buf whole = {0}, pieces = {0};
	enum coding coding;

	size_t mark = coding_mark(text, length, &coding);
	MUST(mark <= length && mark <= CODING_MARK_MAX);
	if (!mark && !coding_guess(text, length, &coding))
		return 0;
	coding_settle(&coding, text + mark, length - mark, true);
	MUST(coding_name(coding)[0]);
	MUST(coding_take(coding, text + mark, length - mark, true, &left, &whole) ==
	     length - mark);
	MUST(utf8_valid_up_to(buf_str(&whole), whole.size) == whole.size);
	MUST(utf8_count(buf_str(&whole), whole.size) == ALL - left);
	MUST(take_in_pieces(coding, text + mark, length - mark, step, &pieces) ==
	     ALL - left);
	MUST(pieces.size == whole.size);
	MUST(memcmp(buf_str(&pieces), buf_str(&whole), whole.size) == 0);
	return 0;
}

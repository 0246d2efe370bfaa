// SPDX-License-Identifier: MIT
#include "wire/utf8.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { SEQUENCE_MAX = 4 };

struct lead { /* what may follow a first byte (Unicode, table 3-7) */
	unsigned size;
	unsigned char low, high; /* of the second byte; later ones are 80 to BF */
};

struct sequence {
	size_t size;
	bool valid;
	bool unfinished; /* broken only in that the text ends too early */
};

static struct lead lead_of(unsigned char first)
{
	if (first < 0x80)
		return (struct lead){1, 0, 0};
	if (first >= 0xC2 && first <= 0xDF)
		return (struct lead){2, 0x80, 0xBF};
	if (first >= 0xE0 && first <= 0xEF)
		return (struct lead){3, first == 0xE0 ? 0xA0 : 0x80,
				     first == 0xED ? 0x9F : 0xBF};
	if (first >= 0xF0 && first <= 0xF4)
		return (struct lead){4, first == 0xF0 ? 0x90 : 0x80,
				     first == 0xF4 ? 0x8F : 0xBF};
	return (struct lead){0, 0, 0};
}

static bool continues(char byte)
{
	return ((unsigned char)byte & 0xC0) == 0x80;
}

/* The sequence that text starts with; size is not 0. */
static struct sequence step(const char *text, size_t size)
{
	struct lead lead = lead_of((unsigned char)text[0]);
	size_t at = 1;

	if (lead.size <= 1)
		return (struct sequence){.size = 1, .valid = lead.size == 1};
	if (at < size &&
	    ((unsigned char)text[1] < lead.low || (unsigned char)text[1] > lead.high))
		return (struct sequence){.size = 1};
	while (at < size && at < lead.size && continues(text[at]))
		at++;
	return (struct sequence){.size = at,
				 .valid = at == lead.size,
				 .unfinished = at == size && at < lead.size};
}

/* Bytes of plain ASCII that text starts with, eight at a time. */
static size_t ascii_run(const char *text, size_t size)
{
	size_t at = 0;
	uint64_t word;

	for (; size - at >= sizeof word; at += sizeof word) {
		memcpy(&word, text + at, sizeof word);
		if (word & UINT64_C(0x8080808080808080))
			break;
	}
	while (at < size && !((unsigned char)text[at] & 0x80))
		at++;
	return at;
}

size_t utf8_valid_up_to(const char *text, size_t size)
{
	size_t at = 0;

	while (at < size) {
		at += ascii_run(text + at, size - at);
		if (at == size)
			break;
		struct sequence next = step(text + at, size - at);
		if (!next.valid)
			break;
		at += next.size;
	}
	return at;
}

size_t utf8_clean(struct buf *out, const char *text, size_t size)
{
	size_t at = 0, replaced = 0;

	while (at < size) {
		size_t good = utf8_valid_up_to(text + at, size - at);

		buf_add(out, text + at, good);
		at += good;
		if (at == size)
			break;
		buf_text(out, "\xEF\xBF\xBD");
		at += step(text + at, size - at).size;
		replaced++;
	}
	return replaced;
}

size_t utf8_count(const char *text, size_t size)
{
	size_t at = 0, count = 0;

	while (at < size) {
		size_t plain = ascii_run(text + at, size - at);

		at += plain;
		count += plain;
		if (at == size)
			break;
		at += step(text + at, size - at).size;
		count++;
	}
	return count;
}

size_t utf8_prefix(const char *text, size_t size, size_t max_chars)
{
	size_t at = 0;

	while (at < size && max_chars) {
		size_t left = size - at;
		size_t plain =
		    ascii_run(text + at, left < max_chars ? left : max_chars);

		at += plain;
		max_chars -= plain;
		if (at == size || !max_chars)
			break;
		at += step(text + at, size - at).size;
		max_chars--;
	}
	return at;
}

/* The size of the sequence that ends at text + end, where one ends and end is not 0.
 * A first byte never stands inside another sequence, so the nearest one before the
 * end is where a step from the front would have stopped too. */
static size_t step_back(const char *text, size_t end)
{
	size_t back = 1;

	while (back < SEQUENCE_MAX && back < end && continues(text[end - back]))
		back++;
	return step(text + end - back, back).size == back ? back : 1;
}

size_t utf8_suffix(const char *text, size_t size, size_t max_chars)
{
	size_t end = size;

	for (; end && max_chars; max_chars--) {
		bool plain = !((unsigned char)text[end - 1] & 0x80);

		end -= plain ? 1 : step_back(text, end);
	}
	return size - end;
}

size_t utf8_unfinished(const char *text, size_t size)
{
	size_t back = 1;

	if (!size)
		return 0;
	while (back < SEQUENCE_MAX && back < size && continues(text[size - back]))
		back++;
	struct sequence last = step(text + size - back, back);
	return last.unfinished && last.size == back ? back : 0;
}

static unsigned code_point(const char *text, size_t size)
{
	static const unsigned char mask[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
	unsigned code = (unsigned char)text[0] & mask[size];

	for (size_t i = 1; i < size; i++)
		code = code << 6 | ((unsigned char)text[i] & 0x3F);
	return code;
}

/* What has no place inside a line: C0 and C1 controls, line and paragraph separators,
 * and the marks that turn the direction of the text around them. */
static bool deceives(unsigned code)
{
	return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x200E ||
	       code == 0x200F || (code >= 0x2028 && code <= 0x202E) ||
	       (code >= 0x2066 && code <= 0x2069) || code == 0xFEFF;
}

static void show_escaped(struct buf *out, unsigned code)
{
	if (code == '\n')
		buf_text(out, "\\n");
	else if (code == '\t')
		buf_text(out, "\\t");
	else if (code == '\r')
		buf_text(out, "\\r");
	else if (code <= 0xFF)
		buf_printf(out, "\\x%02x", code);
	else
		buf_printf(out, "\\u%04x", code);
}

void utf8_show(struct buf *out, const char *text, size_t size)
{
	for (size_t at = 0; at < size;) {
		struct sequence next = step(text + at, size - at);
		unsigned code = next.valid ? code_point(text + at, next.size) : 0xFFFD;

		if (deceives(code))
			show_escaped(out, code);
		else if (next.valid)
			buf_add(out, text + at, next.size);
		else
			buf_text(out, "\xEF\xBF\xBD");
		at += next.size;
	}
}

void utf8_show_cut(struct buf *out, const char *text, size_t size, size_t max_chars)
{
	size_t cut = utf8_prefix(text, size, max_chars);

	utf8_show(out, text, cut);
	if (cut < size)
		buf_text(out, "\xe2\x80\xa6");
}

// SPDX-License-Identifier: MIT
#include "kernelmgr/coding.h"

#include <stdint.h>
#include <string.h>

#include "wire/mem.h"
#include "wire/utf8.h"

enum { BROKEN = 0xFFFD };

static const struct {
	const char *name, *mark;
	size_t mark_size;
	size_t unit; /* bytes */
} rows[] = {
    [CODING_UTF_8] = {"utf-8", "\xEF\xBB\xBF", 3, 1},
    [CODING_UTF_16LE] = {"utf-16le", "\xFF\xFE", 2, 2},
    [CODING_UTF_16BE] = {"utf-16be", "\xFE\xFF", 2, 2},
    [CODING_UTF_32LE] = {"utf-32le", "\xFF\xFE\0\0", 4, 4},
    [CODING_UTF_32BE] = {"utf-32be", "\0\0\xFE\xFF", 4, 4},
    [CODING_WINDOWS_1252] = {"windows-1252", "", 0, 1},
};

/* What 80 to 9F mean; 0 where they mean nothing. */
static const uint16_t windows[32] = {
    0x20AC, 0,      0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021,
    0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0,      0x017D, 0,
    0,      0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014,
    0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0,      0x017E, 0x0178,
};

const char *coding_name(enum coding coding)
{
	return rows[coding].name;
}

size_t coding_mark(const char *text, size_t size, enum coding *out)
{
	size_t found = 0;

	*out = CODING_UTF_8;
	/* The longest: UTF-32's begins as UTF-16's. */
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		if (rows[i].mark_size > found && size >= rows[i].mark_size &&
		    memcmp(text, rows[i].mark, rows[i].mark_size) == 0) {
			found = rows[i].mark_size;
			*out = (enum coding)i;
		}
	return found;
}

/* ---- guessing ---- */

/* Has it bytes beyond ASCII that are no UTF-8, none that are, and a meaning for each?
 * Where something is UTF-8, what is not is broken. */
static bool is_windows(const char *text, size_t size)
{
	bool broken = false;

	for (size_t at = 0; at < size;) {
		size_t good = utf8_valid_up_to(text + at, size - at);

		for (size_t i = 0; i < good; i++)
			if ((unsigned char)text[at + i] >= 0x80)
				return false;
		at += good;
		if (at == size)
			break;
		unsigned char byte = (unsigned char)text[at++];
		if (byte < 0xA0 && !windows[byte - 0x80])
			return false;
		broken = true;
	}
	return broken;
}

void coding_settle(enum coding *self, const char *text, size_t size, bool last)
{
	if (*self != CODING_UTF_8)
		return;
	if (!last)
		size -= utf8_unfinished(text, size);
	if (is_windows(text, size))
		*self = CODING_WINDOWS_1252;
}

static bool is_control(unsigned char byte)
{
	return byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\f' &&
	       byte != '\r';
}

/* Zero bytes on one side only, in most of the characters, and no other controls. */
static bool is_utf16(const char *head, size_t size, size_t high)
{
	size_t zeros = 0, units = size / 2;

	for (size_t i = 0; i + 1 < size; i += 2) {
		unsigned char upper = (unsigned char)head[i + high];
		unsigned char lower = (unsigned char)head[i + 1 - high];

		if (upper == 0 && is_control(lower))
			return false;
		zeros += upper == 0;
	}
	return units >= 2 && zeros * 4 >= units * 3;
}

bool coding_guess(const char *head, size_t size, enum coding *out)
{
	*out = CODING_UTF_8;
	if (!memchr(head, '\0', size)) {
		coding_settle(out, head, size, false);
		return true;
	}
	*out = is_utf16(head, size, 1) ? CODING_UTF_16LE : CODING_UTF_16BE;
	return is_utf16(head, size, *out == CODING_UTF_16LE);
}

/* ---- taking ---- */

static uint32_t number(const unsigned char *at, size_t size, bool little)
{
	uint32_t value = 0;

	for (size_t i = 0; i < size; i++)
		value = value << 8 | at[little ? size - 1 - i : i];
	return value;
}

static bool is_surrogate(uint32_t unit, uint32_t first)
{
	return unit >= first && unit < first + 0x400;
}

/* Bytes of the character that text begins with, and which it is; 0: it is cut. */
static size_t step16(const unsigned char *at, size_t size, bool little, uint32_t *out)
{
	if (size < 2)
		return 0;
	*out = number(at, 2, little);
	if (is_surrogate(*out, 0xD800)) {
		if (size < 4)
			return 0;
		uint32_t low = number(at + 2, 2, little);
		if (is_surrogate(low, 0xDC00)) {
			*out = 0x10000 + ((*out - 0xD800) << 10) + (low - 0xDC00);
			return 4;
		}
	}
	if (is_surrogate(*out, 0xD800) || is_surrogate(*out, 0xDC00))
		*out = BROKEN;
	return 2;
}

static size_t step32(const unsigned char *at, size_t size, bool little, uint32_t *out)
{
	if (size < 4)
		return 0;
	*out = number(at, 4, little);
	if (*out > 0x10FFFF || (*out >= 0xD800 && *out < 0xE000))
		*out = BROKEN;
	return 4;
}

static size_t step(enum coding self, const unsigned char *at, size_t size,
		   uint32_t *out)
{
	switch (self) {
	case CODING_UTF_16LE:
	case CODING_UTF_16BE:
		return step16(at, size, self == CODING_UTF_16LE, out);
	case CODING_UTF_32LE:
	case CODING_UTF_32BE:
		return step32(at, size, self == CODING_UTF_32LE, out);
	case CODING_WINDOWS_1252:
		*out = at[0] >= 0x80 && at[0] < 0xA0 ? windows[at[0] - 0x80] : at[0];
		if (at[0] && !*out)
			*out = BROKEN;
		return 1;
	case CODING_UTF_8:
		break;
	}
	return 0;
}

static void put(struct buf *out, uint32_t code)
{
	char text[4];
	size_t size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

	for (size_t i = size - 1; i > 0; i--, code >>= 6)
		text[i] = (char)(0x80 | (code & 0x3F));
	text[0] = (char)(size == 1 ? code : (0xF00u >> size & 0xFF) | code);
	buf_add(out, text, size);
}

static size_t take_utf8(const char *text, size_t size, bool last, size_t *chars,
			struct buf *out)
{
	if (!last)
		size -= utf8_unfinished(text, size);
	size_t used = utf8_prefix(text, size, *chars);
	*chars -= utf8_count(text, used);
	if (out)
		utf8_clean(out, text, used);
	return used;
}

size_t coding_take(enum coding self, const char *text, size_t size, bool last,
		   size_t *chars, struct buf *out)
{
	size_t at = 0;

	if (self == CODING_UTF_8)
		return take_utf8(text, size, last, chars, out);
	for (; at < size && *chars; --*chars) {
		uint32_t code = 0;
		size_t used =
		    step(self, (const unsigned char *)text + at, size - at, &code);

		if (!used && !last)
			break;
		at += used ? used : size - at;
		if (out)
			put(out, used ? code : BROKEN);
	}
	return at;
}

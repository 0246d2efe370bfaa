// SPDX-License-Identifier: MIT
#include "wire/json_repair.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Bytes that jansson 2.14 takes on a 64-bit machine, measured. */
enum {
	COST_OBJECT = 232, /* its table has eight rows from the start */
	COST_ARRAY = 136,
	COST_STRING = 84, /* names of members too; what is in it comes on top */
	COST_MEMBER = 52,
	COST_WORD = 34, /* a number; true, false and null take nothing */
	COST_PLACE = 16,
};

/* Where the string ends that starts with the quote at text: behind its closing quote,
 * or at the end. */
static const char *string_end(const char *text, const char *end)
{
	for (text++; text < end && *text != '"'; text++)
		if (*text == '\\' && text + 1 < end)
			text++;
	return text < end ? text + 1 : end;
}

static bool is_word(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
	       (c >= 'A' && c <= 'Z') || c == '+' || c == '-' || c == '.';
}

static const char *word_end(const char *text, const char *end)
{
	while (text < end && is_word(*text))
		text++;
	return text;
}

size_t json_cost(const char *text, size_t size)
{
	const char *end = text + size;
	size_t cost = 0;

	while (text < end) {
		char c = *text;

		if (c == '"') {
			cost += COST_STRING;
			text = string_end(text, end);
		} else if (is_word(c)) {
			cost += COST_WORD;
			text = word_end(text, end);
		} else {
			cost += c == '{'   ? COST_OBJECT
				: c == '[' ? COST_ARRAY
				: c == ':' ? COST_MEMBER
				: c == ',' ? COST_PLACE
					   : 0;
			text++;
		}
	}
	return cost;
}

/* ---- repairing ---- */

static int hex4(const char *text)
{
	int value = 0;

	for (int i = 0; i < 4; i++) {
		char c = text[i] | 0x20;

		if (c >= '0' && c <= '9')
			value = value * 16 + (c - '0');
		else if (c >= 'a' && c <= 'f')
			value = value * 16 + (c - 'a' + 10);
		else
			return -1;
	}
	return value;
}

/* Looks at a backslash-u escape; returns its length in bytes (6, or 12 for a pair) if
 * it may stay, or 0 if it stands for no character. */
static size_t escape_length(const char *at, const char *end)
{
	int unit = end - at >= 6 ? hex4(at + 2) : -1;

	if (unit <= 0 || (unit >= 0xdc00 && unit <= 0xdfff))
		return 0;
	if (unit < 0xd800 || unit > 0xdbff)
		return 6;
	if (end - at < 12 || at[6] != '\\' || at[7] != 'u')
		return 0;
	int low = hex4(at + 8);
	return low >= 0xdc00 && low <= 0xdfff ? 12 : 0;
}

/* What has to stand for the escape at slash, or NULL if it may stay; *size is its own
 * size.  A quote that cuts it short is not part of it. */
static const char *instead_of_escape(const char *slash, const char *end, size_t *size)
{
	*size = slash + 1 < end ? 2 : 1;
	if (*size == 1 || slash[1] != 'u')
		return NULL;
	size_t keep = escape_length(slash, end);
	while (!keep && *size < 6 && slash + *size < end && slash[*size] != '"')
		++*size;
	if (keep)
		*size = keep;
	return keep ? NULL : "\\ufffd";
}

static void repair_string(struct buf *out, const char *text, const char *end)
{
	const char *start = text, *slash;
	size_t size;

	while ((slash = memchr(text, '\\', (size_t)(end - text)))) {
		const char *instead = instead_of_escape(slash, end, &size);

		text = slash + size;
		if (!instead)
			continue;
		buf_add(out, start, (size_t)(slash - start));
		buf_text(out, instead);
		start = text;
	}
	buf_add(out, start, (size_t)(end - start));
}

/* NaN and Infinity are what Python writes where JSON has no word. */
static bool has_a_value(const char *text, size_t size)
{
	static const char *const none[] = {"NaN", "Infinity", "-Infinity"};

	if (size < sizeof "NaN" - 1) /* most of what a bomb is made of */
		return true;
	for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
		if (size == strlen(none[i]) && memcmp(text, none[i], size) == 0)
			return false;
	if (*text != '-' && (*text < '0' || *text > '9'))
		return true;
	errno = 0;
	if (memchr(text, '.', size) || memchr(text, 'e', size) ||
	    memchr(text, 'E', size))
		return !isinf(strtod(text, NULL));
	(void)strtoll(text, NULL, 10);
	return errno != ERANGE;
}

/* Behind the object or array that starts at text. */
static const char *container_end(const char *text, const char *end)
{
	size_t open = 0;

	while (text < end) {
		if (*text == '"') {
			text = string_end(text, end);
			continue;
		}
		if (*text == '{' || *text == '[')
			open++;
		else if ((*text == '}' || *text == ']') && --open == 0)
			return text + 1;
		text++;
	}
	return end;
}

/* Takes the piece that text starts with; false if null has to stand for it. */
static bool may_stay(const char *text, const char *end, unsigned depth, unsigned *level,
		     const char **next)
{
	if (is_word(*text)) {
		*next = word_end(text, end);
		return has_a_value(text, (size_t)(*next - text));
	}
	if ((*text == '{' || *text == '[') && *level == depth) {
		*next = container_end(text, end);
		return false;
	}
	*level += *text == '{' || *text == '[';
	*level -= *level && (*text == '}' || *text == ']');
	*next = text + 1;
	return true;
}

void json_repair(struct buf *out, const char *text, size_t size, unsigned depth)
{
	const char *end = text + size, *start = text, *next;
	unsigned level = 0;

	for (; text < end; text = next) {
		bool is_string = *text == '"';

		if (!is_string && may_stay(text, end, depth, &level, &next))
			continue;
		buf_add(out, start, (size_t)(text - start));
		if (is_string)
			repair_string(out, text, next = string_end(text, end));
		else
			buf_text(out, "null");
		start = next;
	}
	buf_add(out, start, (size_t)(end - start));
}

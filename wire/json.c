// SPDX-License-Identifier: MIT
#include "wire/json.h"

#include <limits.h>
#include <stdbool.h>
#include <string.h>

#include "wire/json_repair.h"
#include "wire/mem.h"
#include "wire/utf8.h"

enum {
	COST_OF_A_BYTE_MAX = 256, /* json_cost() of one byte is less */
	DEPTH_KEPT = 64, /* levels, where jansson or our own json_write() has limits */
	/* Levels of a kernel's message that anybody reads: content, and in it a bundle
	 * of texts, or the lines of a traceback. */
	DEPTH_WANTED = 2,
};

/* RFC 8259 allows any nesting; jansson stops at 2,048 levels by itself. */
static json_t *load(const char *text, size_t size, json_error_t *error)
{
	return json_loadb(text, size, JSON_ALLOW_NUL | JSON_DECODE_ANY, error);
}

/* Small texts, which nearly all are, need no look. */
static bool is_small(const char *text, size_t size, size_t tree_max)
{
	return size <= tree_max / COST_OF_A_BYTE_MAX ||
	       json_cost(text, size) <= tree_max;
}

int json_parse_within(json_t **out, const char *text, size_t size, size_t tree_max,
		      struct err *err)
{
	json_error_t error;

	*out = NULL;
	if (!is_small(text, size, tree_max))
		return err_set(err, ERR_LIMIT,
			       "JSON of more values than fit into %zu MiB of memory",
			       tree_max >> 20);
	*out = load(text, size, &error);
	if (*out)
		return 0;
	return err_set(err, ERR_PARSE, "not valid JSON at byte %d: %.150s",
		       error.position, error.text);
}

int json_parse(json_t **out, const char *text, size_t size, struct err *err)
{
	return json_parse_within(out, text, size, JSON_TREE_MAX, err);
}

int json_parse_lossy(json_t **out, const char *text, size_t size, struct err *err)
{
	owned(buf_finish) struct buf clean = {0}, repaired = {0};
	bool fits = is_small(text, size, JSON_TREE_MAX);
	json_error_t error;

	/* Nearly all messages are clean: only those that fail, or hold a NUL that C
	 * strings would stumble over, pay for the repair. */
	if (fits && !memmem(text, size, "\\u0000", 6) &&
	    (*out = load(text, size, &error)))
		return 0;
	utf8_clean(&clean, text, size);
	json_repair(&repaired, buf_str(&clean), clean.size,
		    fits ? DEPTH_KEPT : DEPTH_WANTED);
	return json_parse(out, buf_str(&repaired), repaired.size, err);
}

const char *json_text(const json_t *object, const char *key, const char *fallback)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : fallback;
}

long long json_integer_of(const json_t *object, const char *key, long long fallback)
{
	const json_t *value = json_object_get(object, key);

	return json_is_integer(value) ? json_integer_value(value) : fallback;
}

size_t json_count_of(const json_t *object, const char *key)
{
	long long count = json_integer_of(object, key, 0);

	return count > 0 && count <= INT_MAX ? (size_t)count : 0;
}

size_t json_index_of(const json_t *array, const json_t *value)
{
	size_t i = 0;

	while (i < json_array_size(array) &&
	       !json_equal(json_array_get(array, i), value))
		i++;
	return i;
}

bool json_array_has(const json_t *array, const json_t *value)
{
	return json_index_of(array, value) < json_array_size(array);
}

json_t *json_string_lossy(const char *text, size_t size)
{
	json_t *value = json_stringn(text, size);

	if (value)
		return value;
	owned(buf_finish) struct buf clean = {0};
	utf8_clean(&clean, text, size);
	return json_stringn(buf_str(&clean), clean.size);
}

/* ---- writing ---- */

static void write_escape(struct buf *out, unsigned char c)
{
	static const char named[] = "\bb\ff\nn\rr\tt\"\"\\\\"; /* in pairs */

	for (size_t i = 0; named[i]; i += 2)
		if (c == (unsigned char)named[i]) {
			buf_add(out, (char[]){'\\', named[i + 1]}, 2);
			return;
		}
	buf_printf(out, "\\u%04X", c);
}

static void write_text(struct buf *out, const char *text, size_t size)
{
	size_t start = 0;

	buf_add(out, "\"", 1);
	for (size_t i = 0; i < size; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c >= 0x20 && c != '"' && c != '\\')
			continue;
		buf_add(out, text + start, i - start);
		write_escape(out, c);
		start = i + 1;
	}
	buf_add(out, text + start, size - start);
	buf_add(out, "\"", 1);
}

/* Recursion ends: jansson reads no value of more than 2,048 levels. */
/* NOLINTBEGIN(misc-no-recursion) */
static void write_array(struct buf *out, json_t *array)
{
	for (size_t i = 0; i < json_array_size(array); i++) {
		buf_add(out, i ? "," : "[", 1);
		json_write(out, json_array_get(array, i));
	}
	buf_text(out, json_array_size(array) ? "]" : "[]");
}

static void write_object(struct buf *out, json_t *object)
{
	const char *before = "{";

	for (void *at = json_object_iter(object); at;
	     at = json_object_iter_next(object, at)) {
		buf_add(out, before, 1);
		write_text(out, json_object_iter_key(at), json_object_iter_key_len(at));
		buf_add(out, ":", 1);
		json_write(out, json_object_iter_value(at));
		before = ",";
	}
	buf_text(out, *before == ',' ? "}" : "{}");
}

/* json_dumps() guards itself against values that contain themselves, which ours do
 * not: that takes most of its time. */
void json_write(struct buf *out, json_t *value)
{
	switch (json_typeof(value)) {
	case JSON_OBJECT:
		write_object(out, value);
		return;
	case JSON_ARRAY:
		write_array(out, value);
		return;
	case JSON_STRING:
		write_text(out, json_string_value(value), json_string_length(value));
		return;
	case JSON_INTEGER:
		buf_number(out, json_integer_value(value));
		return;
	case JSON_REAL: {
		owned(free_text) char *text = json_dumps(value, JSON_ENCODE_ANY);
		buf_text(out, text ? text : "null");
		return;
	}
	case JSON_TRUE:
	case JSON_FALSE:
		buf_text(out, json_is_true(value) ? "true" : "false");
		return;
	case JSON_NULL:
		break;
	}
	buf_text(out, "null");
}
/* NOLINTEND(misc-no-recursion) */

json_t *json_row_named(const json_t *rows, const char *name)
{
	size_t i;
	json_t *row;

	json_array_foreach(rows, i, row)
	{
		if (strcmp(json_text(row, "name", ""), name) == 0)
			return row;
	}
	return NULL;
}

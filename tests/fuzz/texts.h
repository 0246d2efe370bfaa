/*
 * texts - what must hold for every text in JSON that was read leniently: it is valid
 * UTF-8 and a whole C string.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TESTS_FUZZ_TEXTS_H
#define TESTS_FUZZ_TEXTS_H

#include <jansson.h>

#include "fuzz.h"
#include "wire/json.h"
#include "wire/utf8.h"

/* The next line, if it is an object; else NULL.  Caller owns. */
static inline json_t *input_object(struct input *self)
{
	owned(free_text) char *line = input_line(self);
	json_t *found = NULL;
	struct err err;

	if (json_parse(&found, line, strlen(line), &err) == 0 && json_is_object(found))
		return found;
	json_decref(found);
	return NULL;
}

static inline void check_text(const char *text, size_t size)
{
	MUST(utf8_valid_up_to(text, size) == size);
	MUST(strlen(text) == size);
}

/* Recursion ends: jansson reads 2,048 levels at most. */
static inline void check_texts(json_t *value)
{
	const char *key;
	json_t *member;
	size_t i;

	if (json_is_string(value))
		check_text(json_string_value(value), json_string_length(value));
	json_array_foreach(value, i, member) check_texts(member);
	json_object_foreach(value, key, member)
	{
		check_text(key, strlen(key));
		check_texts(member);
	}
}

#endif

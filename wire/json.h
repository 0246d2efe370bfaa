/*
 * json - reading JSON that somebody else wrote, into jansson values, and writing it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef WIRE_JSON_H
#define WIRE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "wire/buf.h"
#include "wire/err.h"

/* Bytes that the values of one text may take beside the text's own size. */
enum { JSON_TREE_MAX = 16 << 20 };

/* Strict: UTF-8 and RFC 8259 as they are, NUL characters (backslash-u-0000) kept.
 * Fails with ERR_PARSE and the place, or with ERR_LIMIT before anything is parsed.
 * Caller owns *out. */
int json_parse(json_t **out, const char *text, size_t size, struct err *err) must_check;
/* The same with another limit than JSON_TREE_MAX. */
int json_parse_within(json_t **out, const char *text, size_t size, size_t tree_max,
		      struct err *err) must_check;
/* Forgiving, for what a kernel sends: invalid UTF-8, unpaired surrogates and NUL
 * characters become U+FFFD (ipykernel puts raw bytes on the wire for surrogate
 * escapes); numbers that do not fit become null; so does what lies too deep, and in a
 * text over the limit all that nobody reads.  Caller owns *out. */
int json_parse_lossy(json_t **out, const char *text, size_t size,
		     struct err *err) must_check;

/* The member as text, or fallback when it is missing or not a string.  Borrows. */
const char *json_text(const json_t *object, const char *key, const char *fallback);
/* The member as a number, or fallback when it is missing or not an integer. */
long long json_integer_of(const json_t *object, const char *key, long long fallback);
/* The same for something counted: from 0 to INT_MAX, 0 when missing or senseless. */
size_t json_count_of(const json_t *object, const char *key);
/* Where the first element equal to this is; the array's size: nowhere. */
size_t json_index_of(const json_t *array, const json_t *value);
/* Whether there is one. */
bool json_array_has(const json_t *array, const json_t *value);
/* The first object of an array whose member "name" is this text, or NULL.  Borrows. */
json_t *json_row_named(const json_t *rows, const char *name);
/* Any bytes as a JSON string, cleaned where they are not UTF-8.  Caller owns. */
json_t *json_string_lossy(const char *text, size_t size);

/* Appends the value, compact, byte for byte as json_dumps() has it. */
void json_write(struct buf *out, json_t *value);

#endif

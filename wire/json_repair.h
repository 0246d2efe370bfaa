/*
 * json_repair - what is known of a JSON text before it is parsed: the memory that its
 * values would take, and a text that jansson can hold in the place of one that it
 * cannot.  Both look at each byte once and trust none.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef WIRE_JSON_REPAIR_H
#define WIRE_JSON_REPAIR_H

#include <stddef.h>

#include "wire/buf.h"

/* Bytes of memory, estimated from above, that parsing takes beside the text's own
 * size: a mebibyte of "{}," makes eighty of objects. */
size_t json_cost(const char *text, size_t size);

/* Appends the text with U+FFFD for the escapes that stand for no character and for NUL,
 * null for numbers that a double or 64 bits cannot hold, and null for all objects and
 * arrays that lie deeper than depth levels.  text is valid UTF-8 and has a NUL behind
 * it. */
void json_repair(struct buf *out, const char *text, size_t size, unsigned depth);

#endif

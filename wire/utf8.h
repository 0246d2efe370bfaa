/*
 * utf8 - text that may not be text.  Kernels print, and files hold, any bytes; what
 * leaves the daemon is valid UTF-8.  A sequence is one code point or one maximal
 * subpart of a broken one (Unicode 3.9, the WHATWG practice), so that all functions
 * count alike: a broken sequence is one character, the U+FFFD it will be shown as.
 * Overlong forms, encoded surrogates and what is above U+10FFFF are broken.  All are
 * linear and, but for those that fill a buf, allocate nothing.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef WIRE_UTF8_H
#define WIRE_UTF8_H

#include <stddef.h>

#include "wire/buf.h"

/* Appends text with each broken sequence replaced by U+FFFD.  NUL and other control
 * characters stay.  Returns how many were replaced; out grows to at most three times
 * the size of text. */
size_t utf8_clean(struct buf *out, const char *text, size_t size);
/* Appends text for showing inside a line: cleaned, and what would break the line or
 * deceive the reader (controls, line separators, direction marks) as \n or \u202e. */
void utf8_show(struct buf *out, const char *text, size_t size);
/* The same for the first max_chars characters; an ellipsis stands for the rest. */
void utf8_show_cut(struct buf *out, const char *text, size_t size, size_t max_chars);
/* Characters in text. */
size_t utf8_count(const char *text, size_t size);
/* Bytes of the first max_chars characters; size when there are fewer. */
size_t utf8_prefix(const char *text, size_t size, size_t max_chars);
/* Bytes of the last max_chars characters; size when there are fewer. */
size_t utf8_suffix(const char *text, size_t size, size_t max_chars);
/* Bytes before the first broken sequence; size when all is valid. */
size_t utf8_valid_up_to(const char *text, size_t size);
/* Bytes at the end that a valid character could start with and that may be completed
 * by what comes next, 0 to 3: keep them back when text arrives in pieces. */
size_t utf8_unfinished(const char *text, size_t size);

#endif

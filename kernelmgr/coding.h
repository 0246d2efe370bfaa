/*
 * coding - in what code a text file is written: UTF-8, UTF-16 and UTF-32 by their byte
 * order marks, UTF-16 without one by its zero bytes, and Windows-1252 (of which Latin-1
 * is a part) where nothing is UTF-8.  Written out here, since what iconv() brings into
 * a process for bytes that anybody may have written is much more than these.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef KERNELMGR_CODING_H
#define KERNELMGR_CODING_H

#include <stdbool.h>
#include <stddef.h>

#include "wire/buf.h"

enum coding {
	CODING_UTF_8,
	CODING_UTF_16LE,
	CODING_UTF_16BE,
	CODING_UTF_32LE,
	CODING_UTF_32BE,
	CODING_WINDOWS_1252,
};

enum {
	CODING_BYTES_MAX = 4, /* of one character, in each of them */
	CODING_MARK_MAX = 4,
};

const char *coding_name(enum coding coding);
/* Bytes of the byte order mark that text begins with, 0 when none. */
size_t coding_mark(const char *text, size_t size, enum coding *out);
/* The coding of a text without a mark, by its beginning; false for what is no text. */
bool coding_guess(const char *head, size_t size, enum coding *out);
/* UTF-8 was guessed from a beginning that was plain ASCII: looks at what is to be
 * shown. last: the file ends here. */
void coding_settle(enum coding *self, const char *text, size_t size, bool last);
/* Takes at most *chars characters, appends them to out (if any) as UTF-8, and returns
 * their bytes; *chars is how many are missing then.  What is broken is one U+FFFD.  A
 * character that is cut in two is left, but for the last of a file. */
size_t coding_take(enum coding self, const char *text, size_t size, bool last,
		   size_t *chars, struct buf *out);

#endif

/*
 * buf - bytes that grow.  data always ends in a NUL that is not counted, so it can
 * be used as text.  No cap of its own: whoever adds what a peer sent checks first.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef WIRE_BUF_H
#define WIRE_BUF_H

#include <stdarg.h>
#include <stddef.h>

struct buf { /* embed it; zero is an empty buffer (data is NULL until first used) */
	char *data;
	size_t size, room;
};

void buf_add(struct buf *self, const void *data, size_t size);
void buf_text(struct buf *self, const char *text);
void buf_number(struct buf *self, long long number);
void buf_printf(struct buf *self, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Makes room for size more bytes and returns where they go; the caller sets
 * self->size after writing them, at most size more. */
char *buf_reserve(struct buf *self, size_t size);
/* Drops the first size bytes. */
void buf_drop(struct buf *self, size_t size);
/* The text so far; "" when nothing was added.  Borrows until the next change. */
const char *buf_str(const struct buf *self);
/* Frees and clears; fits owned(). */
void buf_finish(struct buf *self);

#endif

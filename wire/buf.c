// SPDX-License-Identifier: MIT
#include "wire/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/mem.h"

enum { ROOM_MIN = 64 };

char *buf_reserve(struct buf *self, size_t size)
{
	size_t need = self->size + size + 1; /* the NUL */

	if (need > self->room) {
		size_t room = self->room * 2 > need ? self->room * 2 : need;

		self->room = room < ROOM_MIN ? ROOM_MIN : room;
		self->data = xrealloc(self->data, self->room);
	}
	self->data[self->size + size] = '\0';
	return self->data + self->size;
}

void buf_add(struct buf *self, const void *data, size_t size)
{
	char *at = buf_reserve(self, size);

	if (size)
		memcpy(at, data, size);
	self->size += size;
}

void buf_text(struct buf *self, const char *text)
{
	buf_add(self, text, strlen(text));
}

/* Many are written, and printf() takes long for one. */
void buf_number(struct buf *self, long long number)
{
	char digits[24], *const end = digits + sizeof digits, *at = end;
	unsigned long long rest = (unsigned long long)number;

	if (number < 0)
		rest = -rest;
	do
		*--at = (char)('0' + rest % 10);
	while (rest /= 10);
	if (number < 0)
		*--at = '-';
	buf_add(self, at, (size_t)(end - at));
}

void buf_printf(struct buf *self, const char *fmt, ...)
{
	va_list ap, again;

	va_start(ap, fmt);
	va_copy(again, ap);
	int len = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (len > 0) {
		char *at = buf_reserve(self, (size_t)len);

		vsnprintf(at, (size_t)len + 1, fmt, again);
		self->size += (size_t)len;
	}
	va_end(again);
}

void buf_drop(struct buf *self, size_t size)
{
	if (!size)
		return;
	memmove(self->data, self->data + size, self->size - size + 1);
	self->size -= size;
}

const char *buf_str(const struct buf *self)
{
	return self->data ? self->data : "";
}

void buf_finish(struct buf *self)
{
	free(self->data);
	*self = (struct buf){0};
}

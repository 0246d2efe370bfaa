// SPDX-License-Identifier: MIT
#include "wire/dechunk.h"

#include <string.h>

enum { DIGITS_MAX = 7, TRAILER_MAX = 4096 };

static int hex(unsigned char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int end_of_size(struct dechunk *self)
{
	if (!self->digits)
		return -1;
	self->digits = self->line_size = 0;
	self->state = self->left ? DECHUNK_DATA : DECHUNK_TRAILER;
	return 0;
}

static int feed_size(struct dechunk *self, unsigned char c)
{
	int digit = self->state == DECHUNK_SIZE ? hex(c) : -1;

	if (c == '\n')
		return end_of_size(self);
	if (digit >= 0) {
		self->left = self->left * 16 + (size_t)digit;
		return ++self->digits > DIGITS_MAX ? -1 : 0;
	}
	if (c == ';' || c == ' ' || c == '\t')
		self->state = DECHUNK_EXTENSION;
	else if (c != '\r' && self->state == DECHUNK_SIZE)
		return -1;
	return ++self->line_size > TRAILER_MAX ? -1 : 0;
}

static int feed_line(struct dechunk *self, unsigned char c)
{
	if (self->state == DECHUNK_DATA_END) {
		if (c == '\n')
			self->state = DECHUNK_SIZE;
		return c == '\n' || c == '\r' ? 0 : -1;
	}
	if (c == '\n' && !self->digits)
		self->state = DECHUNK_DONE; /* an empty line ends the trailers */
	else if (c == '\n')
		self->digits = 0;
	else if (c != '\r')
		self->digits = 1;
	return ++self->line_size > TRAILER_MAX ? -1 : 0;
}

long dechunk_feed(struct dechunk *self, unsigned char *data, size_t size)
{
	size_t in = 0, out = 0;

	while (in < size && self->state != DECHUNK_DONE) {
		if (self->state == DECHUNK_DATA) {
			size_t n = size - in < self->left ? size - in : self->left;

			memmove(data + out, data + in, n);
			in += n;
			out += n;
			self->left -= n;
			if (!self->left)
				self->state = DECHUNK_DATA_END;
		} else if (self->state <= DECHUNK_EXTENSION) {
			if (feed_size(self, data[in++]) < 0)
				return -1;
		} else if (feed_line(self, data[in++]) < 0) {
			return -1;
		}
	}
	return (long)out;
}

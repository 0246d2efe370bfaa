// SPDX-License-Identifier: MIT
#include "wire/zmtp.h"

#include <string.h>

#include "wire/err.h"

enum {
	FLAG_MORE = 1,
	FLAG_LONG = 2, /* the size takes eight bytes */
	FLAG_COMMAND = 4,
	SHORT_MAX = 255,
	COMMAND_MAX = 4096, /* bytes; libzmq's take some dozens */
	MECHANISM_AT = 12,
	VERSION_AT = 10,
};

/* Signature, version 3.0, mechanism, not a server; the rest is zero. */
static const unsigned char our_greeting[ZMTP_GREETING_SIZE] = {
    0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 0, 'N', 'U', 'L', 'L'};

void zmtp_finish(struct zmtp *self)
{
	buf_finish(&self->body);
	*self = (struct zmtp){0};
}

void zmtp_next(struct zmtp *self)
{
	buf_finish(&self->body);
	self->count = 0;
	self->too_long = false;
}

/* Fills head up to want bytes; true when it is full. */
static bool fill_head(struct zmtp *self, size_t want, const char *data, size_t size,
		      size_t *used)
{
	size_t missing = want - self->head_size;
	size_t part = size - *used < missing ? size - *used : missing;

	memcpy(self->head + self->head_size, data + *used, part);
	self->head_size += part;
	*used += part;
	return self->head_size == want;
}

static void check_greeting(struct zmtp *self)
{
	const unsigned char *head = self->head;
	bool good = head[0] == 0xff && (head[9] & 1) && head[VERSION_AT] >= 3 &&
		    memcmp(head + MECHANISM_AT, our_greeting + MECHANISM_AT, 20) == 0;

	self->state = good ? ZMTP_HANDSHAKE : ZMTP_BROKEN;
	self->head_size = 0;
}

static void begin_frame(struct zmtp *self)
{
	unsigned char flags = self->head[0];
	bool is_command = flags & FLAG_COMMAND;

	self->left = 0;
	for (size_t i = 1; i < self->head_size; i++)
		self->left = self->left << 8 | self->head[i];
	self->in_frame = true;
	/* Commands stand alone and between messages; messages come after READY. */
	if (flags > (FLAG_MORE | FLAG_LONG | FLAG_COMMAND) ||
	    (is_command &&
	     ((flags & FLAG_MORE) || self->left > COMMAND_MAX || self->count)) ||
	    (!is_command && self->state != ZMTP_OPEN)) {
		self->state = ZMTP_BROKEN;
		return;
	}
	if (!is_command &&
	    (self->count == FRAMES_MAX ||
	     (self->message_max && (self->left > self->message_max ||
				    self->body.size + self->left > self->message_max))))
		self->too_long = true;
	if (self->too_long)
		buf_finish(&self->body);
}

/* The head of a frame: flags, then one byte of size or eight. */
static bool read_head(struct zmtp *self, const char *data, size_t size, size_t *used)
{
	if (!self->head_size && !fill_head(self, 1, data, size, used))
		return false;
	if (!fill_head(self, self->head[0] & FLAG_LONG ? ZMTP_HEAD_MAX : 2, data, size,
		       used))
		return false;
	begin_frame(self);
	return true;
}

static void end_command(struct zmtp *self)
{
	static const char ready[] = "\5READY";
	bool is_ready = self->body.size >= sizeof ready - 1 &&
			memcmp(self->body.data, ready, sizeof ready - 1) == 0;

	if (self->state == ZMTP_HANDSHAKE)
		self->state = is_ready ? ZMTP_OPEN : ZMTP_BROKEN;
	buf_finish(&self->body); /* others, once it is open, ask for nothing */
}

/* Returns true at the end of a message. */
static bool end_frame(struct zmtp *self)
{
	unsigned char flags = self->head[0];

	self->in_frame = false;
	self->head_size = 0;
	if (flags & FLAG_COMMAND) {
		end_command(self);
		return false;
	}
	if (!self->too_long)
		self->ends[self->count++] = self->body.size;
	return !(flags & FLAG_MORE);
}

bool zmtp_read(struct zmtp *self, const char *data, size_t size, size_t *used)
{
	*used = 0;
	if (self->state == ZMTP_GREETING &&
	    fill_head(self, ZMTP_GREETING_SIZE, data, size, used))
		check_greeting(self);
	while (self->state == ZMTP_HANDSHAKE || self->state == ZMTP_OPEN) {
		if (!self->in_frame && !read_head(self, data, size, used))
			return false;
		if (self->state == ZMTP_BROKEN)
			break;
		size_t part =
		    size - *used < self->left ? size - *used : (size_t)self->left;
		if (!self->too_long)
			buf_add(&self->body, data + *used, part);
		*used += part;
		self->left -= part;
		if (self->left)
			return false;
		if (end_frame(self))
			return true;
	}
	if (self->state == ZMTP_BROKEN)
		*used = size;
	return false;
}

/* ---- sending ---- */

static void add_head(struct buf *out, unsigned char flags, size_t size)
{
	unsigned char head[ZMTP_HEAD_MAX] = {flags, (unsigned char)size};

	if (size <= SHORT_MAX) {
		buf_add(out, head, 2);
		return;
	}
	head[0] |= FLAG_LONG;
	for (size_t i = 0; i < 8; i++)
		head[1 + i] = (unsigned char)((uint64_t)size >> (56 - 8 * i));
	buf_add(out, head, sizeof head);
}

static void add_property(struct buf *out, const char *name, const char *value)
{
	unsigned char size[5] = {(unsigned char)strlen(name)};

	buf_add(out, size, 1);
	buf_text(out, name);
	size[4] = (unsigned char)strlen(value);
	buf_add(out, size + 1, 4);
	buf_text(out, value);
}

void zmtp_greet(struct buf *out, const char *socket_type, const char *identity)
{
	owned(buf_finish) struct buf ready = {0};

	buf_text(&ready, "\5READY");
	add_property(&ready, "Socket-Type", socket_type);
	add_property(&ready, "Identity", identity);
	buf_add(out, our_greeting, sizeof our_greeting);
	add_head(out, FLAG_COMMAND, ready.size);
	buf_add(out, ready.data, ready.size);
}

void zmtp_subscribe_to_all(struct buf *out)
{
	zmtp_frame(out, "\1", 1, false);
}

void zmtp_frame(struct buf *out, const void *data, size_t size, bool more)
{
	add_head(out, more ? FLAG_MORE : 0, size);
	buf_add(out, data, size);
}

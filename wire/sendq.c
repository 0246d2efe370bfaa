// SPDX-License-Identifier: MIT
#include "wire/sendq.h"

#include <libwebsockets.h>
#include <stdlib.h>
#include <string.h>

#include "wire/mem.h"

struct sendq_item {
	struct sendq_item *next;
	size_t size, sent;
	unsigned char data[]; /* LWS_PRE bytes of room, then the message */
};

bool sendq_full(const struct sendq *self, size_t size, size_t max)
{
	return self->size && self->size + size > max;
}

void sendq_add(struct sendq *self, const void *const *parts, const size_t *sizes,
	       int count)
{
	size_t size = 0;

	for (int i = 0; i < count; i++)
		size += sizes[i];

	struct sendq_item *item = xrealloc(NULL, sizeof *item + LWS_PRE + size);
	*item = (struct sendq_item){.size = size};
	size_t at = LWS_PRE;
	for (int i = 0; i < count; at += sizes[i++])
		if (sizes[i])
			memcpy(item->data + at, parts[i], sizes[i]);
	if (!self->head)
		self->tail = &self->head;
	*self->tail = item;
	self->tail = &item->next;
	self->size += size;
}

bool sendq_peek(const struct sendq *self, struct piece *out)
{
	struct sendq_item *item = self->head;

	if (!item)
		return false;
	size_t rest = item->size - item->sent;
	out->data = item->data + LWS_PRE + item->sent;
	out->size = rest < SENDQ_PIECE ? rest : SENDQ_PIECE;
	out->first = item->sent == 0;
	out->last = out->size == rest;
	return true;
}

void sendq_drop(struct sendq *self, size_t size)
{
	struct sendq_item *item = self->head;

	item->sent += size;
	self->size -= size;
	if (item->sent < item->size)
		return;
	self->head = item->next;
	free(item);
}

void sendq_finish(struct sendq *self)
{
	for (struct sendq_item *item = self->head, *next; item; item = next) {
		next = item->next;
		free(item);
	}
	*self = (struct sendq){0};
}

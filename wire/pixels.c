// SPDX-License-Identifier: MIT
#include "wire/pixels.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { HUGE_PAGE = 2 << 20 };

unsigned char *bytes_get(size_t size)
{
	size_t whole = (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;

	if (size < HUGE_PAGE)
		return malloc(size);
	void *memory = aligned_alloc(HUGE_PAGE, whole);
	if (memory)
		(void)madvise(memory, whole, MADV_HUGEPAGE);
	return memory;
}

void bytes_free(unsigned char **self)
{
	free(*self);
	*self = NULL;
}

size_t pixels_row(const struct pixels *self)
{
	return (size_t)self->width * self->channels;
}

bool pixels_init(struct pixels *self, size_t gap)
{
	self->stride = pixels_row(self) + gap;
	self->memory = bytes_get(self->stride * self->height);
	self->data = self->memory ? self->memory + gap : NULL;
	return self->memory != NULL;
}

void pixels_finish(struct pixels *self)
{
	bytes_free(&self->memory);
	*self = (struct pixels){0};
}

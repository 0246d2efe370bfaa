// SPDX-License-Identifier: MIT
#include "wire/ansi.h"

#include <string.h>

enum { ESC = 0x1b, BEL = 0x07 };

static const char *skip_csi(const char *at, const char *end)
{
	while (at < end && (unsigned char)*at >= 0x20 && (unsigned char)*at <= 0x3f)
		at++; /* parameters and intermediates */
	/* A sequence that is cut short takes nothing of what follows with it. */
	return at < end && *at >= 0x40 && *at <= 0x7e ? at + 1 : at;
}

/* Operating system commands, such as titles and links, end in BEL or ESC \.  One
 * without an end stops at the end of the line, so that it hides no more than that. */
static const char *skip_osc(const char *at, const char *end)
{
	for (; at < end; at++) {
		if (*at == BEL)
			return at + 1;
		if (*at == '\n')
			return at;
		if (*at == ESC && at + 1 < end && at[1] == '\\')
			return at + 2;
	}
	return end;
}

static const char *skip_sequence(const char *at, const char *end)
{
	if (++at == end)
		return end;
	if (*at == '[')
		return skip_csi(at + 1, end);
	if (*at == ']')
		return skip_osc(at + 1, end);
	return (unsigned char)*at >= 0x20 && (unsigned char)*at <= 0x7e ? at + 1 : at;
}

void ansi_strip(struct buf *out, const char *text, size_t size)
{
	const char *end = text + size;

	while (text < end) {
		const char *escape = memchr(text, ESC, (size_t)(end - text));

		buf_add(out, text, (size_t)((escape ? escape : end) - text));
		if (!escape)
			return;
		text = skip_sequence(escape, end);
	}
}

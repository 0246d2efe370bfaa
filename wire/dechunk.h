/*
 * dechunk - undoes "Transfer-Encoding: chunked" in place.  lws 4.1 and 4.3 hand
 * the server a chunked request body raw, framing included, and never end it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef WIRE_DECHUNK_H
#define WIRE_DECHUNK_H

#include <stddef.h>

struct dechunk { /* embed it; zero is the start of a body */
	enum {
		DECHUNK_SIZE,
		DECHUNK_EXTENSION,
		DECHUNK_DATA,
		DECHUNK_DATA_END,
		DECHUNK_TRAILER,
		DECHUNK_DONE
	} state;
	size_t left;   /* bytes of the current chunk still to come */
	int digits;    /* hex digits of its size seen */
	int line_size; /* length of the current trailer line */
};

/* Rewrites data[0..size) to the bytes of the body in it; returns how many, or -1
 * on bad framing.  state becomes DECHUNK_DONE after the last chunk. */
long dechunk_feed(struct dechunk *self, unsigned char *data, size_t size);

#endif

/*
 * bar - what a progress bar says: one line as tqdm prints it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MCP_BAR_H
#define MCP_BAR_H

#include <stdbool.h>
#include <stddef.h>

enum { BAR_LABEL_SIZE = 64, BAR_TEXT_SIZE = 160 };

struct bar {
	double done, total;         /* total is below 0 when it is not known */
	char label[BAR_LABEL_SIZE]; /* what stands before it; "" */
	char text[BAR_TEXT_SIZE];   /* "loading: 50%, 50/100 [00:05<00:05, 9.90it/s]" */
};

/* False if the line, which has no control characters, is none; out is left alone. */
bool bar_read(struct bar *out, const char *line, size_t size);

#endif

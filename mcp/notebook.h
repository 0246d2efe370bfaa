/*
 * notebook - a Jupyter notebook as text: its cells, and what they printed.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MCP_NOTEBOOK_H
#define MCP_NOTEBOOK_H

#include <jansson.h>
#include <stdbool.h>

#include "wire/buf.h"

/* False, and nothing appended, if it is no notebook of format 4. */
bool notebook_text(struct buf *out, const json_t *notebook);

#endif

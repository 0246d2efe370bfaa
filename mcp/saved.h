/*
 * saved - what the footer and the structure say of a namespace's saved state.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MCP_SAVED_H
#define MCP_SAVED_H

#include <jansson.h>

#include "wire/buf.h"

/* Appends whole lines: what was restored, what a restart would lose, the size.  summary
 * is what the kernel's reply tells of its namespace; NULL adds nothing. */
void saved_footer(struct buf *out, const json_t *summary);
/* Appends "2 variables: a, b, 1 import: os", from the rows of a saved state. */
void saved_names(struct buf *out, const json_t *rows);
/* {"saved", "bytes", "lost_if_restarted": {name: why}}, and where there is something to
 * say "too_large": {name: bytes}, "error", "restored": {...}.  Caller owns; NULL when
 * nothing is saved here. */
json_t *saved_json(const json_t *summary);

#endif

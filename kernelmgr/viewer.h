/*
 * viewer - shows tables as text that only a library can read (Excel, Parquet).  That
 * is done by a kernel of its own, behind the walls of the workspace, which is thrown
 * away after: so it works while a cell runs, leaves no trace in anybody's namespace,
 * and what a hostile file does to a library it does there.  It counts as a kernel.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef KERNELMGR_VIEWER_H
#define KERNELMGR_VIEWER_H

#include <stddef.h>

#include "wire/buf.h"
#include "wire/err.h"

enum { VIEWER_CHARS_MAX = 1 << 20 }; /* of one view */

struct viewer;
struct workspace;
struct workspace_place;

/* The view, or why there is none (then text is NULL).  Comes once, from the loop. */
typedef void viewer_done_fn(const struct buf *text, const struct err *why, void *arg);

/* Shows the first chars characters of the view of a file.  format: "excel", "parquet".
 * Fails when too many are under way, or too many kernels alive. */
int viewer_start(struct viewer **out, struct workspace *workspace, const char *path,
		 const char *format, size_t chars, viewer_done_fn *done, void *arg,
		 struct err *err) must_check;
/* Asks it to stop; done still comes. */
void viewer_cancel(struct viewer *self);
/* No more word of it. */
void viewer_drop(struct viewer **self);
/* The workspace takes no more calls: all of its own are cancelled. */
void viewer_drain(struct workspace *workspace);
/* For the daemon's own end: without ceremony. */
void viewer_finish(struct workspace_place *place);

#endif

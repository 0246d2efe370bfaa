/*
 * journal - which calls are open, written down as they come and go, so that a daemon
 * that was killed can tell, when it is back, what was lost with it.  Names workspaces,
 * cells and times; never code or output.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef KERNELMGR_JOURNAL_H
#define KERNELMGR_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/buf.h"
#include "wire/err.h"

struct journal;

/* Opens the journal in dir, takes note of the calls that its last user left open,
 * and starts it anew. */
int journal_open(struct journal **out, const char *dir, struct err *err) must_check;
void journal_close(struct journal **self);

/* A call is queued; returns its number here.  A journal of NULL takes no notes. */
uint64_t journal_queued(struct journal *self, const char *workspace);
void journal_begun(struct journal *self, uint64_t call, unsigned long long cell);
void journal_ended(struct journal *self, uint64_t call);

/* A kernel of the workspace holds variables, or no longer does. */
void journal_live(struct journal *self, const char *workspace);
void journal_gone(struct journal *self, const char *workspace);

/* Calls fn for each cell of a workspace that was lost with the last daemon. */
void journal_each_lost(const struct journal *self, const char *workspace,
		       void (*fn)(unsigned long long cell, long long since, void *arg),
		       void *arg);
/* saved: the variables are, so nothing is said of them.  Appends one line that names
 * the calls of a workspace that were lost with the last daemon, or just that its
 * variables were, and forgets it; nothing when there is nothing to tell. */
void journal_tell_lost(struct journal *self, const char *workspace, bool saved,
		       struct buf *out);

#endif

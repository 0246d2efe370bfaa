/*
 * workspace - a name, a directory, a queue of calls, and at most one live kernel,
 * started when a call needs it.  Calls run one at a time, in the order they came.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef KERNELMGR_WORKSPACE_H
#define KERNELMGR_WORKSPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include "kernelmgr/config.h"
#include "kernelmgr/files.h"
#include "kernelmgr/journal.h"
#include "kernelmgr/kernel.h"
#include "kernelmgr/store.h"
#include "wire/err.h"

struct workspace;

struct files_change {                   /* borrowed */
	const struct files_list *wrote; /* new and changed ones; or NULL */
	const struct files_list *gone;  /* or NULL */
	const char *path;               /* one more that was written, or NULL */
	bool names;                     /* some came or went */
};

struct workspace_place { /* what all workspaces share; outlives them */
	const struct config *config;
	struct kernel_place kernels;
	struct journal *journal; /* NULL: no notes are taken */
	struct store_place stores;
	uint64_t namespace_max;      /* bytes of one saved namespace */
	struct proof *proof;         /* the one that is under way, or NULL */
	LIST_HEAD(, viewer) viewers; /* viewer::link */
	size_t kernels_alive;
	/* Files were changed by a cell or a tool.  NULL: nobody wants to know. */
	void (*changed)(const struct workspace *workspace,
			const struct files_change *change, void *arg);
	void *changed_arg;
};

/* Opens (and makes) the directory; starts nothing. */
int workspace_create(struct workspace **out, struct workspace_place *place,
		     const char *name, const char *dir, struct err *err) must_check;
/* Where its directory was removed or replaced and no kernel has it: opens what is there
 * now.  The next result says so. */
int workspace_renew(struct workspace *self, struct err *err) must_check;
/* Ends its kernel without ceremony; calls still open end unanswered. */
void workspace_destroy(struct workspace **self);
/* Refuses new calls, fails those that wait, and sends the kernel away once the one
 * that runs is over. */
void workspace_drain(struct workspace *self);
/* Interrupts the call that runs, if any. */
void workspace_interrupt(struct workspace *self);
/* True while a call or a kernel is left. */
bool workspace_busy(const struct workspace *self);

const char *workspace_name(const struct workspace *self);
const char *workspace_dir(const struct workspace *self);
/* The same as code in its kernels sees it. */
const char *workspace_shown_dir(const struct workspace *self);
const struct files *workspace_files(const struct workspace *self);
/* files_write() within the workspace's quota. */
int workspace_write(struct workspace *self, const char *path, size_t path_size,
		    const void *data, size_t size, bool *created,
		    struct err *err) must_check;
/* Whether this file is, unchanged, one of the newest that workspace_write() wrote. */
bool workspace_wrote(const struct workspace *self, const struct files_look *file);
bool workspace_has_kernel(const struct workspace *self);
/* Fails if nothing is saved in this daemon, and says by which setting. */
int workspace_check_saves(const struct workspace *self, struct err *err) must_check;
/* Asks its store about its saved states; see store_program.c.  job is consumed.  Fails
 * if nothing is saved in this daemon. */
int workspace_ask(struct workspace *self, json_t *job, store_done_fn *done, void *arg,
		  struct err *err) must_check;
/* The same about an undo of so many cells: "undone", how many it would take back as
 * things are, or "error", why it cannot be. */
int workspace_ask_undo(struct workspace *self, long long cells, store_done_fn *done,
		       void *arg, struct err *err) must_check;
/* No more answers for arg. */
void workspace_forget(struct workspace *self, const void *arg);
/* What the last reply told of the namespace that the next call will find: vars ([name,
 * what it is] each), columns (of tables).  NULL: nothing is known.  Borrows. */
const json_t *workspace_known(const struct workspace *self);
/* Number of the last cell that ran. */
unsigned long long workspace_cells(const struct workspace *self);
/* Calls that wait or run. */
size_t workspace_calls(const struct workspace *self);

#endif

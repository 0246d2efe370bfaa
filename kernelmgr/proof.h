/*
 * proof - tries saved states: when a workspace has been at rest for some seconds and
 * the machine is idle, a spare kernel loads the newest one and is thrown away.  What
 * does not load is remembered and told before anybody needs it.  At most one at a time
 * in the daemon, never while a call waits or runs; it counts as a kernel.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef KERNELMGR_PROOF_H
#define KERNELMGR_PROOF_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "wire/loop.h"

struct workspace;
struct workspace_place;

struct proving {         /* what proof.c keeps for a workspace */
	uint64_t newest; /* generation to try; 0 none */
	uint64_t tried;  /* the last for which a try was begun: each has one */
	int64_t began_us;
	struct loop_timer rest;
	json_t *found; /* owned; rows of what did not load, not told yet; or NULL */
	long long found_cell;
};

/* This generation is the newest one (0: it needs no trying). */
void proof_newest(struct workspace *self, uint64_t generation);
/* The workspace rests: tries the newest state later, if it still does. */
void proof_plan(struct workspace *self);
/* A call came: ends the try that is under way, whoever's it is. */
void proof_yield(struct workspace_place *place);
/* Adds what was found to what a reply says would be lost; once. */
void proof_tell(struct workspace *self, json_t *summary);
/* The workspace goes. */
void proof_forget(struct workspace *self);
/* For the daemon's own end: without ceremony. */
void proof_finish(struct workspace_place *place);

#endif

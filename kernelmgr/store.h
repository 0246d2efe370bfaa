/*
 * store - asks the helper vivarium-store about one workspace's generations.  The helper
 * starts with the first job, does one at a time, in order, and ends with the store; if
 * it dies, the jobs it had fail and the next starts another.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef KERNELMGR_STORE_H
#define KERNELMGR_STORE_H

#include <jansson.h>
#include <stdint.h>

#include "kernelmgr/launch.h"
#include "wire/err.h"
#include "wire/loop.h"

enum { STORE_KEY_SIZE = 32 };

struct store_place { /* what all stores of the daemon share; outlives them */
	struct loop *loop;
	const struct launch_paths *paths;
	const char *state_dir;
	unsigned char key[STORE_KEY_SIZE];
	size_t keep;        /* generations */
	uint64_t max_bytes; /* of one workspace's chunks; 0: no limit */
};

struct store;
/* Starts nothing, touches no disk.  Borrows place.  owner: user id that its helper
 * takes; 0 the daemon's.  Fails if a path is too long. */
int store_create(struct store **out, const struct store_place *place,
		 const char *workspace, uid_t owner, struct err *err) must_check;
/* Answers that are due do not come any more; jobs that were sent are still done. */
void store_destroy(struct store **self);

/* answer is borrowed: the helper's, with "error" if the job failed. */
typedef void store_done_fn(const json_t *answer, void *arg);
/* See store_program.c for the jobs.  job is consumed.  done comes once, from the loop,
 * never from inside this call; it may be NULL. */
void store_ask(struct store *self, json_t *job, store_done_fn *done, void *arg);
/* No more answers for arg. */
void store_forget(struct store *self, const void *arg);
/* True while a job has no answer yet. */
bool store_busy(const struct store *self);
/* Ends the helper once it has done what it was asked; the next job starts another. */
void store_rest(struct store *self);

/* Makes the directory of a workspace's saved states, for the owner if there is one. */
int store_make_dir(const struct store_place *place, const char *workspace, uid_t owner,
		   struct err *err) must_check;
/* The workspace's directory there, and its spool. */
const char *store_dir(const struct store *self);

#endif

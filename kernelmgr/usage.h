/*
 * usage - measures what files take of the disk, by a helper (usage_program.c) that runs
 * once and ends: a walk may take long, and the loop must not.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef KERNELMGR_USAGE_H
#define KERNELMGR_USAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "kernelmgr/launch.h"
#include "wire/err.h"
#include "wire/loop.h"

enum { USAGE_PLACES_MAX = 2 }; /* besides the workspace */

struct usage_place {
	const char *dir;   /* nobody else can put a link in its way */
	const char *shown; /* what the names in it begin with; "" nothing */
};

struct usage_found {
	uint64_t bytes;
	/* "" or why it may be more, for a sentence that begins with "it has". */
	const char *unclear;
	const char *largest; /* "a.bin (1.2G), b (64K)", or "" */
};

struct usage; /* one that is under way */
/* found is NULL if nothing could be found out; it and the usage are gone after. */
typedef void usage_fn(const struct usage_found *found, void *arg);

/* workspace: an open directory; its names are shown as they are. */
int usage_start(struct usage **out, struct loop *loop, const struct launch_paths *paths,
		int workspace, const struct usage_place *places, size_t count,
		usage_fn *done, void *arg, struct err *err) must_check;
/* done() will not come. */
void usage_destroy(struct usage **self);

#endif

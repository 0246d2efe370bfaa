/*
 * idmap - which user ids this process's user namespace has, and what they are in the
 * one above (user_namespaces(7), uid_map).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef KERNELMGR_IDMAP_H
#define KERNELMGR_IDMAP_H

#include <stdbool.h>

struct idmap_range {
	unsigned inside, outside, count;
};

/* The range that has this id; false if none has. */
bool idmap_find(unsigned id, struct idmap_range *out);

#endif

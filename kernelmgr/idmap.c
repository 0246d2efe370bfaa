// SPDX-License-Identifier: MIT
#include "kernelmgr/idmap.h"

#include <stdio.h>

bool idmap_find(unsigned id, struct idmap_range *out)
{
	bool found = false;

	FILE *map = fopen("/proc/self/uid_map", "re");
	while (map && !found &&
	       fscanf(map, "%u %u %u", &out->inside, &out->outside, &out->count) == 3)
		found = id >= out->inside && id - out->inside < out->count;
	if (map)
		fclose(map);
	return found;
}

/* walls_network - which network kernels are kept to, and whether the walls can keep it.
 * SPDX-License-Identifier: MIT */
#ifndef KERNELMGR_WALLS_NETWORK_H
#define KERNELMGR_WALLS_NETWORK_H

#include "kernelmgr/walls.h"

/* By the settings and the environment, before the tier is decided. */
int network_decide(struct walls *self, char *const env[], struct err *err) must_check;
/* Whether the tier that is tried could keep kernels to it. */
int network_fits(struct walls *self, struct err *err) must_check;
/* When the tier is decided: refuses what it cannot keep. */
int network_settle(struct walls *self, struct err *err) must_check;

#endif

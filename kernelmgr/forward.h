/* forward - the supervisor's part in forwarding to the proxy.  Nothing happens without
 * a forwarder in the plan.  All of these fail() rather than return.
 * SPDX-License-Identifier: MIT */
#ifndef KERNELMGR_FORWARD_H
#define KERNELMGR_FORWARD_H

#include "kernelmgr/plan.h"

/* Before process 1 is made. */
void forward_open(const struct plan *plan);
/* In process 1, in its own network, while it has its rights. */
void forward_listen(const struct plan *plan);
/* Outside: waits for the socket and starts the forwarder, a child, which ends with this
 * process at the latest. */
void forward_start(const struct plan *plan);

#endif

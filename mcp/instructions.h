/*
 * instructions - what a model is told once about how the state works, as it is set up
 * here: ten lines at most.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MCP_INSTRUCTIONS_H
#define MCP_INSTRUCTIONS_H

#include <jansson.h>

#include "kernelmgr/config.h"

/* As a JSON string.  Caller owns. */
json_t *instructions_json(const struct config *config);

#endif

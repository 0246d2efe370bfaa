/*
 * completion - completion/complete: while a person types an argument of a prompt, or a
 * path of the resource template, the files, tables and columns that fit.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MCP_COMPLETION_H
#define MCP_COMPLETION_H

#include <jansson.h>

#include "mcp/prompts.h"

/* The result; caller owns.  NULL: refusal says why. */
json_t *completion_complete(const struct prompts_ask *ask, struct rpc_refusal *refusal);

#endif

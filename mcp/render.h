/*
 * render - the outcome of a call as an MCP tool result: text that says everything by
 * itself, then pictures, then the state footer; and the same as one structure.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MCP_RENDER_H
#define MCP_RENDER_H

#include <jansson.h>
#include <stdbool.h>

#include "kernelmgr/call.h"

struct render_options {
	bool structure, footer;
	bool plain_errors;     /* no pictures beside an error, but words */
	const char *workspace; /* its name */
	bool stateless;        /* the next call finds none of the names */
	const char *preface;   /* whole lines before everything else, or "" */
};

/* A CallToolResult.  Caller owns. */
json_t *render_outcome(const struct outcome *outcome,
		       const struct render_options *options);

/* The JSON schema of its structuredContent. */
extern const char render_schema[];

#endif

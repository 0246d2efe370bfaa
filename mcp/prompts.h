/*
 * prompts - beginnings of conversations that a person picks from a menu: each is a row,
 * from which prompts/list, the checking of arguments and completions are made.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MCP_PROMPTS_H
#define MCP_PROMPTS_H

#include <jansson.h>
#include <stdbool.h>

#include "kernelmgr/config.h"
#include "kernelmgr/workspace.h"
#include "mcp/asks.h"
#include "mcp/rpc.h"
#include "mcp/session.h"

enum { PROMPT_ARGS_MAX = 4 };

enum completes { /* what is offered while the argument is typed */
		 COMPLETES_NOTHING,
		 COMPLETES_FILES,
		 COMPLETES_TABLES,  /* variables and files that are tables */
		 COMPLETES_COLUMNS, /* of the table that the argument "table" names */
};

struct prompt_arg { /* a row without a name ends the list */
	const char *name, *title, *help;
	bool required;
	enum completes completes;
};

struct prompts_ask { /* borrowed */
	const struct config *config;
	const struct workspace *workspace; /* NULL: nobody's */
	const json_t *params;
	enum mcp_revision revision;
	struct asks *asks;
};

struct prompt {
	const char *name, *title, *description, *icon;
	struct prompt_arg args[PROMPT_ARGS_MAX];
	/* The result.  Each value is that of an argument, "" where none was given. */
	json_t *(*get)(const struct prompts_ask *ask, const char *const *values,
		       struct rpc_refusal *refusal);
};

/* NULL when none of that name is offered. */
const struct prompt *prompt_find(const struct config *config, const char *name);
/* Results of the methods; caller owns.  NULL: refusal says why. */
json_t *prompts_list(const struct prompts_ask *ask, struct rpc_refusal *refusal);
json_t *prompts_get(const struct prompts_ask *ask, struct rpc_refusal *refusal);
/* A GetPromptResult of one message of the user's.  Caller owns. */
json_t *prompt_text(const char *description, const char *text, size_t size);

#endif

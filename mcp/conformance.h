/*
 * conformance - what the official conformance suite of MCP wants to find on a server:
 * tools, prompts and resources of fixed names, called test_*.  They are offered with
 * --conformance only, and go through the same tables and code as the real ones.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MCP_CONFORMANCE_H
#define MCP_CONFORMANCE_H

#include <jansson.h>

struct tool;
struct prompt;

#define CONFORMANCE_URI "test://"
#define CONFORMANCE_TEMPLATE CONFORMANCE_URI "template/{id}/data"

/* NULL ends both lists. */
extern const struct tool *const conformance_tools[];
extern const struct prompt *const conformance_prompts[];
/* NULL when there is none of that name. */
const struct tool *conformance_tool(const char *name);

/* Adds the rows to an array of resources or templates. */
void conformance_list_resources(json_t *rows);
void conformance_list_templates(json_t *rows);
/* The item of a ReadResourceResult's contents; NULL: there is no such resource.  Caller
 * owns. */
json_t *conformance_read(const char *uri);

#endif

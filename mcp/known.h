/*
 * known - what the last reply told of the live namespace: the variables that the next
 * call will find, and the columns of tables.  No code runs to find out.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MCP_KNOWN_H
#define MCP_KNOWN_H

#include <jansson.h>
#include <stdbool.h>

#include "kernelmgr/workspace.h"

/* "6x3 [month, region, amount]": what the variable of this name is; NULL: there is
 * none, as far as is known.  workspace may be NULL.  Borrows. */
const char *known_variable(const struct workspace *workspace, const char *name);
/* The names of a table's columns, an array: of a variable, or those in the first line
 * of a *.csv or *.tsv.  Caller owns; NULL: nothing is known. */
json_t *known_columns(const struct workspace *workspace, const char *table);
/* Calls each(name, arg) for every variable that is a table, the latest first. */
void known_tables(const struct workspace *workspace,
		  void (*each)(const char *name, void *arg), void *arg);
/* True for a file that holds a table: by the end of its name. */
bool known_table_file(const char *path);

#endif

/*
 * uri - files of the workspace as resources: workspace:///data/a%20b.csv, and those of
 * a branch: workspace://BRANCH/data/a%20b.csv.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MCP_URI_H
#define MCP_URI_H

#include <stdbool.h>
#include <stddef.h>

#include "wire/buf.h"

/* {+path}: slashes stay. */
#define URI_START "workspace://"
#define URI_TEMPLATE URI_START "/{+path}"
#define URI_BRANCH_TEMPLATE URI_START "{branch}/{+path}"

/* Appends the URI of a file of the workspace of that name, which may be a branch; what
 * is not unreserved in RFC 3986 is escaped. */
void uri_of_path(struct buf *out, const char *workspace, const char *path);
/* Appends the branch ("": none) and the path that a URI names; false if it is none of
 * ours.  "?" and "#" are taken as they are: expanding {+path} does not escape them. */
bool uri_to_path(struct buf *branch, struct buf *path, const char *uri, size_t size);

#endif

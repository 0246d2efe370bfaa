/*
 * header - request headers by name, whether lws knows the name or not.  Valid only
 * until the handler returns: lws drops the table with the request.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef WIRE_HEADER_H
#define WIRE_HEADER_H

#include <stdbool.h>
#include <stddef.h>

struct lws;

enum { HEADER_ABSENT = -1, HEADER_TOO_LONG = -2, HEADER_REPEATED = -3 };

/* Length of the value copied to out, blanks at its end cut off, or HEADER_*, with
 * out "".  A repeated header comes joined by commas if lws knows its name, and is
 * HEADER_REPEATED if not. */
int header_copy(struct lws *wsi, const char *name, char *out, size_t size);
/* True if the comma list in the header has the token (parameters ignored). */
bool header_has(struct lws *wsi, const char *name, const char *token);

/* True if lws has taken one header for a part of another's name and so lost it; out
 * gets the name of the one that did it.  Such a request must be refused. */
bool header_is_lost(struct lws *wsi, char *out, size_t size);

#endif

/*
 * gate - which Host and Origin are let in, so that a web page elsewhere cannot
 * reach this server through a browser (DNS rebinding, cross-site requests).
 * Nothing but strings: no connection is seen here.
 *
 * Let in: loopback (localhost, 127.x.y.z, [::1]), the address listened on, any name
 * of a single label (no such name is anybody's in the public DNS), and the names
 * configured.  Ports are ignored.  What a URL parser could read as another way to
 * spell an address is refused: only the plain spelling is known to be harmless.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef WIRE_GATE_H
#define WIRE_GATE_H

#include <stdbool.h>
#include <stddef.h>

struct gate {                /* embed it; both borrowed, both may be NULL */
	const char *address; /* listened on: "10.0.0.5", "fd00::5" */
	const char *allowed; /* names by commas or blanks, as the user wrote them */
};

/* host: the header's value, "name" or "name:port". */
bool gate_allows_host(const struct gate *self, const char *host);
/* origin: the header's value, "https://name:port".  False for "null". */
bool gate_allows_origin(const struct gate *self, const char *origin);
/* The first of the names configured that can be no Host, such as a pattern, and how
 * many bytes it has; 0: there is none. */
size_t gate_find_bad(const char *allowed, const char **out);

#endif

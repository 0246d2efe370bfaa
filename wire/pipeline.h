/*
 * pipeline - tells whether a request head was read fresh from the socket or came
 * from what lws had left over.  lws 4.1.6 cannot do the latter for a request with a
 * body: lws_http_action() reads the leftovers again from their start, takes the head
 * for the body, and can loop for ever (server.c, the loop at its end).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef WIRE_PIPELINE_H
#define WIRE_PIPELINE_H

#include <stdbool.h>

/* Bytes of this TCP connection that the program has read so far, or hardly more. */
unsigned long long pipeline_bytes_read(int fd);
/* True if anything was read between these two counts.  A head of which all but a byte
 * or two was left over counts as left over: its connection is closed. */
bool pipeline_has_read(unsigned long long before, unsigned long long now);

#endif

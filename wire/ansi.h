/*
 * ansi - takes terminal control sequences (ECMA-48) out of text: colours and cursor
 * movements mean nothing to who reads a result.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef WIRE_ANSI_H
#define WIRE_ANSI_H

#include <stddef.h>

#include "wire/buf.h"

/* Appends text without its control sequences (CSI, OSC, and two-byte escapes). */
void ansi_strip(struct buf *out, const char *text, size_t size);

#endif

/*
 * pack - pixels written as a PNG file, quickly or as small as they go.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef WIRE_PACK_H
#define WIRE_PACK_H

#include <stdbool.h>
#include <stddef.h>

#include "wire/pixels.h"

/* NULL when there is no memory.  Caller owns. */
unsigned char *pack_png(const struct pixels *pixels, bool thorough, size_t *size)
    __attribute__((warn_unused_result));

#endif

/*
 * scale - pixels made smaller in linear light, with colours weighted by their opacity.
 * The filter is Mitchell and Netravali's.  Charts are mostly of one colour: runs of
 * equal pixels cost little, and what looks like the row above costs next to nothing.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef WIRE_SCALE_H
#define WIRE_SCALE_H

#include <stdbool.h>

#include "wire/pixels.h"

/* Fills to->data from a picture that is at least as large and has as many channels, or
 * alpha besides.  False when there is no memory. */
bool scale_down(const struct pixels *from, struct pixels *to)
    __attribute__((warn_unused_result));

#endif

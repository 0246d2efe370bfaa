/*
 * plain - reads PNGs of the form that charts are saved in, five times faster than
 * libpng: 8 bits a channel, no palette, not interlaced, and nothing that changes what
 * its colours mean.  Whatever has another form or is not wholly right is left to
 * libpng, which then has the words for it.  Runs where image.h says.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef WIRE_PLAIN_H
#define WIRE_PLAIN_H

#include <stdbool.h>
#include <stddef.h>

#include "wire/pixels.h"

/* Reads all of the picture; *end is how many bytes of png it took.  False when it is
 * one for libpng; out is then as it was.  Caller owns out. */
bool plain_read(const unsigned char *png, size_t size, struct pixels *out, size_t *end)
    __attribute__((warn_unused_result));

#endif

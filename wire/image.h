/*
 * image - a PNG made fit to be sent: checked by decoding all of it, scaled down where
 * it is too large.  Pure functions over memory; what reads PNGs and the scaler run here
 * and nowhere else, and the daemon runs them only in vivarium-image, a short-lived
 * walled child, since what they read was written by strangers.  Two readers: plain.h
 * for what charts are, libpng for the rest and for saying what is wrong.
 *
 * Scaling is done in linear light (files say so by sRGB, gAMA, or nothing, which means
 * sRGB) and with colours weighted by their opacity.  A scaled picture is 8-bit sRGB
 * gray, gray with alpha, RGB or RGBA without comments or colour profiles (an embedded
 * ICC profile counts as sRGB).
 *
 * Memory: 4 bytes a pixel at most, 256 MiB at the limit of 8192 x 8192, plus the
 * result; a bomb of 260 KB may claim that much, so run few at a time.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef WIRE_IMAGE_H
#define WIRE_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "wire/err.h"

enum {
	IMAGE_SIDE_MAX = 8192,       /* pixels */
	IMAGE_FILE_MAX = 64u << 20,  /* bytes of a PNG that are read */
	IMAGE_CHUNK_MAX = 8u << 20,  /* bytes of one ancillary chunk kept in memory */
	IMAGE_CHUNK_COUNT_MAX = 256, /* ancillary chunks kept in memory */
};

struct image { /* a whole PNG file */
	const unsigned char *data;
	size_t size;
	unsigned width, height;
	uint64_t look; /* equal for files that look alike, before they were scaled */
	unsigned char *memory; /* owned; NULL where data is the input itself */
};

/* Makes the picture's longer side at most max_side, and scales it further down until
 * the file takes at most max_bytes.  What fits already comes back as it is: out->data
 * is png and out->size leaves out only what follows the end of the picture.  Fails
 * with ERR_ARGUMENT for what is not a sound PNG, ERR_LIMIT for one that is over a
 * limit, each in words that name it.  out borrows png until image_finish(). */
int image_fit(const unsigned char *png, size_t size, unsigned max_side,
	      size_t max_bytes, struct image *out, struct err *err) must_check;
/* Frees and clears; fits owned(). */
void image_finish(struct image *self);

#endif

/*
 * base64 - bytes as text, by libsodium.  The variants are sodium's own.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef WIRE_BASE64_H
#define WIRE_BASE64_H

#include <jansson.h>
#include <sodium.h>

#include "wire/buf.h"

#define BASE64_PLAIN sodium_base64_VARIANT_ORIGINAL
#define BASE64_URL sodium_base64_VARIANT_URLSAFE_NO_PADDING

void base64_add(struct buf *out, const void *data, size_t size, int variant);
/* As a JSON string.  Caller owns. */
json_t *base64_json(const void *data, size_t size, int variant);

#endif

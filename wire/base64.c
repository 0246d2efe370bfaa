// SPDX-License-Identifier: MIT
#include "wire/base64.h"

#include <string.h>

#include "wire/err.h"

void base64_add(struct buf *out, const void *data, size_t size, int variant)
{
	size_t room = sodium_base64_encoded_len(size, variant);
	char *end = buf_reserve(out, room);

	sodium_bin2base64(end, room, data, size, variant);
	out->size += strlen(end);
}

json_t *base64_json(const void *data, size_t size, int variant)
{
	owned(buf_finish) struct buf text = {0};

	base64_add(&text, data, size, variant);
	return json_stringn_nocheck(buf_str(&text), text.size);
}

// SPDX-License-Identifier: MIT
#include "mcp/event_id.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = EVENT_ID_NAME_BYTES };
#define BASE64 sodium_base64_VARIANT_URLSAFE_NO_PADDING

static void sign(const struct sessions *sessions, enum stream_kind kind,
		 uint64_t session, unsigned char name[NAME_BYTES])
{
	unsigned char text[NAME_BYTES / 2 + sizeof session + 1];
	unsigned char hash[crypto_generichash_BYTES];

	memcpy(text, name, NAME_BYTES / 2);
	memcpy(text + NAME_BYTES / 2, &session, sizeof session);
	text[sizeof text - 1] = (unsigned char)kind;
	crypto_generichash(hash, sizeof hash, text, sizeof text, sessions->key,
			   sizeof sessions->key);
	memcpy(name + NAME_BYTES / 2, hash, NAME_BYTES / 2);
}

void event_id_name(struct event_id *self, const struct sessions *sessions,
		   uint64_t session)
{
	randombytes_buf(self->name, NAME_BYTES / 2);
	sign(sessions, self->kind, session, self->name);
}

void event_id_write(const struct event_id *self, struct buf *out)
{
	char name[2 * NAME_BYTES + 1], request[2 * EVENT_ID_REQUEST_MAX] = "";

	sodium_bin2hex(name, sizeof name, self->name, NAME_BYTES);
	if (self->request[0])
		sodium_bin2base64(request, sizeof request,
				  (const unsigned char *)self->request,
				  strlen(self->request), BASE64);
	buf_printf(out, "id: %c%s_%llu%s%s\n", (char)self->kind, name,
		   (unsigned long long)self->seq, request[0] ? "_" : "", request);
}

static bool read_request(const char *text, struct event_id *out)
{
	size_t size, len = strlen(text);

	if (!len)
		return true;
	if (text[0] != '_' ||
	    sodium_base642bin((unsigned char *)out->request, EVENT_ID_REQUEST_MAX,
			      text + 1, len - 1, NULL, &size, NULL, BASE64) < 0)
		return false;
	out->request[size] = '\0';
	return true;
}

bool event_id_read(struct event_id *out, const struct sessions *sessions,
		   uint64_t session, const char *text)
{
	unsigned char signed_name[NAME_BYTES];
	const char *end;
	size_t size;

	*out = (struct event_id){.kind = text[0] == KIND_ANSWER ? KIND_ANSWER
								: KIND_STANDING};
	if (text[0] != (char)out->kind ||
	    sodium_hex2bin(out->name, NAME_BYTES, text + 1, 2 * NAME_BYTES, NULL, &size,
			   &end) < 0 ||
	    size != NAME_BYTES || *end != '_' || end[1] < '0' || end[1] > '9')
		return false;
	memcpy(signed_name, out->name, NAME_BYTES);
	sign(sessions, out->kind, session, signed_name);
	if (sodium_memcmp(signed_name, out->name, NAME_BYTES) != 0)
		return false;
	char *rest;
	out->seq = strtoull(end + 1, &rest, 10);
	return read_request(rest, out);
}

// SPDX-License-Identifier: MIT
#include "wire/sign.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "wire/mem.h"

enum { SLOTS = REPLAY_MEMORY * 4 }; /* a quarter full: short probes */

void sign_new_key(char out[SIGN_KEY_HEX + 1])
{
	unsigned char bytes[SIGN_KEY_HEX / 2];

	randombytes_buf(bytes, sizeof bytes);
	sodium_bin2hex(out, SIGN_KEY_HEX + 1, bytes, sizeof bytes);
	sodium_memzero(bytes, sizeof bytes);
}

void sign_parts(const char *key, const struct sign_part parts[SIGN_PARTS],
		char out[SIGN_HEX + 1])
{
	unsigned char mac[crypto_auth_hmacsha256_BYTES];
	crypto_auth_hmacsha256_state state;

	crypto_auth_hmacsha256_init(&state, (const unsigned char *)key, strlen(key));
	for (int i = 0; i < SIGN_PARTS; i++)
		crypto_auth_hmacsha256_update(&state, parts[i].data, parts[i].size);
	crypto_auth_hmacsha256_final(&state, mac);
	sodium_bin2hex(out, SIGN_HEX + 1, mac, sizeof mac);
}

bool sign_check(const char *key, const struct sign_part parts[SIGN_PARTS],
		const void *signature, size_t size)
{
	char want[SIGN_HEX + 1];

	if (size != SIGN_HEX)
		return false;
	sign_parts(key, parts, want);
	return sodium_memcmp(want, signature, SIGN_HEX) == 0;
}

/* The signature is already a keyed hash: its first 16 digits are as good as any. */
static uint64_t digest_of(const char signature[SIGN_HEX])
{
	char text[17];

	memcpy(text, signature, 16);
	text[16] = '\0';
	uint64_t digest = strtoull(text, NULL, 16);
	return digest ? digest : 1;
}

static size_t find(const uint64_t *slots, uint64_t digest)
{
	size_t at = digest % SLOTS;

	while (slots[at] && slots[at] != digest)
		at = (at + 1) % SLOTS;
	return at;
}

/* Open addressing: after a removal, whatever follows may have to move up. */
static void forget(uint64_t *slots, uint64_t digest)
{
	size_t hole = find(slots, digest);

	if (!slots[hole])
		return;
	slots[hole] = 0;
	for (size_t at = (hole + 1) % SLOTS; slots[at]; at = (at + 1) % SLOTS) {
		uint64_t moving = slots[at];

		slots[at] = 0;
		slots[find(slots, moving)] = moving;
	}
}

bool replay_is_new(struct replay_guard *self, const char signature[SIGN_HEX])
{
	uint64_t digest = digest_of(signature);

	if (!self->ring) {
		self->ring = xcalloc(REPLAY_MEMORY, sizeof *self->ring);
		self->slots = xcalloc(SLOTS, sizeof *self->slots);
	}
	size_t at = find(self->slots, digest);
	if (self->slots[at])
		return false;
	if (self->ring[self->next])
		forget(self->slots, self->ring[self->next]);
	self->slots[find(self->slots, digest)] = digest;
	self->ring[self->next] = digest;
	self->next = (self->next + 1) % REPLAY_MEMORY;
	return true;
}

void replay_finish(struct replay_guard *self)
{
	free(self->ring);
	free(self->slots);
	*self = (struct replay_guard){0};
}

// SPDX-License-Identifier: MIT
#include "mcp/session.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

static const char *const revisions[] = {
    [MCP_2024_11_05] = "2024-11-05", [MCP_2025_03_26] = "2025-03-26",
    [MCP_2025_06_18] = "2025-06-18", [MCP_2025_11_25] = "2025-11-25",
    [MCP_2026_07_28] = "2026-07-28",
};

struct plain { /* what a session id says; its first byte is the layout's version */
	unsigned char layout, revision, serial[8];
};
enum { LAYOUT = 1 };

struct sealed {
	unsigned char nonce[crypto_secretbox_NONCEBYTES];
	unsigned char box[crypto_secretbox_MACBYTES + sizeof(struct plain)];
};
_Static_assert(sodium_base64_ENCODED_LEN(sizeof(struct sealed),
					 sodium_base64_VARIANT_URLSAFE_NO_PADDING) <=
		   SESSION_ID_SIZE,
	       "a session id fits");

const char *mcp_revision_name(enum mcp_revision revision)
{
	return revisions[revision];
}

int mcp_revision_find(const char *name)
{
	for (int i = 0; i < MCP_REVISION_COUNT; i++)
		if (strcmp(revisions[i], name) == 0)
			return i;
	return -1;
}

/* ---- those that ended ---- */

#define ENDED "ended %016llx"

static void remember(struct sessions *self, uint64_t serial)
{
	self->ended[self->next] = serial;
	self->next = (self->next + 1) % SESSIONS_ENDED_MAX;
}

static void read_ended(const char *line, void *arg)
{
	unsigned long long serial;

	if (sscanf(line, "ended %16llx", &serial) == 1)
		remember(arg, serial);
}

static void write_ended(FILE *to, void *arg)
{
	const struct sessions *self = arg;

	for (size_t i = 0; i < SESSIONS_ENDED_MAX; i++) { /* the oldest first */
		uint64_t serial = self->ended[(self->next + i) % SESSIONS_ENDED_MAX];

		if (serial)
			fprintf(to, ENDED "\n", (unsigned long long)serial);
	}
}

int sessions_open(struct sessions *self, const char *state_dir, struct err *err)
{
	return notes_open(&self->notes, state_dir, "sessions.ended", read_ended,
			  write_ended, self, err);
}

void sessions_close(struct sessions *self)
{
	notes_close(&self->notes);
	explicit_bzero(self->key, sizeof self->key);
}

void session_end(struct sessions *self, const struct session *session)
{
	remember(self, session->serial);
	notes_add(&self->notes, ENDED, (unsigned long long)session->serial);
}

/* ---- ids ---- */

void session_begin(struct sessions *self, enum mcp_revision revision,
		   char id[SESSION_ID_SIZE])
{
	struct plain plain = {.layout = LAYOUT, .revision = (unsigned char)revision};
	struct sealed sealed;

	randombytes_buf(plain.serial, sizeof plain.serial);
	randombytes_buf(sealed.nonce, sizeof sealed.nonce);
	crypto_secretbox_easy(sealed.box, (const unsigned char *)&plain, sizeof plain,
			      sealed.nonce, self->key);
	sodium_bin2base64(id, SESSION_ID_SIZE, (const unsigned char *)&sealed,
			  sizeof sealed, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
}

int session_find(const struct sessions *self, const char *id, struct session *out)
{
	struct sealed sealed;
	struct plain plain;
	size_t size;

	if (sodium_base642bin((unsigned char *)&sealed, sizeof sealed, id, strlen(id),
			      NULL, &size, NULL,
			      sodium_base64_VARIANT_URLSAFE_NO_PADDING) < 0 ||
	    size != sizeof sealed ||
	    crypto_secretbox_open_easy((unsigned char *)&plain, sealed.box,
				       sizeof sealed.box, sealed.nonce,
				       self->key) < 0 ||
	    plain.layout != LAYOUT || plain.revision >= MCP_STATELESS)
		return -1;
	out->revision = plain.revision;
	memcpy(&out->serial, plain.serial, sizeof out->serial);
	for (size_t i = 0; i < SESSIONS_ENDED_MAX; i++)
		if (self->ended[i] == out->serial)
			return -1;
	return 0;
}

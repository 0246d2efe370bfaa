// SPDX-License-Identifier: MIT
#include "mcp/session.h"

#include <sodium.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "wire/json.h"
#include "wire/mem.h"

static const char *const revisions[] = {
    [MCP_2024_11_05] = "2024-11-05", [MCP_2025_03_26] = "2025-03-26",
    [MCP_2025_06_18] = "2025-06-18", [MCP_2025_11_25] = "2025-11-25",
    [MCP_2026_07_28] = "2026-07-28",
};

struct plain { /* what a session id says; its first byte is the layout's version */
	unsigned char layout, revision, client, serial[8];
};
enum { LAYOUT = 2 };

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

/* What clients were seen to hand their models, by their names; of Visual Studio Code
 * its source says so. */
static unsigned habits(const json_t *info)
{
	static const struct {
		const char *name;
		unsigned bits;
	} rows[] = {
	    {"claude-code", CLIENT_HIDES_TEXT | CLIENT_PLAIN_ERRORS},
	    {"codex-mcp-client", CLIENT_HIDES_TEXT}, /* and the pictures */
	    {"gemini-cli-mcp-client", CLIENT_HIDES_TEXT | CLIENT_PLAIN_ERRORS},
	    {"opencode", CLIENT_PLAIN_ERRORS},
	    {"Visual Studio Code", CLIENT_HIDES_TEXT},
	};
	const char *name = json_text(info, "name", "");

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		size_t len = strlen(rows[i].name);

		/* "NAME (via mcp-remote 0.15.1)", "NAME - Insiders" */
		if (strncmp(name, rows[i].name, len) == 0 &&
		    (name[len] == '\0' || name[len] == ' '))
			return rows[i].bits;
	}
	return 0;
}

unsigned client_bits(const json_t *capabilities, const json_t *info)
{
	const json_t *elicits = json_object_get(capabilities, "elicitation");
	bool url = json_object_get(elicits, "url") != NULL;
	/* {} stands for forms alone, as there was nothing else at first */
	bool form = elicits && (!url || json_object_get(elicits, "form"));

	return (form ? CLIENT_ELICITS : 0u) | (url ? CLIENT_ELICITS_URL : 0u) |
	       (json_object_get(capabilities, "sampling") ? CLIENT_SAMPLES : 0u) |
	       (json_object_get(capabilities, "roots") ? CLIENT_ROOTS : 0u) |
	       (json_object_get(json_object_get(capabilities, "extensions"),
				SESSION_TASKS)
		    ? CLIENT_TASKS
		    : 0u) |
	       habits(info);
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

int sessions_open(struct sessions *self, const char *dir, struct err *err)
{
	return notes_open(&self->notes, dir, "sessions.ended", read_ended, write_ended,
			  self, err);
}

void sessions_close(struct sessions *self)
{
	notes_close(&self->notes);
	explicit_bzero(self->key, sizeof self->key);
}

void session_end(struct sessions *self, const struct session *session)
{
	for (size_t i = 0; i < SESSIONS_OPENED_MAX; i++)
		if (self->opened[i].session.serial == session->serial)
			self->opened[i].id[0] = '\0';
	remember(self, session->serial);
	notes_add(&self->notes, ENDED, (unsigned long long)session->serial);
}

/* ---- ids ---- */

void session_begin(struct sessions *self, enum mcp_revision revision, unsigned client,
		   char id[SESSION_ID_SIZE])
{
	struct plain plain = {.layout = LAYOUT,
			      .revision = (unsigned char)revision,
			      .client = (unsigned char)client};
	struct sealed sealed;

	randombytes_buf(plain.serial, sizeof plain.serial);
	randombytes_buf(sealed.nonce, sizeof sealed.nonce);
	crypto_secretbox_easy(sealed.box, (const unsigned char *)&plain, sizeof plain,
			      sealed.nonce, self->key);
	sodium_bin2base64(id, SESSION_ID_SIZE, (const unsigned char *)&sealed,
			  sizeof sealed, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
}

/* Where an id is kept when it was found good: it begins with its random nonce. */
static struct opened *place_of(struct sessions *self, const char *id, size_t len)
{
	size_t mixed = 0;

	for (size_t i = 0; i < len && i < 4; i++)
		mixed = mixed * 5 + (unsigned char)id[i];
	return &self->opened[mixed % SESSIONS_OPENED_MAX];
}

/* In constant time, as its answer must not tell how much of an id is right. */
static bool is_kept(const struct opened *place, const char *id, size_t len)
{
	return len && strlen(place->id) == len &&
	       sodium_memcmp(place->id, id, len) == 0;
}

static int unseal(const struct sessions *self, const char *id, struct session *out)
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
	out->client = plain.client;
	memcpy(&out->serial, plain.serial, sizeof out->serial);
	for (size_t i = 0; i < SESSIONS_ENDED_MAX; i++)
		if (self->ended[i] == out->serial)
			return -1;
	return 0;
}

int session_find(struct sessions *self, const char *id, struct session *out)
{
	size_t len = strlen(id);
	struct opened *place = place_of(self, id, len);

	if (is_kept(place, id, len)) {
		*out = place->session;
		return 0;
	}
	if (unseal(self, id, out) < 0)
		return -1;
	memcpy(place->id, id, len + 1); /* fits: it was decoded into a sealed one */
	place->session = *out;
	return 0;
}

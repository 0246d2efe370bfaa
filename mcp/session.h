/*
 * session - MCP sessions that cost the server no memory and survive its restart: the
 * id is what the server wants to know later, sealed with its own key (libsodium's
 * secretbox).  Only which of them were ended has to be remembered.  Nothing but the
 * protocol's revision and what the client can hangs on an id; workspaces do not.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MCP_SESSION_H
#define MCP_SESSION_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "kernelmgr/notes.h"

/* The revisions of MCP, oldest first.  Those before MCP_STATELESS begin with
 * `initialize` and have sessions; the later ones say all in every request. */
enum mcp_revision {
	MCP_2024_11_05,
	MCP_2025_03_26,
	MCP_2025_06_18,
	MCP_2025_11_25,
	MCP_STATELESS,
	MCP_2026_07_28 = MCP_STATELESS,
	MCP_REVISION_COUNT
};
const char *mcp_revision_name(enum mcp_revision revision);
/* -1 when this server does not speak it, of either era. */
int mcp_revision_find(const char *name);

enum {
	SESSION_KEY_SIZE = 32,
	SESSION_ID_SIZE = 128,
	SESSIONS_ENDED_MAX = 1024,
	SESSIONS_OPENED_MAX = 64,
};

/* What a client says that it can do. */
enum {
	CLIENT_ELICITS = 1 << 0, /* by forms */
	CLIENT_ELICITS_URL = 1 << 1,
	CLIENT_SAMPLES = 1 << 2,
	CLIENT_ROOTS = 1 << 3,
	CLIENT_TASKS = 1 << 4, /* the extension of 2026-07-28 */
	/* As for what its model gets: a structure in place of the text; no picture
	 * beside an error, or its bytes as text. */
	CLIENT_HIDES_TEXT = 1 << 5,
	CLIENT_PLAIN_ERRORS = 1 << 6,
};
#define SESSION_TASKS "io.modelcontextprotocol/tasks"
/* The bits of its ClientCapabilities and its Implementation (clientInfo), or of what
 * was sent in their place. */
unsigned client_bits(const json_t *capabilities, const json_t *info);

struct session {
	enum mcp_revision revision;
	unsigned client; /* CLIENT_* */
	uint64_t serial;
};

struct opened { /* an id that was found good */
	char id[SESSION_ID_SIZE];
	struct session session;
};

struct sessions { /* embed it; key is set by the owner */
	unsigned char key[SESSION_KEY_SIZE];
	uint64_t ended[SESSIONS_ENDED_MAX]; /* serials, the newest ones */
	size_t next;
	struct notes notes;                        /* of them, for the next daemon */
	struct opened opened[SESSIONS_OPENED_MAX]; /* of late, none of them ended */
};

/* Remembers from now on in dir which sessions were ended, and knows those that
 * were before. */
int sessions_open(struct sessions *self, const char *dir, struct err *err) must_check;
/* Forgets the key too. */
void sessions_close(struct sessions *self);

/* A new session's id: visible ASCII. */
void session_begin(struct sessions *self, enum mcp_revision revision, unsigned client,
		   char id[SESSION_ID_SIZE]);
/* 0 and *out, or -1 for an id that this server did not make or that has ended. */
int session_find(struct sessions *self, const char *id, struct session *out);
void session_end(struct sessions *self, const struct session *session);

#endif

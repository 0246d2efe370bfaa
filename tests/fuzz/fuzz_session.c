// SPDX-License-Identifier: MIT
/* Session ids that the server has not given out.  Input: where to change a real one,
 * what to put there, and then a whole id. */
#include "mcp/session.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct sessions sessions = {.key = "nobody knows this key"};
	struct input input = {data, size};
	size_t at = input_byte(&input);
	char change = (char)input_byte(&input), id[SESSION_ID_SIZE];
	size_t id_size = input.left;
	owned(free_text) char *guess = input_copy(&input, id_size, true);
	struct session session;

	MUST(session_find(&sessions, guess, &session) < 0);
	session_begin(&sessions, at % MCP_STATELESS, at & 31, id);
	MUST(session_find(&sessions, id, &session) == 0);
	MUST(session.revision == at % MCP_STATELESS);
	MUST(session.client == (at & 31));
	session_end(&sessions, &session);
	MUST(session_find(&sessions, id, &session) < 0);

	/* (libsodium 1.0.18 takes each byte over 0x7f for the last digit, "_".) */
	session_begin(&sessions, MCP_2025_06_18, 0, id);
	at %= strlen(id);
	if (id[at] != change && !(change & 0x80)) {
		id[at] = change;
		MUST(session_find(&sessions, id, &session) < 0);
	}
	return 0;
}

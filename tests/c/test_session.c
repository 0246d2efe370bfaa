// SPDX-License-Identifier: MIT
#include "mcp/session.h"

#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include "testing.h"
#include "wire/mem.h"

static struct sessions sessions;

CASE(a_session_is_found_by_its_id_alone)
{
	static struct sessions restarted;
	struct session session;
	char id[SESSION_ID_SIZE];

	session_begin(&sessions, MCP_2025_06_18, 0, id);
	for (const char *c = id; *c; c++)
		assert_true(*c > 0x20 && *c < 0x7f);
	memcpy(restarted.key, sessions.key, sizeof restarted.key);
	assert_int_equal(session_find(&restarted, id, &session), 0);
	assert_int_equal(session.revision, MCP_2025_06_18);
}

CASE(a_foreign_a_changed_and_a_cut_id_are_unknown)
{
	static struct sessions other = {.key = {1}};
	struct session session;
	char id[SESSION_ID_SIZE], changed[SESSION_ID_SIZE];

	session_begin(&sessions, MCP_2025_11_25, 0, id);
	assert_int_equal(session_find(&other, id, &session), -1);
	assert_int_equal(session_find(&sessions, id, &session), 0);
	for (size_t i = 0; i < strlen(id); i++) {
		memcpy(changed, id, sizeof changed);
		changed[i] = changed[i] == 'A' ? 'Q' : 'A';
		assert_int_equal(session_find(&sessions, changed, &session), -1);
	}
	id[strlen(id) - 1] = '\0';
	assert_int_equal(session_find(&sessions, id, &session), -1);
	assert_int_equal(session_find(&sessions, "", &session), -1);
	assert_int_equal(session_find(&sessions, "%%%", &session), -1);
}

CASE(an_ended_session_stays_ended_and_others_live)
{
	struct session a, b;
	char first[SESSION_ID_SIZE], second[SESSION_ID_SIZE];

	session_begin(&sessions, MCP_2025_11_25, 0, first);
	session_begin(&sessions, MCP_2025_11_25, 0, second);
	assert_string_not_equal(first, second);
	assert_int_equal(session_find(&sessions, first, &a), 0);
	session_end(&sessions, &a);
	assert_int_equal(session_find(&sessions, first, &a), -1);
	assert_int_equal(session_find(&sessions, second, &b), 0);
}

CASE(what_a_client_can_is_read_from_its_capabilities)
{
	static const struct {
		const char *text;
		unsigned client;
	} rows[] = {
	    {"{}", 0},
	    {"[]", 0},
	    {"{\"elicitation\":{}}", CLIENT_ELICITS},
	    {"{\"elicitation\":{\"url\":{}}}", CLIENT_ELICITS_URL},
	    {"{\"elicitation\":{\"form\":{},\"url\":{}}}",
	     CLIENT_ELICITS | CLIENT_ELICITS_URL},
	    {"{\"sampling\":{},\"roots\":{\"listChanged\":true}}",
	     CLIENT_SAMPLES | CLIENT_ROOTS},
	    {"{\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}", CLIENT_TASKS},
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		json_auto_t *value = json_loads(rows[i].text, 0, NULL);

		assert_int_equal(client_bits(value, NULL), rows[i].client);
	}
	assert_int_equal(client_bits(NULL, NULL), 0);
}

CASE(what_clients_hand_their_models_is_known_by_name)
{
	static const struct {
		const char *text;
		unsigned client;
	} rows[] = {
	    {"{\"name\":\"claude-code\"}", CLIENT_HIDES_TEXT | CLIENT_PLAIN_ERRORS},
	    {"{\"name\":\"opencode\"}", CLIENT_PLAIN_ERRORS},
	    {"{\"name\":\"codex-mcp-client\"}", CLIENT_HIDES_TEXT},
	    {"{\"name\":\"codex-mcp-client (via mcp-remote 0.15.1)\"}",
	     CLIENT_HIDES_TEXT},
	    {"{\"name\":\"Visual Studio Code - Insiders\"}", CLIENT_HIDES_TEXT},
	    {"{\"name\":\"Visual Studio\"}", 0},
	    {"{\"name\":\"claude-code-like\"}", 0},
	    {"{\"name\":\"claude\"}", 0},
	    {"{\"name\":\"\"}", 0},
	    {"{\"name\":7}", 0},
	    {"[]", 0},
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		json_auto_t *info = json_loads(rows[i].text, 0, NULL);

		assert_int_equal(client_bits(NULL, info), rows[i].client);
	}
}

/* More than are kept at once, so that they take each other's places. */
CASE(many_sessions_are_found_again_and_again)
{
	enum { MANY = SESSIONS_OPENED_MAX * 3, ENDED = 7 };
	static char ids[MANY][SESSION_ID_SIZE];
	static uint64_t serials[MANY];
	struct session session;

	for (int i = 0; i < MANY; i++) {
		session_begin(&sessions, (enum mcp_revision)(i % MCP_STATELESS),
			      (unsigned)i % 128, ids[i]);
		assert_int_equal(session_find(&sessions, ids[i], &session), 0);
		serials[i] = session.serial;
		if (i % ENDED == 0)
			session_end(&sessions, &session);
	}
	for (int i = 0; i < MANY * 2; i++) {
		int at = i / 2; /* each twice in a row */
		int found = session_find(&sessions, ids[at], &session);

		assert_int_equal(found, at % ENDED == 0 ? -1 : 0);
		if (found < 0)
			continue;
		assert_int_equal(session.revision, at % MCP_STATELESS);
		assert_int_equal(session.client, at % 128);
		assert_true(session.serial == serials[at]);
	}
}

CASE(the_newest_ended_sessions_stay_ended_after_a_restart)
{
	static struct sessions before, after;
	char place[] = "/tmp/session-test-XXXXXX", path[64];
	char ids[3][SESSION_ID_SIZE];
	struct session session;
	struct stat st;
	struct err err;

	assert_non_null(mkdtemp(place));
	memcpy(after.key, before.key, sizeof after.key);
	assert_int_equal(sessions_open(&before, place, &err), 0);
	for (int i = 0; i < 3; i++)
		session_begin(&before, MCP_2025_11_25, 0, ids[i]);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(session_find(&before, ids[i], &session), 0);
		session_end(&before, &session);
		for (uint64_t other = 1; i == 0 && other < 20000; other++)
			session_end(&before, &(struct session){.serial = other});
	}
	assert_int_equal(sessions_open(&after, place, &err), 0);     /* as if killed */
	assert_int_equal(session_find(&after, ids[0], &session), 0); /* too old */
	assert_int_equal(session_find(&after, ids[1], &session), -1);
	assert_int_equal(session_find(&after, ids[2], &session), 0);
	snprintf(path, sizeof path, "%s/sessions.ended", place);
	assert_int_equal(stat(path, &st), 0);
	assert_in_range(st.st_size, 1, 32 * 1024);
	sessions_close(&before);
	sessions_close(&after);
	unlink(path);
	assert_int_equal(rmdir(place), 0);
}

CASE(revisions_are_known_by_name)
{
	for (int i = 0; i < MCP_REVISION_COUNT; i++)
		assert_int_equal(
		    mcp_revision_find(mcp_revision_name((enum mcp_revision)i)), i);
	assert_int_equal(mcp_revision_find("1999-01-01"), -1);
}

RUN(cmocka_unit_test(a_session_is_found_by_its_id_alone),
    cmocka_unit_test(a_foreign_a_changed_and_a_cut_id_are_unknown),
    cmocka_unit_test(an_ended_session_stays_ended_and_others_live),
    cmocka_unit_test(what_a_client_can_is_read_from_its_capabilities),
    cmocka_unit_test(what_clients_hand_their_models_is_known_by_name),
    cmocka_unit_test(many_sessions_are_found_again_and_again),
    cmocka_unit_test(the_newest_ended_sessions_stay_ended_after_a_restart),
    cmocka_unit_test(revisions_are_known_by_name))

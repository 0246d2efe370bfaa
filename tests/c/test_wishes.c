// SPDX-License-Identifier: MIT
#include "mcp/wishes.h"

#include <sodium.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "mcp/server.h"
#include "testing.h"
#include "wire/json.h"
#include "wire/mem.h"

static char dir[] = "/tmp/wishes-test-XXXXXX", path[64];
static struct wishes wishes;

/* Stands for the one of workspace.c. */
struct workspace {
	const char *name;
};
static struct workspace alice = {"alice"}, bob = {"bob"}, branch = {"alice@b"};

const char *workspace_name(const struct workspace *self)
{
	return self->name;
}

static int begin(void **state)
{
	struct err err;

	(void)state;
	wishes_init(&wishes);
	snprintf(path, sizeof path, "%s/sessions.wishes", dir);
	unlink(path);
	return wishes_open(&wishes, dir, &err);
}

static int end(void **state)
{
	(void)state;
	wishes_finish(&wishes);
	return 0;
}

/* What is written is all that a daemon which is killed leaves. */
static void restart(void)
{
	struct err err;

	wishes_finish(&wishes);
	wishes_init(&wishes);
	assert_int_equal(wishes_open(&wishes, dir, &err), 0);
}

static struct server_context context_of(uint64_t session, struct workspace *workspace)
{
	return (struct server_context){
	    .session = session, .lasts = true, .workspace = workspace};
}

static int subscribe(uint64_t session, struct workspace *workspace, const char *text)
{
	const struct server_context context = context_of(session, workspace);
	json_auto_t *uri = json_string(text);
	struct err err;

	return wishes_subscribe(&wishes, &context, uri, &err);
}

static void count(uint64_t session, void *arg)
{
	uint64_t *sum = arg;

	*sum += session;
}

/* The sum of the sessions that want to know. */
static uint64_t told(struct workspace *workspace, const char *uri)
{
	uint64_t sum = 0;

	wishes_each(&wishes, workspace, uri, count, &sum);
	return sum;
}

CASE(wishes_are_there_after_a_restart)
{
	const struct server_context one = context_of(1, &alice);
	const struct server_context four = {.session = 4, .workspace = &alice};

	wishes_set_level(&wishes, &one, 5);
	wishes_listed(&wishes, &one);
	assert_int_equal(subscribe(1, &alice, "a\nb\"\x7f\xc3\xbc"), 0);
	assert_int_equal(subscribe(2, &bob, "u"), 0);
	wishes_set_level(&wishes, &four, 1); /* ends with its connection */
	for (int i = 0; i < 3; i++) {
		assert_int_equal(wishes_level(&wishes, 1), 5);
		assert_int_equal(wishes_level(&wishes, 2), LOG_NONE);
		assert_int_equal(wishes_level(&wishes, 4), i ? LOG_NONE : 1);
		assert_int_equal(told(&alice, "a\nb\"\x7f\xc3\xbc"), 1);
		assert_int_equal(told(&branch, "a\nb\"\x7f\xc3\xbc"), 1);
		assert_int_equal(told(&alice, NULL), 1);
		assert_int_equal(told(&branch, NULL), 0);
		assert_int_equal(told(&bob, "u"), 2);
		assert_int_equal(told(&bob, NULL), 0);
		assert_int_equal(told(&alice, "u"), 0);
		restart();
	}
}

CASE(what_was_taken_back_stays_so)
{
	json_auto_t *uri = json_string("u");

	assert_int_equal(subscribe(1, &alice, "u"), 0);
	assert_int_equal(subscribe(2, &alice, "u"), 0);
	assert_int_equal(subscribe(4, &alice, "u"), 0);
	wishes_unsubscribe(&wishes, 1, uri);
	wishes_forget(&wishes, 2);
	assert_int_equal(subscribe(4, &bob, "v"), 0); /* another user's session now */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(told(&alice, "u"), 0);
		assert_int_equal(told(&bob, "u"), 0);
		assert_int_equal(told(&bob, "v"), 4);
		restart();
	}
}

/* Those that were silent for longest are forgotten, and the file does not grow. */
CASE(count_and_size_are_bounded)
{
	static char uri[WISHES_URI_SIZE - 1], number[12];
	struct stat st;

	memset(uri, 'x', sizeof uri - 1);
	for (uint64_t i = 1; i <= WISHES_MAX + 10; i++)
		assert_int_equal(subscribe(i, &alice, "u"), 0);
	assert_int_equal(wishes.count, WISHES_MAX);
	for (unsigned i = 0; i < 12 * WISHES_URIS_MAX; i++) {
		snprintf(number, sizeof number, "%011u", i);
		memcpy(uri, number, sizeof number - 1);
		assert_int_equal(subscribe(9000 + i / WISHES_URIS_MAX, &alice, uri), 0);
	}
	assert_int_equal(subscribe(9011, &alice, "one more"), -1);
	restart();
	assert_true(wishes.bytes > WISHES_BYTES_MAX / 2);
	assert_true(wishes.bytes <= WISHES_BYTES_MAX);
	assert_int_equal(told(&alice, uri), 9011);
	assert_int_equal(told(&alice, "u"), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_true(st.st_size <= WISHES_BYTES_MAX + (1 << 20));
	json_auto_t *last = json_string(uri);
	for (int i = 0; i < 3000; i++) {
		wishes_unsubscribe(&wishes, 9011, last);
		assert_int_equal(subscribe(9011, &alice, uri), 0);
	}
	assert_int_equal(stat(path, &st), 0);
	assert_true(st.st_size <= 2 * (WISHES_BYTES_MAX + (1 << 20)));
}

CASE(what_was_long_ago_or_makes_no_sense_is_forgotten)
{
	long long now = (long long)time(NULL), old = now - WISHES_KEPT_S - 60;
	FILE *file = fopen(path, "a");

	assert_non_null(file);
	fprintf(file,
		"0000000000000001 %lld level 3\n0000000000000002 %lld level 3\n"
		"0000000000000004 %lld level 3\n0000000000000004 %lld heard \n"
		"nonsense\n0000000000000008 %lld level 9\n"
		"0000000000000008 %lld uri 7\n0000000000000008 %lld uri {\n"
		"0000000000000010 %lld lev",
		now, old, old, now, now, now, now, now);
	fclose(file);
	restart();
	assert_int_equal(wishes_level(&wishes, 1), 3);
	assert_int_equal(wishes_level(&wishes, 2), LOG_NONE);
	assert_int_equal(wishes_level(&wishes, 4), 3);
	assert_int_equal(wishes_level(&wishes, 8), LOG_NONE);
	assert_int_equal(told(&alice, "7"), 0);
	assert_int_equal(wishes.count, 3);
}

static int make_dir(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(wishes_are_there_after_a_restart, begin,
					    end),
	    cmocka_unit_test_setup_teardown(what_was_taken_back_stays_so, begin, end),
	    cmocka_unit_test_setup_teardown(count_and_size_are_bounded, begin, end),
	    cmocka_unit_test_setup_teardown(
		what_was_long_ago_or_makes_no_sense_is_forgotten, begin, end),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}

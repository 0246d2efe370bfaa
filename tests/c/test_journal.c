// SPDX-License-Identifier: MIT
#include "kernelmgr/journal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "testing.h"

static char place[] = "/tmp/journal-test-XXXXXX";

static int set_up(void **state)
{
	(void)state;
	return !mkdtemp(place) || chdir(place) < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
	(void)state;
	unlink("calls.journal");
	return chdir("/") < 0 || rmdir(place) < 0 ? -1 : 0;
}

static struct journal *open_journal(void)
{
	struct journal *journal;
	struct err err;

	assert_int_equal(journal_open(&journal, place, &err), 0);
	return journal;
}

static void check_lost(struct journal *journal, const char *workspace, const char *want)
{
	owned(buf_finish) struct buf text = {0};

	journal_tell_lost(journal, workspace, false, &text);
	if (want)
		assert_non_null(strstr(buf_str(&text), want));
	else
		assert_string_equal(buf_str(&text), "");
}

static void add_cell(unsigned long long cell, long long since, void *arg)
{
	assert_true(since > 0);
	*(unsigned long long *)arg += cell;
}

CASE(what_was_open_is_told_once_and_to_its_workspace)
{
	struct journal *journal = open_journal();
	uint64_t done = journal_queued(journal, "a"),
		 ran = journal_queued(journal, "a");

	journal_begun(journal, done, 1);
	journal_ended(journal, done);
	journal_begun(journal, ran, 2);
	journal_queued(journal, "a");
	journal_queued(journal, "a");
	journal_queued(journal, "b");
	journal_close(&journal); /* as if killed: nothing more is written */

	journal = open_journal();
	check_lost(journal, "c", NULL);
	owned(buf_finish) struct buf text = {0};
	unsigned long long cells = 0;
	journal_each_lost(journal, "a", add_cell, &cells);
	journal_each_lost(journal, "c", add_cell, &cells);
	assert_int_equal(cells, 2);
	journal_tell_lost(journal, "a", false, &text);
	assert_non_null(
	    strstr(text.data, "Vivarium was killed; lost: cell 2, which ran"));
	assert_non_null(
	    strstr(text.data, ", 2 calls that waited, and all variables.\n"));
	check_lost(journal, "a", NULL);
	check_lost(journal, "b", "lost: 1 call that waited, and");
	journal_close(&journal);
	journal = open_journal();
	check_lost(journal, "b", NULL);
	journal_close(&journal);
}

CASE(a_torn_and_a_foreign_line_are_passed_over)
{
	FILE *file = fopen("calls.journal", "w");

	fputs("queued 1 a 100\nnonsense\nbegun 9 9 9\nended\nqueued 2 ", file);
	fclose(file);
	struct journal *journal = open_journal();
	check_lost(journal, "a", "1 call that waited");
	journal_close(&journal);
}

CASE(it_stays_small)
{
	struct journal *journal = open_journal();
	struct stat st;
	uint64_t kept = journal_queued(journal, "kept");

	journal_begun(journal, kept, 7);
	for (int i = 0; i < 20000; i++) {
		uint64_t call = journal_queued(journal, "w");

		journal_begun(journal, call, 1);
		journal_ended(journal, call);
	}
	assert_int_equal(stat("calls.journal", &st), 0);
	assert_true(st.st_size < 300 * 1024);
	journal_close(&journal);
	journal = open_journal();
	check_lost(journal, "kept", "cell 7");
	check_lost(journal, "w", NULL);
	journal_close(&journal);
}

CASE(without_a_journal_nothing_happens)
{
	journal_ended(NULL, journal_queued(NULL, "a"));
	journal_begun(NULL, 1, 1);
	check_lost(NULL, "a", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(what_was_open_is_told_once_and_to_its_workspace),
	    cmocka_unit_test(a_torn_and_a_foreign_line_are_passed_over),
	    cmocka_unit_test(it_stays_small),
	    cmocka_unit_test(without_a_journal_nothing_happens),
	};

	return cmocka_run_group_tests_name(__FILE__, tests, set_up, tear_down);
}

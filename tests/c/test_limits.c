// SPDX-License-Identifier: MIT
/* What a kernel's supervisor is told about limits, and what people are, without control
 * groups; with them: tests/e2e/test_limits.py. */
#include "kernelmgr/limits.h"

#include <unistd.h>

#include "kernelmgr/plan.h"
#include "testing.h"

enum { MB = 1 << 20 };

static struct walls walls;
static struct limits limits;
static struct buf text, missing;
static struct plan plan;

static int set_up(void **state)
{
	(void)state;
	walls = (struct walls){.tier = 'N', .become = true};
	limits = (struct limits){.walls = &walls,
				 .values = {.memory = 512 * MB, .pids = 64}};
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	buf_finish(&text);
	buf_finish(&missing);
	return 0;
}

static void read_plan(void)
{
	const struct limits_kernel kernel = {.number = 3};

	limits_plan(&limits, &kernel, &text);
	assert_null(plan_read(&plan, text.data));
}

/* -1: there is none. */
static long long limit_of(int what)
{
	for (size_t i = 0; i < plan.limit_count; i++)
		if (plan.limits[i].what == what)
			return (long long)plan.limits[i].most;
	return -1;
}

CASE(without_groups_each_process_has_the_limit)
{
	read_plan();
	assert_int_equal(plan.group_count, 0);
	assert_int_equal(limit_of(RLIMIT_DATA), 512 * MB);
	assert_int_equal(limit_of(RLIMIT_NPROC), 64);
	assert_int_equal(limit_of(RLIMIT_NOFILE), 4096);
	assert_int_equal(limit_of(RLIMIT_CORE), 0);
	assert_int_equal(limit_of(RLIMIT_FSIZE), -1);
	assert_string_equal(plan.shm, "134217728");
	assert_string_equal(plan.tmp, "134217728");
}

CASE(processes_are_not_counted_where_the_daemons_would_be)
{
	walls = (struct walls){.tier = 'L'};
	read_plan();
	assert_int_equal(limit_of(RLIMIT_NPROC), -1);
	limits_describe(&limits, &text, &missing);
	assert_non_null(strstr(buf_str(&missing), "no limit of processes"));
}

CASE(a_user_of_its_own_has_its_own_processes)
{
	walls = (struct walls){.tier = 'U', .become = true};
	read_plan();
	assert_int_equal(limit_of(RLIMIT_NPROC), 64);
}

/* Which of both it is depends on who runs this, but plan and words have to agree. */
CASE(in_a_namespace_of_its_own_all_but_root_are_counted)
{
	walls = (struct walls){.tier = 'N'};
	read_plan();
	buf_finish(&text);
	limits_describe(&limits, &text, &missing);
	bool absent = strstr(buf_str(&missing), "no limit of processes") != NULL;
	assert_int_equal(limit_of(RLIMIT_NPROC), absent ? -1 : 64);
	if (geteuid() != 0)
		assert_false(absent);
}

CASE(no_limit_is_no_line)
{
	limits.values = (struct cgroup_values){0};
	read_plan();
	assert_int_equal(limit_of(RLIMIT_DATA), -1);
	assert_int_equal(limit_of(RLIMIT_NPROC), -1);
	assert_string_equal(plan.shm, "25%");
}

CASE(a_small_quota_leaves_room_for_our_own_files)
{
	limits.quota = MB;
	read_plan();
	assert_int_equal(limit_of(RLIMIT_FSIZE), 16 * MB);
	buf_finish(&text);
	limits.quota = 100 * MB;
	read_plan();
	assert_int_equal(limit_of(RLIMIT_FSIZE), 100 * MB);
}

CASE(what_is_not_kept_is_said)
{
	limits.values.cpu_us = 150000;
	limits_describe(&limits, &text, &missing);
	assert_string_equal(buf_str(&text), "64 processes");
	assert_string_equal(buf_str(&missing),
			    "memory 512 MB holds for each process, not for all of a "
			    "kernel together, no "
			    "equal shares and no limit of the processors");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
RUN(TEST(without_groups_each_process_has_the_limit),
    TEST(processes_are_not_counted_where_the_daemons_would_be),
    TEST(a_user_of_its_own_has_its_own_processes),
    TEST(in_a_namespace_of_its_own_all_but_root_are_counted), TEST(no_limit_is_no_line),
    TEST(a_small_quota_leaves_room_for_our_own_files), TEST(what_is_not_kept_is_said))

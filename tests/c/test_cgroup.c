// SPDX-License-Identifier: MIT
/* In plain directories that stand for control groups: what is found, made, written. */
#include "kernelmgr/cgroup.h"

#include <sys/stat.h>
#include <unistd.h>

#include "kernelmgr/cgroup_find.h"
#include "kernelmgr/sweep.h"
#include "testing.h"
#include "wire/mem.h"

static char place[] = "/tmp/test-cgroup-XXXXXX";

static void write_file(const char *name, const char *text)
{
	owned(free_text) char *path = xasprintf("%s/%s", place, name);
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static const char *read_file(const char *name)
{
	static char text[128];
	owned(free_text) char *path = xasprintf("%s/%s", place, name);
	FILE *file = fopen(path, "r");

	assert_non_null(file);
	text[fread(text, 1, sizeof text - 1, file)] = '\0';
	fclose(file);
	return text;
}

static void make_dir(const char *name)
{
	owned(free_text) char *path = xasprintf("%s/%s", place, name);

	mkdir(path, 0755);
}

/* What /proc/self shows; @ in the line of a mount stands for our place. */
static void write_proc(const char *mount, const char *groups)
{
	int before = (int)strcspn(mount, "@");
	owned(free_text) char *text =
	    xasprintf("%.*s%s%s", before, mount, place, mount + before + 1);

	write_file("mountinfo", text);
	write_file("cgroup", groups);
}

static int set_up(void **state)
{
	(void)state;
	strcpy(place + strlen(place) - 6, "XXXXXX");
	return mkdtemp(place) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	sweep_tree(place);
	return 0;
}

#define V1 "36 35 0:31 / @/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n"
#define V1_PAIR "37 35 0:32 / @/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
#define V2 "41 35 0:38 / @/unified rw,relatime - cgroup2 cgroup2 rw,nsdelegate\n"

CASE(version_1_is_found_by_its_controller)
{
	char found[PATH_MAX];
	bool v2;

	write_proc(V1, "9:name=systemd:/\n4:memory:/a/b\n0::/\n");
	assert_true(cgroup_find(place, "memory", found, &v2));
	assert_false(v2);
	assert_string_equal(found + strlen(place), "/memory/a/b");
	assert_false(cgroup_find(place, "pids", found, &v2));
	write_proc(V1_PAIR, "4:cpuacct,cpu:/\n");
	assert_true(cgroup_find(place, "cpu", found, &v2));
	assert_string_equal(found + strlen(place), "/cpu");
	assert_false(cgroup_find(place, "cp", found, &v2));
}

CASE(version_2_is_preferred_where_it_has_the_controller)
{
	char found[PATH_MAX];
	bool v2;

	make_dir("unified");
	make_dir("unified/mine");
	write_file("unified/mine/cgroup.controllers", "cpuset cpu io memory\n");
	write_proc(V2, "4:pids:/\n0::/mine\n");
	assert_true(cgroup_find(place, "memory", found, &v2));
	assert_true(v2);
	assert_string_equal(found + strlen(place), "/unified/mine");
	assert_false(cgroup_find(place, "pids", found, &v2));
}

CASE(only_what_is_mounted_is_found)
{
	char found[PATH_MAX];
	bool v2;

	write_proc("36 35 0:31 /outer/box @/memory rw - cgroup cgroup rw,memory\n",
		   "4:memory:/outer/box/in\n");
	assert_true(cgroup_find(place, "memory", found, &v2));
	assert_string_equal(found + strlen(place), "/memory/in");
	write_file("cgroup", "4:memory:/elsewhere\n");
	assert_false(cgroup_find(place, "memory", found, &v2));
	write_proc(V1, "4:memory:/../other\n");
	assert_false(cgroup_find(place, "memory", found, &v2));
}

CASE(the_least_limit_above_counts)
{
	make_dir("memory");
	make_dir("memory/a");
	make_dir("memory/a/b");
	write_file("memory/a/memory.limit_in_bytes", "3000\n");
	write_file("memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
	write_proc(V1, "4:memory:/a/b\n");
	assert_int_equal(cgroup_own_memory(place), 3000);
}

/* Version 2 where nothing can be switched on below: the files of the new group, which
 * only a real one has, are missing. */
CASE(what_cannot_be_had_is_given_up_with_a_reason)
{
	owned(free_text) char *base =
	    xasprintf("%s/unified/vivarium.%d", place, getpid());
	struct cgroups groups;

	make_dir("unified");
	write_file("unified/cgroup.controllers", "cpu memory pids\n");
	write_file("unified/cgroup.subtree_control", "");
	write_proc(V2, "0::/\n");
	cgroups_open(&groups, place);
	for (int kind = 0; kind < CGROUP_KINDS; kind++)
		assert_null(cgroups_tree(&groups, (enum cgroup_kind)kind));
	assert_string_equal(groups.why,
			    "the daemon's control group cannot be written to, or has "
			    "other processes in it");
	assert_int_equal(access(base, F_OK), -1);
	/* Writes to it follow one another in the same place; the last one undoes. */
	assert_memory_equal(read_file("unified/cgroup.subtree_control"), "-cpu", 4);
	cgroups_close(&groups);
}

/* The same of version 1 has files only for the daemon to write to: they stand in for
 * the real ones. */
CASE(a_kernels_limits_are_written_down)
{
	const struct cgroup_values values = {.pids = 99};
	struct cgroups groups;
	struct err err;

	make_dir("pids");
	write_proc("36 35 0:31 / @/pids rw - cgroup cgroup rw,pids\n", "4:pids:/\n");
	cgroups_open(&groups, place);
	assert_non_null(cgroups_tree(&groups, CGROUP_PIDS));
	assert_null(cgroups_tree(&groups, CGROUP_MEMORY));
	assert_string_equal(groups.why, "the daemon sees no control group for memory");
	owned(free_text) char *kernel = xasprintf("pids/vivarium.%d/k3", getpid());
	owned(free_text) char *max = xasprintf("%s/pids.max", kernel);
	assert_int_equal(cgroups_make(&groups, 3, &values, &err), -1); /* no file */
	make_dir(kernel);
	write_file(max, "");
	assert_int_equal(cgroups_make(&groups, 3, &values, &err), 0);
	assert_string_equal(read_file(max), "99");
	assert_false(cgroups_remove(&groups, 3)); /* it is not empty */
	cgroups_close(&groups);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
RUN(TEST(version_1_is_found_by_its_controller),
    TEST(version_2_is_preferred_where_it_has_the_controller),
    TEST(only_what_is_mounted_is_found), TEST(the_least_limit_above_counts),
    TEST(what_cannot_be_had_is_given_up_with_a_reason),
    TEST(a_kernels_limits_are_written_down))

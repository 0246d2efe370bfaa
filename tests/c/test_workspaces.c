// SPDX-License-Identifier: MIT
#include "kernelmgr/workspaces.h"

#include <sys/stat.h>
#include <unistd.h>

#include "kernelmgr/branches.h"
#include "kernelmgr/sweep.h"
#include "kernelmgr/users.h"
#include "testing.h"
#include "wire/mem.h"

static struct config config;
static char state_dir[64];
static struct workspace_place wide;
static const struct walls walls = {.tier = '0'};
static struct workspaces *workspaces;

static int set_up(void **state)
{
	(void)state;
	memset(&config, 0, sizeof config);
	config.output_limit = 20000;
	config.result_limit = 4 << 20;
	snprintf(config.workdir, sizeof config.workdir, "/tmp/workspaces-test-XXXXXX");
	snprintf(state_dir, sizeof state_dir, "/tmp/workspaces-state-XXXXXX");
	if (!mkdtemp(config.workdir) || !mkdtemp(state_dir))
		return -1;
	wide = (struct workspace_place){
	    .config = &config, .kernels.walls = &walls, .stores.state_dir = state_dir};
	/* Workspaces are only opened here, so a loop is never needed ... */
	struct err err;
	if (loop_create(&wide.kernels.loop, 4096, &err) < 0) /* ... but for timers */
		return -1;
	workspaces = workspaces_create(&wide);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	workspaces_destroy(&workspaces);
	loop_destroy(&wide.kernels.loop);
	sweep_tree(state_dir);
	sweep_tree(config.workdir);
	return 0;
}

static const struct claim none = {.state = CLAIM_ABSENT};
static const struct claim twice = {.state = CLAIM_UNREADABLE};
#define ONE(text) (&(struct claim){.state = CLAIM_ONE, .value = text})

static void check_refused(const struct claim *user, const struct claim *secret,
			  const char *words)
{
	struct workspace *out = NULL;
	struct err err;

	assert_int_equal(workspaces_principal(workspaces, "", user, secret, &out, &err),
			 -1);
	if (!strstr(err.msg, words))
		fail_msg("'%s' lacks '%s'", err.msg, words);
	assert_int_equal(workspaces_count(workspaces).workspaces, 0);
}

CASE(without_a_header_configured_all_share_the_default)
{
	struct workspace *a, *b;
	struct err err;

	assert_int_equal(
	    workspaces_principal(workspaces, "", ONE("bob"), &none, &a, &err), 0);
	assert_int_equal(workspaces_principal(workspaces, "", &none, &none, &b, &err),
			 0);
	assert_ptr_equal(a, b);
	assert_string_equal(workspace_name(a), "default");
	assert_string_equal(workspace_dir(a), config.workdir);
}

CASE(each_user_has_one_and_case_counts)
{
	struct workspace *a, *b, *again;
	struct err err;

	strcpy(config.user_header, "X-User-ID");
	assert_int_equal(
	    workspaces_principal(workspaces, "", ONE("bob"), &none, &a, &err), 0);
	assert_int_equal(
	    workspaces_principal(workspaces, "", ONE("Bob"), &none, &b, &err), 0);
	assert_int_equal(
	    workspaces_principal(workspaces, "", ONE("bob"), &none, &again, &err), 0);
	assert_ptr_equal(a, again);
	assert_ptr_not_equal(a, b);
	assert_non_null(strstr(workspace_dir(a), "/users/bob"));
}

/* How that of all is opened by who is on this machine. */
static const char *dir_of_all(void)
{
	struct workspace *all;
	struct err err;

	assert_int_equal(workspaces_local(workspaces, "", &all, &err), 0);
	assert_string_equal(workspace_name(all), "default");
	return workspace_dir(all);
}

static void start_again(void)
{
	workspaces_destroy(&workspaces);
	workspaces = workspaces_create(&wide);
}

CASE(where_users_may_come_in_that_of_all_lies_beside_theirs)
{
	strcpy(config.user_header, "X-User-ID");
	assert_non_null(strstr(dir_of_all(), "/users/@all"));
	start_again();
	config.user_header[0] = '\0';
	assert_non_null(strstr(dir_of_all(), "/users/@all")); /* it stays there */
}

CASE(it_lies_there_once_a_user_was_named)
{
	struct workspace *bob;
	struct err err;

	assert_int_equal(workspaces_local(workspaces, "bob", &bob, &err), 0);
	assert_non_null(strstr(workspace_dir(bob), "/users/bob"));
	assert_non_null(strstr(dir_of_all(), "/users/@all"));
}

CASE(no_user_lies_inside_that_of_all)
{
	struct workspace *bob;
	struct err err;

	assert_string_equal(dir_of_all(), config.workdir);
	assert_int_equal(workspaces_local(workspaces, "bob", &bob, &err), -1);
	assert_non_null(strstr(err.msg, "leave VIVARIUM_USER out"));
	assert_int_equal(workspaces_count(workspaces).workspaces, 1);
}

CASE(a_directory_users_of_ones_own_changes_nothing)
{
	char path[PATH_MAX + 16];

	snprintf(path, sizeof path, "%s/users", config.workdir);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof path, "%s/users/bob", config.workdir);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_string_equal(dir_of_all(), config.workdir);
}

CASE(links_in_its_place_are_not_followed)
{
	char path[PATH_MAX + 16];
	struct workspace *bob;
	struct err err;

	snprintf(path, sizeof path, "%s/users", config.workdir);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof path, "%s/users/@all", config.workdir);
	assert_int_equal(symlink("/tmp", path), 0);
	assert_string_equal(dir_of_all(), config.workdir);
	start_again();
	assert_int_equal(workspaces_local(workspaces, "bob", &bob, &err), -1);
	assert_int_equal(unlink(path), 0);
}

CASE(bad_names_are_refused_in_words)
{
	static const char *const bad[] = {"",         ".",    "..",  ".a",
					  "a/b",      "../a", "a b", "a\x7f",
					  "\xc3\xa9", "a\\b", "a:b"};
	char longest[80];
	struct err err;

	strcpy(config.user_header, "X-User-ID");
	for (size_t i = 0; i < COUNT_OF(bad); i++)
		check_refused(ONE(bad[i]), &none, "1 to 64 of");
	memset(longest, 'a', 65);
	longest[65] = '\0';
	check_refused(ONE(longest), &none, "1 to 64 of");
	check_refused(ONE("{{LIBRECHAT_USER_ID}}"), &none, "placeholder");
	check_refused(&none, &none, "has no header X-User-ID");
	check_refused(&twice, &none, "came twice");
	longest[64] = '\0';
	assert_int_equal(users_check_name(longest, &err), 0);
	assert_int_equal(users_check_name("a.b_c-D9", &err), 0);
	check_refused(ONE("default"), &none, "workspace of those without a name");
}

CASE(a_branch_is_found_where_its_files_are)
{
	char dir[PATH_MAX + 64];
	struct workspace *whole, *branch, *again;
	struct err err;

	assert_int_equal(
	    workspaces_principal(workspaces, "", &none, &none, &whole, &err), 0);
	assert_int_equal(workspaces_branch(workspaces, whole, "", &branch, &err), 0);
	assert_ptr_equal(branch, whole);
	assert_int_equal(workspaces_branch(workspaces, whole, "b", &branch, &err), -1);
	assert_non_null(strstr(err.msg, "no branch 'b'; branches: none"));
	assert_int_equal(workspaces_branch(workspaces, whole, "../b", &branch, &err),
			 -1);
	assert_non_null(strstr(err.msg, "1 to 32 of"));
	snprintf(dir, sizeof dir, "%s/.branches", config.workdir);
	assert_int_equal(mkdir(dir, 0700), 0);
	snprintf(dir, sizeof dir, "%s/.branches/default@b", config.workdir);
	assert_int_equal(mkdir(dir, 0700), 0);
	assert_int_equal(workspaces_branch(workspaces, whole, "c", &branch, &err), -1);
	assert_non_null(strstr(err.msg, "branches: b"));
	assert_false(workspaces_has(workspaces, "default@b"));
	assert_int_equal(workspaces_branch(workspaces, whole, "b", &branch, &err), 0);
	assert_string_equal(workspace_name(branch), "default@b");
	assert_string_equal(workspace_dir(branch), dir);
	assert_true(workspaces_has(workspaces, "default@b"));
	assert_int_equal(workspaces_branch(workspaces, branch, "b", &again, &err), 0);
	assert_ptr_equal(again, branch);
	rmdir(dir);
	*strrchr(dir, '/') = '\0';
	rmdir(dir);
}

CASE(names_of_branches)
{
	static const char *const bad[] = {"",    ".",   ".a",      "a/b",
					  "a@b", "a b", "\xc3\xa9"};
	char longest[] = "0123456789abcdef0123456789abcdef-";

	for (size_t i = 0; i < COUNT_OF(bad); i++)
		assert_false(branch_name_is_good(bad[i]));
	assert_false(branch_name_is_good(longest));
	longest[32] = '\0';
	assert_true(branch_name_is_good(longest));
	assert_true(branch_name_is_good("a.b_c-D9"));
}

CASE(the_secret_is_needed_where_there_is_one)
{
	strcpy(config.user_header, "X-User-ID");
	strcpy(config.proxy_secret, "s3cret");
	check_refused(ONE("bob"), &none, "X-Vivarium-Proxy-Secret is missing");
	check_refused(ONE("bob"), ONE("s3cre"), "is wrong");
	check_refused(ONE("bob"), ONE("s3cret "), "is wrong");
	check_refused(ONE("bob"), &twice, "is wrong");

	struct workspace *out;
	struct err err;
	assert_int_equal(
	    workspaces_principal(workspaces, "", ONE("bob"), ONE("s3cret"), &out, &err),
	    0);
}

CASE(the_name_of_a_token_wins_over_the_header)
{
	struct workspace *a, *b;
	struct err err;

	strcpy(config.user_header, "X-User-ID");
	strcpy(config.proxy_secret, "s3cret");
	assert_int_equal(
	    workspaces_principal(workspaces, "bob", ONE("Bob"), &none, &a, &err), 0);
	assert_non_null(strstr(workspace_dir(a), "/users/bob"));
	config.user_header[0] = '\0';
	assert_int_equal(
	    workspaces_principal(workspaces, "bob", &none, &none, &b, &err), 0);
	assert_ptr_equal(a, b);
}

#define EACH(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
RUN(EACH(without_a_header_configured_all_share_the_default),
    EACH(each_user_has_one_and_case_counts),
    EACH(where_users_may_come_in_that_of_all_lies_beside_theirs),
    EACH(it_lies_there_once_a_user_was_named), EACH(no_user_lies_inside_that_of_all),
    EACH(a_directory_users_of_ones_own_changes_nothing),
    EACH(links_in_its_place_are_not_followed), EACH(bad_names_are_refused_in_words),
    EACH(a_branch_is_found_where_its_files_are), EACH(names_of_branches),
    EACH(the_secret_is_needed_where_there_is_one),
    EACH(the_name_of_a_token_wins_over_the_header))

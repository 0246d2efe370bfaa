// SPDX-License-Identifier: MIT
#include "kernelmgr/workspaces.h"

#include <sys/stat.h>
#include <unistd.h>

#include "kernelmgr/branches.h"
#include "testing.h"
#include "wire/mem.h"

static struct config config;
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
	if (!mkdtemp(config.workdir))
		return -1;
	wide = (struct workspace_place){.config = &config, .kernels.walls = &walls};
	/* Workspaces are only opened here, so a loop is never needed ... */
	struct err err;
	if (loop_create(&wide.kernels.loop, 4096, &err) < 0) /* ... but for timers */
		return -1;
	workspaces = workspaces_create(&wide);
	return 0;
}

static int tear_down(void **state)
{
	char users[PATH_MAX + 16], bob[PATH_MAX + 32];

	(void)state;
	workspaces_destroy(&workspaces);
	loop_destroy(&wide.kernels.loop);
	snprintf(users, sizeof users, "%s/users", config.workdir);
	snprintf(bob, sizeof bob, "%s/bob", users);
	rmdir(bob);
	snprintf(bob, sizeof bob, "%s/Bob", users);
	rmdir(bob);
	rmdir(users);
	return rmdir(config.workdir);
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

CASE(bad_names_are_refused_in_words)
{
	static const char *const bad[] = {"",         ".",    "..",  ".a",
					  "a/b",      "../a", "a b", "a\x7f",
					  "\xc3\xa9", "a\\b", "a:b"};
	char longest[80];

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
	assert_true(workspace_name_is_good(longest));
	assert_true(workspace_name_is_good("a.b_c-D9"));
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
    EACH(each_user_has_one_and_case_counts), EACH(bad_names_are_refused_in_words),
    EACH(a_branch_is_found_where_its_files_are), EACH(names_of_branches),
    EACH(the_secret_is_needed_where_there_is_one),
    EACH(the_name_of_a_token_wins_over_the_header))

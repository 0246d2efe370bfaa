// SPDX-License-Identifier: MIT
#include "kernelmgr/state.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testing.h"

static char place[] = "/tmp/state-test-XXXXXX";

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(place) || chdir(place) < 0 || mkdir("work", 0700) < 0)
		return -1;
	return setenv("XDG_STATE_HOME", place, 1) | setenv("XDG_RUNTIME_DIR", place, 1);
}

static int tear_down(void **state)
{
	(void)state;
	pid_t pid = fork();

	if (pid == 0) {
		execlp("rm", "rm", "-rf", place, NULL);
		_exit(127);
	}
	return chdir("/") < 0 || waitpid(pid, NULL, 0) != pid;
}

CASE(the_default_depends_on_the_work_directory)
{
	char a[PATH_MAX], b[PATH_MAX], c[PATH_MAX];
	struct err err;

	assert_int_equal(mkdir("other", 0700), 0);
	assert_int_equal(state_open(a, "", "work", &err), 0);
	assert_int_equal(state_open(b, "", "./work/", &err), 0);
	assert_int_equal(state_open(c, "", "other", &err), 0);
	assert_string_equal(a, b);
	assert_string_not_equal(a, c);
}

CASE(state_inside_the_work_directory_is_refused)
{
	char path[PATH_MAX];
	struct err err;

	assert_int_equal(state_open(path, "work/state", "work", &err), -1);
	assert_int_equal(err.kind, ERR_CONFIG);
	assert_int_equal(state_open(path, "work", "work", &err), -1);
	assert_int_equal(state_open(path, "work2", "work", &err), 0);
}

CASE(a_secret_is_made_once_and_private)
{
	unsigned char a[32], b[32], c[32];
	struct stat st;
	struct err err;

	assert_int_equal(state_secret(".", "key", a, sizeof a, &err), 0);
	assert_int_equal(state_secret(".", "key", b, sizeof b, &err), 0);
	assert_int_equal(state_secret(".", "key2", c, sizeof c, &err), 0);
	assert_memory_equal(a, b, sizeof a);
	assert_memory_not_equal(a, c, sizeof a);
	assert_int_equal(stat("key", &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

CASE(a_stale_runtime_directory_is_removed_and_a_live_one_is_not)
{
	char live[PATH_MAX], stale[PATH_MAX], mine[PATH_MAX];
	int live_lock, stale_lock, my_lock;
	struct err err;

	assert_int_equal(state_runtime_open(live, &live_lock, &err), 0);
	assert_int_equal(state_runtime_open(stale, &stale_lock, &err), 0);
	close(stale_lock); /* as a killed daemon leaves it */
	assert_int_equal(state_runtime_open(mine, &my_lock, &err), 0);
	assert_int_equal(access(live, F_OK), 0);
	assert_int_equal(access(stale, F_OK), -1);
	state_runtime_close(mine, &my_lock);
	assert_int_equal(access(mine, F_OK), -1);
	state_runtime_close(live, &live_lock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_default_depends_on_the_work_directory),
	    cmocka_unit_test(state_inside_the_work_directory_is_refused),
	    cmocka_unit_test(a_secret_is_made_once_and_private),
	    cmocka_unit_test(
		a_stale_runtime_directory_is_removed_and_a_live_one_is_not),
	};

	return cmocka_run_group_tests_name(__FILE__, tests, set_up, tear_down);
}

// SPDX-License-Identifier: MIT
#include "kernelmgr/launch.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testing.h"
#include "wire/mem.h"

struct probe {
	struct loop *loop;
	int status, ended;
};

static void on_ended(int status, void *arg)
{
	struct probe *p = arg;

	p->status = status;
	p->ended++;
	loop_stop(p->loop);
}

static void too_late(void *arg)
{
	loop_stop(((struct probe *)arg)->loop);
}

static void run(struct probe *p)
{
	struct loop_timer timer = {0};

	loop_timer_start(p->loop, &timer, 10 * 1000000, too_late, p);
	loop_run(p->loop);
	loop_timer_stop(&timer);
}

static struct child *start(struct probe *p, const char *const argv[], int out)
{
	struct child *child;
	struct err err;
	owned(close_fd) int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	const struct launch what = {
	    .argv = argv,
	    .env = (const char *const[]){"A=1", NULL},
	    .cwd = "/",
	    .fds = (const int[]){null, out, out},
	    .fd_count = 3,
	};

	assert_int_equal(loop_create(&p->loop, 4096, &err), 0);
	assert_int_equal(launch_child(&child, p->loop, &what, on_ended, p, &err), 0);
	return child;
}

CASE(the_end_is_told_with_its_status)
{
	struct probe p = {0};

	start(&p, (const char *const[]){"/bin/sh", "-c", "exit 7", NULL}, 2);
	run(&p);
	assert_int_equal(p.ended, 1);
	assert_true(WIFEXITED(p.status));
	assert_int_equal(WEXITSTATUS(p.status), 7);
	loop_destroy(&p.loop);
}

CASE(a_killed_child_is_told_by_its_signal)
{
	struct probe p = {0};
	struct child *child =
	    start(&p, (const char *const[]){"/bin/sleep", "100", NULL}, 2);

	child_kill(child);
	run(&p);
	assert_true(WIFSIGNALED(p.status));
	assert_int_equal(WTERMSIG(p.status), SIGKILL);
	loop_destroy(&p.loop);
}

CASE(a_child_has_only_what_it_was_given)
{
	struct probe p = {0};
	owned(close_fd) int out = memfd_create("out", 0); /* inheritable on purpose */
	owned(close_fd) int stray = open("/dev/zero", O_RDONLY);
	char text[256] = "";

	assert_true(stray >= 0);
	start(&p,
	      (const char *const[]){"/bin/sh", "-c",
				    "echo $A $PWD $(ls /proc/self/fd | wc -l) $HOME",
				    NULL},
	      out);
	run(&p);
	assert_true(pread(out, text, sizeof text - 1, 0) > 0);
	/* 0, 1, 2 and the one that ls reads the directory with. */
	assert_string_equal(text, "1 / 4\n");
	loop_destroy(&p.loop);
}

CASE(what_cannot_be_run_is_named)
{
	struct probe p = {0};
	struct child *child;
	struct err err;
	const struct launch what = {
	    .argv = (const char *const[]){"/nonexistent", NULL},
	    .env = (const char *const[]){NULL},
	};

	assert_int_equal(loop_create(&p.loop, 4096, &err), 0);
	assert_int_equal(launch_child(&child, p.loop, &what, on_ended, &p, &err), -1);
	assert_string_equal(err.msg, "run /nonexistent: No such file or directory");
	loop_destroy(&p.loop);
}

CASE(a_forgotten_child_is_reaped_in_silence)
{
	struct probe p = {0};
	struct loop_timer timer = {0};
	struct child *child = start(&p, (const char *const[]){"/bin/true", NULL}, 2);
	pid_t pid = child_pid(child);

	child_forget(&child);
	assert_null(child);
	loop_timer_start(p.loop, &timer, 500000, too_late, &p);
	loop_run(p.loop);
	assert_int_equal(p.ended, 0);
	assert_int_equal(waitpid(pid, NULL, WNOHANG), -1);
	loop_destroy(&p.loop);
}

CASE(a_kernels_environment_is_built_from_scratch)
{
	char *ours[] = {(char *)(uintptr_t) "HOME=/h",
			(char *)(uintptr_t) "LC_ALL=C",
			(char *)(uintptr_t) "VIVARIUM_TOKEN=secret",
			(char *)(uintptr_t) "AWS_SECRET=x",
			(char *)(uintptr_t) "HOMER=x",
			(char *)(uintptr_t) "LC_=x",
			NULL};
	char **env = launch_env("/opt/v/bin/python", ours);
	char all[1024] = "";

	for (int i = 0; env[i]; i++)
		snprintf(all + strlen(all), sizeof all - strlen(all), "%s;", env[i]);
	assert_non_null(strstr(all, "HOME=/h;LC_ALL=C;PATH=/opt/v/bin:"));
	assert_null(strstr(all, "secret"));
	assert_null(strstr(all, "=x"));
	launch_env_destroy(&env);
	assert_null(env);
}

RUN(cmocka_unit_test(the_end_is_told_with_its_status),
    cmocka_unit_test(a_killed_child_is_told_by_its_signal),
    cmocka_unit_test(a_child_has_only_what_it_was_given),
    cmocka_unit_test(what_cannot_be_run_is_named),
    cmocka_unit_test(a_forgotten_child_is_reaped_in_silence),
    cmocka_unit_test(a_kernels_environment_is_built_from_scratch))

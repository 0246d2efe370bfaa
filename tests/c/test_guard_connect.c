// SPDX-License-Identifier: MIT
/* What the process that connects for a kernel lets through, with the Landlock of this
 * machine and of older ones. */
#include "kernelmgr/guard_connect.c"

#include <netinet/in.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "kernelmgr/landlock.c" /* for its newest_abi */

#include "kernelmgr/sweep.h"

#include "testing.h"

static char base[] = "/tmp/guard-XXXXXX";
static struct guard guard;
static int listeners[2];

static int listen_at(const char *path)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
	if (bind(fd, (struct sockaddr *)&at, sizeof at) < 0 || listen(fd, 50) < 0)
		return -1;
	return fd;
}

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(base) || chdir(base) < 0 || mkdir("own", 0700) < 0 ||
	    mkdir("own-not", 0700) < 0 || symlink("../own-not/s", "own/out") < 0 ||
	    symlink("own/s", "in") < 0 || symlink("loop", "loop") < 0)
		return -1;
	listeners[0] = listen_at("own/s");
	listeners[1] = listen_at("own-not/s");
	guard = (struct guard){.listener = -1, .ports = -1, .own_count = 1};
	guard.own[0] = open("own", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return guard.own[0] < 0 || listeners[0] < 0 || listeners[1] < 0;
}

static int clean_up(void **state)
{
	(void)state;
	close(listeners[0]);
	close(listeners[1]);
	close(guard.own[0]);
	sweep_tree(base);
	return 0;
}

static int reached(const void *text, size_t size, const char *cwd)
{
	struct guard_call call = {.socket = socket(AF_UNIX, SOCK_STREAM, 0),
				  .cwd = open(cwd, O_PATH | O_DIRECTORY),
				  .caller = getpid(),
				  .size = (socklen_t)(PATH_AT + size)};

	call.to.any.sa_family = AF_UNIX;
	memcpy((char *)&call.to + PATH_AT, text, size);
	int why = guard_connect(&guard, &call);
	close(call.socket);
	close(call.cwd);
	return why;
}

static int reached_path(const char *path)
{
	return reached(path, strlen(path) + 1, ".");
}

CASE(own_sockets_are_reached_by_every_path)
{
	char whole[sizeof base + 16], by_self[64];

	snprintf(whole, sizeof whole, "%s/own/s", base);
	snprintf(by_self, sizeof by_self, "/proc/self/fd/%d/s", guard.own[0]);
	assert_int_equal(reached_path(whole), 0);
	assert_int_equal(reached_path(by_self), 0);
	assert_int_equal(reached_path("/proc/thread-self/cwd/own/s"), 0);
	assert_int_equal(reached_path("own/s"), 0);
	assert_int_equal(reached_path("in"), 0);
	assert_int_equal(reached_path("own-not/../own/./s"), 0);
	assert_int_equal(reached("s", 2, "own"), 0);
	assert_int_equal(reached("own/s", 5, "."), 0); /* no NUL behind it */
}

CASE(others_are_not)
{
	assert_int_equal(reached_path("own-not/s"), EACCES);
	assert_int_equal(reached_path("own/out"), EACCES);
	assert_int_equal(reached_path("own/../own-not/s"), EACCES);
	assert_int_equal(reached("s", 2, "own-not"), EACCES);
	assert_int_equal(reached_path("/"), EACCES);
	assert_int_equal(reached_path("/dev/null"), EACCES);
}

CASE(the_directory_is_known_by_itself_and_not_by_its_name)
{
	assert_int_equal(rename("own", "moved"), 0);
	assert_int_equal(rename("own-not", "own"), 0);
	assert_int_equal(reached_path("own/s"), EACCES);
	assert_int_equal(reached_path("moved/s"), 0);
	assert_int_equal(rename("own", "own-not"), 0);
	assert_int_equal(rename("moved", "own"), 0);
}

/* In another mount namespace another directory has the name of the kernel's own. */
static int with_another_view(const char *hidden)
{
	int ready[2], over[2];
	char path[64], byte = 0;

	if (pipe(ready) < 0 || pipe(over) < 0)
		return -1;
	pid_t pid = fork();
	if (pid == 0) {
		close(over[1]);
		byte = unshare(CLONE_NEWNS | (geteuid() ? CLONE_NEWUSER : 0)) == 0 &&
		       mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
		       mount(hidden, "own", NULL, MS_BIND, NULL) == 0;
		_exit(write(ready[1], &byte, 1) == 1 && read(over[0], &byte, 1));
	}
	close(ready[1]);
	close(over[0]);
	bool made = read(ready[0], &byte, 1) == 1 && byte;
	snprintf(path, sizeof path, "/proc/%d/cwd/own/s", (int)pid);
	int why = made ? reached_path(path) : -1;
	close(over[1]);
	close(ready[0]);
	waitpid(pid, NULL, 0);
	return why;
}

CASE(another_view_of_the_machine_helps_nobody)
{
	int why = with_another_view("own-not");

	if (why < 0)
		skip(); /* no such view may be made here */
	assert_int_equal(why, EACCES);
}

CASE(errors_are_those_of_connect)
{
	char longest[109];
	struct guard_call call = {.socket = guard.own[0]};

	memset(longest, 'x', sizeof longest);
	assert_int_equal(reached_path("nowhere"), ENOENT);
	assert_int_equal(reached_path("own/s/below"), ENOTDIR);
	assert_int_equal(reached_path("loop"), ELOOP);
	assert_int_equal(reached(longest, sizeof longest - 1, "."), ENOENT);
	assert_int_equal(reached(longest, sizeof longest, "."), EINVAL);
	assert_int_equal(reached("", 0, "."), EINVAL);
	close(open("own/file", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	assert_int_equal(reached_path("own/file"), ECONNREFUSED);
	call.size = sizeof call.to.unix_path;
	assert_int_equal(guard_connect(&guard, &call), EBADF); /* O_PATH */
	call.socket = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(guard_connect(&guard, &call), ENOTSOCK);
	close(call.socket);
}

/* In a child, which a rule of Landlock is put upon. */
static int in_child(int (*check)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(check());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int bind_name(char name[32], size_t *size)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	socklen_t len = sizeof at;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	/* Without a name, Linux chooses one. */
	if (bind(fd, (struct sockaddr *)&at, sizeof at.sun_family) < 0 ||
	    listen(fd, 5) < 0 || getsockname(fd, (struct sockaddr *)&at, &len) < 0)
		return -1;
	*size = len - PATH_AT;
	memcpy(name, at.sun_path, *size);
	return fd;
}

static char foreign[32];
static size_t foreign_size;

static int names_are_kept(void)
{
	char own[32];
	size_t size;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || landlock_keep_names() < 0)
		return 1;
	if (bind_name(own, &size) < 0)
		return 2;
	bool known_whose = landlock_abi() >= LANDLOCK_ABI_NAMES;
	if (reached(foreign, foreign_size, ".") != EPERM)
		return 3;
	return reached(own, size, ".") == (known_whose ? 0 : EPERM) ? 0 : 4;
}

CASE(abstract_names_are_its_own_or_refused)
{
	int fd = bind_name(foreign, &foreign_size);

	assert_true(fd >= 0);
	assert_int_equal(in_child(names_are_kept), 0);
	newest_abi = 5;
	assert_int_equal(in_child(names_are_kept), 0);
	newest_abi = ABI_KNOWN;
	close(fd);
}

static struct sockaddr_in port;

static int reached_port(bool allowed)
{
	struct guard_call call = {.socket = socket(AF_INET, SOCK_STREAM, 0),
				  .size = sizeof port};

	memcpy(&call.to, &port, sizeof port);
	guard.ports = landlock_begin_ports();
	if (guard.ports < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    (allowed && landlock_allow_port(guard.ports, ntohs(port.sin_port)) < 0))
		return -1;
	return guard_connect(&guard, &call);
}

static int reached_allowed(void)
{
	return reached_port(true);
}

static int reached_other_port(void)
{
	return reached_port(false);
}

CASE(ports_are_those_of_the_plan)
{
	socklen_t size = sizeof port;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (landlock_abi() < LANDLOCK_ABI_PORTS)
		skip(); /* this Linux has no rules for ports */
	port = (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	assert_int_equal(bind(fd, (struct sockaddr *)&port, sizeof port), 0);
	assert_int_equal(listen(fd, 5), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&port, &size), 0);
	assert_int_equal(in_child(reached_allowed), 0);
	assert_int_equal(in_child(reached_other_port), EACCES);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(own_sockets_are_reached_by_every_path),
	    cmocka_unit_test(others_are_not),
	    cmocka_unit_test(the_directory_is_known_by_itself_and_not_by_its_name),
	    cmocka_unit_test(another_view_of_the_machine_helps_nobody),
	    cmocka_unit_test(errors_are_those_of_connect),
	    cmocka_unit_test(abstract_names_are_its_own_or_refused),
	    cmocka_unit_test(ports_are_those_of_the_plan),
	};

	return cmocka_run_group_tests_name(__FILE__, tests, set_up, clean_up);
}

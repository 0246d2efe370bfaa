// SPDX-License-Identifier: MIT
/* Landlock as an older Linux would have it: the rules of each ABI up to this machine's.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernelmgr/landlock.c" /* for its newest_abi */

#include "kernelmgr/sweep.h"

#include "testing.h"

static char base[] = "/tmp/landlock-XXXXXX";

static const char *in_base(const char *name)
{
	static char path[4][256];
	static unsigned turn;

	char *out = path[turn++ % 4];
	snprintf(out, sizeof path[0], "%s/%s", base, name);
	return out;
}

static int enter(bool connect)
{
	int rules = landlock_begin(connect);

	return rules < 0 ||
	       landlock_allow(rules, in_base("own"), LANDLOCK_CHANGE) < 0 ||
	       landlock_allow(rules, "/usr", LANDLOCK_RUN) < 0 ||
	       prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || landlock_enter(rules) < 0;
}

static bool fails(int rc, int why)
{
	return rc < 0 && errno == why;
}

static int connect_somewhere(void)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons(9),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	return connect(fd, (struct sockaddr *)&to, sizeof to);
}

/* What must hold in a child behind the rules of this ABI; the number of what does not.
 */
static int behind(int abi, pid_t parent)
{
	newest_abi = abi;
	if (enter(true))
		return 1;
	if (open(in_base("own/new"), O_CREAT | O_WRONLY, 0600) < 0)
		return 2;
	if (!fails(open(in_base("foreign/secret"), O_RDONLY), EACCES))
		return 3;
	if (!fails(open(in_base("foreign/made"), O_CREAT | O_WRONLY, 0600), EACCES))
		return 4;
	if (rename(in_base("own/new"), in_base("foreign/new")) == 0)
		return 5;
	if (abi >= 3 && !fails(truncate(in_base("foreign/secret"), 0), EACCES))
		return 6;
	if (abi >= 4 && !fails(connect_somewhere(), EACCES))
		return 7;
	if (abi < 4 && !fails(connect_somewhere(), ECONNREFUSED))
		return 8;
	if (abi >= 6 && !fails(kill(parent, 0), EPERM))
		return 9;
	if (abi < 6 && kill(parent, 0) < 0)
		return 10;
	return 0;
}

CASE(keeps_what_each_abi_can)
{
	int best = landlock_abi();
	pid_t self = getpid();

	if (best == 0)
		skip();
	for (int abi = 1; abi <= best; abi++) {
		int status;
		pid_t pid = fork();

		if (pid == 0)
			_exit(behind(abi, self));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		print_message("ABI %d: %d\n", abi, WEXITSTATUS(status));
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
	}
}

static int make_files(void **state)
{
	(void)state;
	if (!mkdtemp(base) || mkdir(in_base("own"), 0700) < 0 ||
	    mkdir(in_base("foreign"), 0700) < 0)
		return -1;
	int fd = open(in_base("foreign/secret"), O_CREAT | O_WRONLY, 0600);
	return fd < 0 || write(fd, "x", 1) != 1 || close(fd) < 0;
}

static int remove_files(void **state)
{
	(void)state;
	sweep_tree(base);
	return 0;
}

RUN(cmocka_unit_test_setup_teardown(keeps_what_each_abi_can, make_files, remove_files))

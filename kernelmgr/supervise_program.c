// SPDX-License-Identifier: MIT
/*
 * vivarium-supervisor - the small process above one kernel.  Starts it, reaps
 * everything below it, tells the daemon how it ended, and kills every descendant
 * when the kernel ends or the daemon's end of the control socket closes, so that
 * nothing outlives the daemon, not even after SIGKILL.
 *
 * usage: vivarium-supervisor RUNTIME-DIR PROGRAM [ARGUMENT]...
 * Descriptors: 1 and 2 the kernel's start-up and crash output; 3 the control socket
 * (SOCK_SEQPACKET); 4 to 6 become the kernel's 3 to 5 (launch contract:
 * kernelmgr/launch.h).  Messages from the daemon: "interrupt", "kill"; to it:
 * "started PID", "failed WORDS", "end WAIT-STATUS USER-US SYSTEM-US MAXRSS-KB".
 * Linked statically: it is resident once per kernel.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernelmgr/sweep.h"

enum {
	CONTROL = 3,
	FIRST_PASSED = 4, /* ours; FIRST_PASSED - 1 in the kernel */
	PASSED = 3,
	GONE = 124, /* exit status when the daemon went away */
};

static void tell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void tell(const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	int len = vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (len >= (int)sizeof text)
		len = sizeof text - 1;
	send(CONTROL, text, (size_t)len, MSG_NOSIGNAL);
}

/* In the forked child.  Only the exec's failure comes back, through report. */
static void become_kernel(pid_t supervisor, int report, char *const argv[])
{
	sigset_t none;

	setsid(); /* its own group: that is what gets the interrupts */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != supervisor)
		_exit(GONE);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (int i = 0; i < PASSED; i++)
		dup2(FIRST_PASSED + i, FIRST_PASSED + i - 1); /* upwards: in order */
	close(FIRST_PASSED + PASSED - 1);
	execv(argv[0], argv);
	int why = errno;
	if (write(report, &why, sizeof why) < 0)
		_exit(126);
	_exit(127);
}

/* Returns the kernel's pid after its exec has worked, or -1 after telling why not. */
static pid_t start(char *const argv[])
{
	int report[2], why = 0;
	pid_t self = getpid();

	if (pipe2(report, O_CLOEXEC) < 0) {
		tell("failed make a pipe: %s", strerror(errno));
		return -1;
	}
	pid_t pid = fork();
	if (pid == 0)
		become_kernel(self, report[1], argv);
	close(report[1]);
	for (int i = 0; i < PASSED; i++)
		close(FIRST_PASSED + i);
	if (pid < 0) {
		tell("failed fork: %s", strerror(errno));
		return -1;
	}
	if (read(report[0], &why, sizeof why) > 0) {
		tell("failed run %.150s: %s", argv[0], strerror(why));
		return -1;
	}
	close(report[0]);
	tell("started %d", (int)pid);
	return pid;
}

/* What a killed process leaves behind becomes our child (we are the subreaper), so
 * rounds of "kill the children, reap them" reach every descendant. */
static void kill_all(void)
{
	while (waitpid(-1, NULL, WNOHANG) >= 0 || errno == EINTR) {
		sweep_children(NULL);
		usleep(1000);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
}

static void leave(const char *runtime_dir, int status)
{
	kill_all();
	sweep_tree(runtime_dir);
	_exit(status);
}

/* Reaps what has ended; returns true and tells the daemon if the kernel was among it.
 */
static bool reap(pid_t kernel)
{
	struct rusage use;
	int status;
	pid_t pid;

	while ((pid = wait4(-1, &status, WNOHANG, &use)) > 0) {
		if (pid != kernel)
			continue;
		tell("end %d %lld %lld %ld", status,
		     (long long)use.ru_utime.tv_sec * 1000000 + use.ru_utime.tv_usec,
		     (long long)use.ru_stime.tv_sec * 1000000 + use.ru_stime.tv_usec,
		     use.ru_maxrss);
		return true;
	}
	return false;
}

static void serve(pid_t kernel, int signals, const char *runtime_dir)
{
	struct pollfd fds[] = {{signals, POLLIN, 0}, {CONTROL, POLLIN, 0}};
	struct signalfd_siginfo info;
	char text[64];

	for (;;) {
		if (poll(fds, 2, -1) < 0)
			continue;
		if (fds[0].revents && read(signals, &info, sizeof info) > 0 &&
		    reap(kernel))
			leave(runtime_dir, 0);
		if (!fds[1].revents)
			continue;
		ssize_t len = recv(CONTROL, text, sizeof text - 1, MSG_DONTWAIT);
		if (len < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (len <= 0)
			leave(runtime_dir, GONE);
		text[len] = '\0';
		if (strcmp(text, "interrupt") == 0)
			kill(-kernel, SIGINT);
		else if (strcmp(text, "kill") == 0)
			kill(kernel, SIGKILL);
	}
}

int main(int argc, char **argv)
{
	sigset_t all;

	if (argc < 3)
		return 2;
	prctl(PR_SET_NAME, "viv-supervisor");
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	fcntl(CONTROL, F_SETFD, FD_CLOEXEC);
	sigfillset(&all); /* only SIGKILL and the control socket end it */
	sigprocmask(SIG_SETMASK, &all, NULL);
	int signals = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	pid_t kernel = signals < 0 ? -1 : start(argv + 2);
	if (kernel < 0)
		leave(argv[1], 1);
	serve(kernel, signals, argv[1]);
	return 0;
}

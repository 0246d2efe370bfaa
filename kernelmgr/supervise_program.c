// SPDX-License-Identifier: MIT
/*
 * vivarium-supervisor - the small process above one kernel.  Starts it behind its
 * walls, reaps everything below it, tells the daemon how it ended, and kills every
 * descendant when the kernel ends or the daemon's end of the control socket closes, so
 * that nothing outlives the daemon, not even after SIGKILL.
 *
 * usage: vivarium-supervisor RUNTIME-DIR PROGRAM [ARGUMENT]...
 * Descriptors: 1 and 2 the kernel's start-up and crash output; 3 the control socket
 * (SOCK_SEQPACKET); 4 to 6 become the kernel's 3 to 5 (launch contract:
 * kernelmgr/launch.h).  Messages from the daemon: first the plan of the walls (plan.h),
 * then "interrupt", "kill"; to it: "started", sent by the kernel's process so that its
 * credentials tell its pid, "failed WORDS", "end WAIT-STATUS USER-US SYSTEM-US
 * MAXRSS-KB".  Linked statically: it is resident once per kernel, in tier N twice:
 * there process 1 of the namespaces does all this, and the one outside waits to clean
 * up.
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
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernelmgr/forward.h"
#include "kernelmgr/guard.h"
#include "kernelmgr/supervise.h"
#include "kernelmgr/sweep.h"

enum {
	FIRST_PASSED = 4, /* ours; FIRST_PASSED - 1 in the kernel */
	PASSED = 3,
	FAILED = 125, /* exit status after fail() */
	GONE = 124,   /* exit status when the daemon went away */
};

static void tell_list(const char *fmt, va_list ap, const char *why)
    __attribute__((format(printf, 1, 0)));

/* why: NULL, or why it failed. */
static void tell_list(const char *fmt, va_list ap, const char *why)
{
	char text[256] = "";
	int at = why ? snprintf(text, sizeof text, "failed ") : 0;
	int room = (int)sizeof text - at - (why ? 80 : 0);
	int len = vsnprintf(text + at, (size_t)room, fmt, ap);

	at += len < 0 ? 0 : len >= room ? room - 1 : len;
	if (why)
		at += snprintf(text + at, sizeof text - (size_t)at, ": %.70s", why);
	send(CONTROL, text, (size_t)at, MSG_NOSIGNAL);
}

void tell(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	tell_list(fmt, ap, NULL);
	va_end(ap);
}

void fail(const char *fmt, ...)
{
	const char *why = strerror(errno);
	va_list ap;

	va_start(ap, fmt);
	tell_list(fmt, ap, why);
	va_end(ap);
	_exit(FAILED);
}

/* ---- the kernel ---- */

static _Noreturn void become_kernel(const struct plan *plan, struct guard *guard,
				    pid_t supervisor, char *const argv[])
{
	sigset_t none;

	setsid();              /* its own group: that is what gets the interrupts */
	if (plan->tier == 'U') /* the daemon is in its group */
		umask(007);
	if (plan->tier != 'N') {
		confine_group(plan);
		guard_pass(guard, confine(plan));
		if (plan->cwd && chdir(plan->cwd) < 0)
			fail("enter %s", plan->cwd);
	}
	confine_limits(plan);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* a change of ids clears it */
	if (getppid() != supervisor)
		_exit(GONE);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	tell("started");
	fcntl(CONTROL, F_DUPFD_CLOEXEC, FIRST_PASSED + PASSED);
	for (int i = 0; i < PASSED; i++)
		dup2(FIRST_PASSED + i, FIRST_PASSED + i - 1); /* upwards: in order */
	close(FIRST_PASSED + PASSED - 1);
	execv(argv[0], argv);
	dup2(FIRST_PASSED + PASSED, CONTROL);
	fail("run %.150s", argv[0]);
}

/* Returns the kernel's pid. */
static pid_t start(const struct plan *plan, struct guard *guard, char *const argv[])
{
	pid_t self = getpid();
	pid_t pid = fork();

	if (pid == 0)
		become_kernel(plan, guard, self, argv);
	if (pid < 0)
		fail("fork");
	guard_receive(guard);
	for (int i = 0; i < PASSED; i++)
		close(FIRST_PASSED + i);
	return pid;
}

void act_as_kernel(const struct plan *plan, bool on)
{
	if (plan->tier == 'U' &&
	    setresuid((uid_t)-1, on ? plan->uid : getuid(), (uid_t)-1) < 0)
		fail("change the user id");
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

/* The daemon removes the control groups of its kernels, when it has read what they
 * know; but not when it is gone. */
static bool daemon_is_gone(void)
{
	struct pollfd control = {CONTROL, 0, 0};

	return poll(&control, 1, 0) == 1;
}

/* runtime_dir: NULL for process 1, whose end ends the others too. */
static _Noreturn void leave(const struct plan *plan, const char *runtime_dir,
			    int status)
{
	if (runtime_dir) {
		act_as_kernel(plan, true);
		kill_all();
		act_as_kernel(plan, false);
		sweep_tree(runtime_dir);
		if (daemon_is_gone())
			confine_remove_groups(plan);
	}
	_exit(status);
}

/* Reaps what has ended; returns true and tells the daemon if the kernel was among it.
 */
static bool reap(pid_t kernel, struct guard *guard)
{
	struct rusage use;
	int status;
	pid_t pid;

	while ((pid = wait4(-1, &status, WNOHANG, &use)) > 0) {
		if (pid != kernel) {
			guard_ended(guard, pid, status);
			continue;
		}
		tell("end %d %lld %lld %ld", status,
		     (long long)use.ru_utime.tv_sec * 1000000 + use.ru_utime.tv_usec,
		     (long long)use.ru_stime.tv_sec * 1000000 + use.ru_stime.tv_usec,
		     use.ru_maxrss);
		return true;
	}
	return false;
}

/* Returns false if the daemon is gone. */
static bool obey(const struct plan *plan, pid_t kernel)
{
	char text[64];
	ssize_t len = recv(CONTROL, text, sizeof text - 1, MSG_DONTWAIT);

	if (len <= 0)
		return len < 0 && (errno == EAGAIN || errno == EINTR);
	text[len] = '\0';
	act_as_kernel(plan, true);
	if (strcmp(text, "interrupt") == 0)
		kill(-kernel, SIGINT);
	else if (strcmp(text, "kill") == 0)
		kill(kernel, SIGKILL);
	act_as_kernel(plan, false);
	return true;
}

static _Noreturn void serve(const struct plan *plan, struct guard *guard, pid_t kernel,
			    int signals, const char *runtime_dir)
{
	struct pollfd fds[] = {
	    {signals, POLLIN, 0}, {CONTROL, POLLIN, 0}, {-1, POLLIN, 0}};
	struct signalfd_siginfo info;

	for (;;) {
		fds[2].fd = guard_fd(guard);
		if (poll(fds, 3, guard_wait_ms(guard)) < 0)
			continue;
		if (fds[0].revents && read(signals, &info, sizeof info) > 0 &&
		    reap(kernel, guard))
			leave(plan, runtime_dir, 0);
		if (fds[1].revents && !obey(plan, kernel))
			leave(plan, runtime_dir, GONE);
		guard_take(guard, fds[2].revents);
		guard_look(guard);
	}
}

/* ---- tier N: process 1 ---- */

static _Noreturn void be_process_1(struct plan *plan, struct guard *guard, int signals,
				   char *const argv[])
{
	confine_begin(plan);
	forward_listen(plan);
	rootfs_gather(plan);
	rootfs_enter(plan);
	confine(plan);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_DUMPABLE, 0); /* nothing of us for the kernel to look into */
	if (plan->cwd && chdir(plan->cwd) < 0)
		fail("enter %s", plan->cwd);
	serve(plan, guard, start(plan, guard, argv), signals, NULL);
}

/* The end of process 1 is the end of all in its namespaces. */
static _Noreturn void wait_for_process_1(const struct plan *plan, pid_t pid,
					 const char *runtime_dir)
{
	struct rusage use;
	int status = 0;

	for (int i = 0; i < PASSED; i++)
		close(FIRST_PASSED + i);
	forward_start(plan);
	while (wait4(pid, &status, 0, &use) < 0 && errno == EINTR)
		;
	if (WIFSIGNALED(status)) /* it could not tell */
		tell("end %d 0 0 %ld", status, use.ru_maxrss);
	leave(plan, runtime_dir, WIFEXITED(status) ? WEXITSTATUS(status) : 0);
}

/* ---- ---- */

static void read_plan(struct plan *plan, char *text)
{
	ssize_t len = recv(CONTROL, text, PLAN_TEXT_MAX, 0);

	if (len <= 0)
		_exit(GONE);
	text[len] = '\0';
	const char *wrong = plan_read(plan, text);
	errno = EINVAL;
	if (wrong)
		fail("read the plan: '%s'", wrong);
}

int main(int argc, char **argv)
{
	static char text[PLAN_TEXT_MAX + 1];
	static struct plan plan;
	static struct guard guard;
	sigset_t all;

	if (argc < 3)
		return 2;
	prctl(PR_SET_NAME, "viv-supervisor");
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	fcntl(CONTROL, F_SETFD, FD_CLOEXEC);
	sigfillset(&all); /* only SIGKILL and the control socket end it */
	sigprocmask(SIG_SETMASK, &all, NULL);
	int signals = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signals < 0)
		fail("watch signals");
	read_plan(&plan, text);
	guard_begin(&guard, &plan);
	if (plan.tier != 'N')
		serve(&plan, &guard, start(&plan, &guard, argv + 2), signals, argv[1]);
	if (plan.become)
		rootfs_map_owners(&plan);
	plan.outer_uid = geteuid(); /* a new user namespace knows them no more */
	plan.outer_gid = getegid();
	forward_open(&plan);
	pid_t pid = (pid_t)confine_clone(&plan);
	if (pid == 0)
		be_process_1(&plan, &guard, signals, argv + 2);
	if (pid < 0)
		fail("make namespaces");
	wait_for_process_1(&plan, pid, argv[1]);
}

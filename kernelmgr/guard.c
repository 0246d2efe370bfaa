// SPDX-License-Identifier: MIT
#include "kernelmgr/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kernelmgr/landlock.h"
#include "kernelmgr/nolinks.h"
#include "kernelmgr/supervise.h"

enum {
	OF_THREAD = O_EXCL, /* PIDFD_THREAD; Linux 6.9 */
	STATUS_MAX = 8192,
};

static int64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void shut(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* ---- before there is a kernel ---- */

static void open_own(struct guard *self)
{
	for (size_t i = 0; i < self->plan->mount_count; i++) {
		const struct plan_mount *mount = &self->plan->mounts[i];

		if (mount->kind != PLAN_RW || self->own_count == GUARD_OWN_MAX)
			continue;
		int fd = nolinks_open(mount->from, O_PATH | O_DIRECTORY);
		if (fd >= 0)
			self->own[self->own_count++] = fd;
		else if (errno != ENOENT)
			fail("open %s", mount->from);
	}
}

static void open_ports(struct guard *self)
{
	if (!self->plan->no_internet)
		return;
	self->ports = landlock_begin_ports();
	if (self->ports < 0 && errno == ENOSYS)
		return; /* the filter lets nobody make such a socket */
	if (self->ports < 0 ||
	    (self->plan->port &&
	     landlock_allow_port(self->ports, (uint16_t)self->plan->port) < 0))
		fail("begin Landlock rules for ports");
}

unsigned long guard_flags(void)
{
	const unsigned long some = SECCOMP_FILTER_FLAG_NEW_LISTENER,
			    all = some | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;

	/* Flags are looked at before the program, which is nowhere. */
	syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, all, NULL);
	return errno == EFAULT ? all : some;
}

void guard_begin(struct guard *out, const struct plan *plan)
{
	*out = (struct guard){
	    .plan = plan, .listener = -1, .passing = {-1, -1}, .ports = -1};
	if (!plan->guard)
		return;
	out->look_ms = guard_flags() & SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
			   ? GUARD_LOOK_MS
			   : GUARD_LOOK_SOON_MS;
	open_own(out);
	open_ports(out);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || landlock_keep_names() < 0)
		fail("keep to own names");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, out->passing) < 0)
		fail("open a socket");
}

/* ---- the listener's way ---- */

union passed { /* room for one descriptor, aligned */
	char room[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

/* The kernel itself must never have it: with it calls could be let through. */
void guard_pass(struct guard *self, int listener)
{
	union passed passed = {0};
	char text = 0;
	struct iovec word = {&text, 1};
	struct msghdr message = {.msg_iov = &word,
				 .msg_iovlen = 1,
				 .msg_control = &passed,
				 .msg_controllen = sizeof passed};

	if (listener < 0)
		return;
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);
	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof listener);
	memcpy(CMSG_DATA(head), &listener, sizeof listener);
	if (sendmsg(self->passing[1], &message, MSG_NOSIGNAL) < 0)
		fail("hand over the guarded calls");
	close(listener);
}

void guard_receive(struct guard *self)
{
	union passed passed = {0};
	char text;
	struct iovec word = {&text, 1};
	struct msghdr message = {.msg_iov = &word,
				 .msg_iovlen = 1,
				 .msg_control = &passed,
				 .msg_controllen = sizeof passed};

	if (!self->plan->guard)
		return;
	shut(&self->passing[1]);
	if (recvmsg(self->passing[0], &message, MSG_CMSG_CLOEXEC) > 0 &&
	    CMSG_FIRSTHDR(&message))
		memcpy(&self->listener, CMSG_DATA(CMSG_FIRSTHDR(&message)),
		       sizeof self->listener);
	shut(&self->passing[0]);
}

/* ---- calls ---- */

/* A line of /proc/PID/status, as a number; of a thread, or of what it belongs to. */
static uint64_t status_line(const char *status, const char *name, int base)
{
	const char *at = strstr(status, name);

	return at ? strtoull(at + strlen(name), NULL, base) : 0;
}

static bool read_status(char out[STATUS_MAX], pid_t pid, const char *file)
{
	snprintf(out, STATUS_MAX, "/proc/%d/%s", (int)pid, file);
	int fd = open(out, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, out, STATUS_MAX - 1);

	shut(&fd);
	out[len > 0 ? len : 0] = '\0';
	return len > 0;
}

static int open_thread(pid_t thread)
{
	char status[STATUS_MAX];
	int fd = (int)syscall(SYS_pidfd_open, thread, OF_THREAD);

	if (fd >= 0 || errno != EINVAL || !read_status(status, thread, "status"))
		return fd;
	return (int)syscall(SYS_pidfd_open, (pid_t)status_line(status, "\nTgid:\t", 10),
			    0);
}

static int copy_call(struct guard_call *out, const struct seccomp_notif *notice)
{
	int fd = (int)notice->data.args[0], size = (int)notice->data.args[2];
	struct iovec ours = {&out->to, (size_t)size},
		     theirs = {(void *)(uintptr_t)notice->data.args[1], (size_t)size};
	char path[40];

	if (size < 0 || (size_t)size > sizeof out->to.room)
		return EINVAL;
	out->size = (socklen_t)size;
	int thread = open_thread(out->caller);
	out->socket = thread < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, thread, fd, 0);
	int why = errno;
	shut(&thread);
	if (out->socket < 0)
		return why;
	if (size && process_vm_readv(out->caller, &ours, 1, &theirs, 1, 0) != size)
		return EFAULT;
	snprintf(path, sizeof path, "/proc/%d/cwd", (int)out->caller);
	out->cwd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return out->cwd < 0 ? errno : 0;
}

static void answer(const struct guard *self, uint64_t id, int why)
{
	struct seccomp_notif_resp answer = {.id = id, .error = -why};

	/* It fails when nobody waits for it any more. */
	(void)ioctl(self->listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

static bool is_waited_for(const struct guard *self, uint64_t id)
{
	return ioctl(self->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

/* While its caller waits, its number is nobody else's: all was the caller's. */
static int copy_waiting(const struct guard *self, const struct seccomp_notif *notice,
			struct guard_call *out)
{
	int why = copy_call(out, notice);

	return why || is_waited_for(self, notice->id) ? why : ESRCH;
}

static _Noreturn void do_job(const struct guard *self,
			     const struct seccomp_notif *notice,
			     struct guard_call *call, pid_t supervisor)
{
	confine_rights(self->plan);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* a change of ids clears it */
	if (getppid() != supervisor)
		_exit(ESRCH);
	int why = call->socket < 0 ? copy_waiting(self, notice, call) : 0;
	_exit(why ? why : guard_connect(self, call));
}

static void begin(struct guard *self, const struct seccomp_notif *notice,
		  struct guard_call *call)
{
	pid_t supervisor = getpid(), pid = fork();

	if (pid == 0)
		do_job(self, notice, call, supervisor);
	if (pid < 0)
		answer(self, notice->id, errno);
	else
		self->jobs[self->job_count++] =
		    (struct guard_job){.pid = pid,
				       .caller = call->caller,
				       .id = notice->id,
				       .begun_us = now_us()};
}

void guard_take(struct guard *self, short events)
{
	struct seccomp_notif notice = {0};
	int64_t now = now_us();

	if (!(events & POLLIN) && events & POLLHUP)
		shut(&self->listener); /* nobody is left who could call */
	if (!(events & POLLIN) ||
	    ioctl(self->listener, SECCOMP_IOCTL_NOTIF_RECV, &notice) < 0)
		return; /* the caller is gone */
	self->due_us = (self->due_us > now ? self->due_us : now) + GUARD_STEP_US;
	struct guard_call call = {.socket = -1, .cwd = -1, .caller = (pid_t)notice.pid};
	/* Here, since where only those above may look into a process (Yama), this one
	 * may.  In tier U it may need to be the kernel's user for that. */
	int why = copy_waiting(self, &notice, &call);
	if (why && !(why == EPERM && self->plan->become))
		answer(self, notice.id, why);
	else
		begin(self, &notice, &call);
	shut(&call.socket);
	shut(&call.cwd);
}

/* ---- those that take their time ---- */

static bool has_signal(pid_t thread)
{
	char status[STATUS_MAX];

	return read_status(status, thread, "status") &&
	       (status_line(status, "\nSigPnd:\t", 16) |
		status_line(status, "\nShdPnd:\t", 16)) &
		   ~status_line(status, "\nSigBlk:\t", 16) &
		   status_line(status, "\nSigCgt:\t", 16);
}

/* Nothing but connect() lets it sleep like this.  Only then is its end the same as that
 * of a connect() which a signal interrupts: the connection is under way. */
static bool is_in_connect(pid_t pid)
{
	char status[STATUS_MAX];

	return read_status(status, pid, "status") && strstr(status, "\nState:\tS");
}

void guard_look(struct guard *self)
{
	int64_t now = now_us();

	if (now - self->looked_us < self->look_ms * 1000)
		return;
	self->looked_us = now;
	for (size_t i = 0; i < self->job_count; i++) {
		struct guard_job *job = &self->jobs[i];

		if (job->killed || now - job->begun_us < self->look_ms * 1000 ||
		    (is_waited_for(self, job->id) &&
		     !(has_signal(job->caller) && is_in_connect(job->pid))))
			continue;
		act_as_kernel(self->plan, true);
		job->killed = kill(job->pid, SIGKILL) == 0;
		act_as_kernel(self->plan, false);
	}
}

void guard_ended(struct guard *self, pid_t pid, int status)
{
	size_t i = 0;

	while (i < self->job_count && self->jobs[i].pid != pid)
		i++;
	if (i == self->job_count)
		return;
	struct guard_job job = self->jobs[i];
	self->jobs[i] = self->jobs[--self->job_count];
	answer(self, job.id,
	       WIFEXITED(status) ? WEXITSTATUS(status)
	       : job.killed      ? EINTR
				 : ECONNABORTED);
}

/* ---- what to wait for ---- */

static int64_t early_us(const struct guard *self)
{
	return self->due_us - now_us() - (int64_t)GUARD_BURST * GUARD_STEP_US;
}

int guard_fd(const struct guard *self)
{
	return self->job_count < GUARD_AT_ONCE && early_us(self) <= 0 ? self->listener
								      : -1;
}

int guard_wait_ms(const struct guard *self)
{
	int64_t early = self->listener < 0 ? 0 : early_us(self);
	int wait = self->job_count ? self->look_ms : -1;

	if (early > 0 && self->job_count < GUARD_AT_ONCE &&
	    (wait < 0 || early / 1000 < wait))
		wait = (int)(early / 1000) + 1;
	return wait;
}

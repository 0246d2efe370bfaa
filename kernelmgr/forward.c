// SPDX-License-Identifier: MIT
/* The way from a kernel's own network to the proxy.  Process 1 listens where the kernel
 * can connect to, and hands the socket out of the walls, to the process that can reach
 * the proxy: vivarium-forward, started here. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernelmgr/forward.h"
#include "kernelmgr/supervise.h"

enum { BACKLOG = 128, INSIDE = 0, OUTSIDE = 1 };

static int ends[2] = {-1, -1};

void forward_open(const struct plan *plan)
{
	if (plan->forwarder &&
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		fail("open a socket");
}

union passed {
	struct cmsghdr header;
	char room[CMSG_SPACE(sizeof(int))];
};

static void hand_out(int fd)
{
	char byte = 0;
	union passed passed = {0};
	struct iovec part = {&byte, 1};
	const struct msghdr message = {.msg_iov = &part,
				       .msg_iovlen = 1,
				       .msg_control = &passed,
				       .msg_controllen = sizeof passed};

	passed.header = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof fd),
					 .cmsg_level = SOL_SOCKET,
					 .cmsg_type = SCM_RIGHTS};
	memcpy(CMSG_DATA(&passed.header), &fd, sizeof fd);
	if (sendmsg(ends[INSIDE], &message, MSG_NOSIGNAL) < 0)
		fail("hand out a socket");
}

void forward_listen(const struct plan *plan)
{
	const struct sockaddr_in address = {.sin_family = AF_INET,
					    .sin_port = htons(FORWARD_PORT),
					    .sin_addr = {htonl(INADDR_LOOPBACK)}};

	if (!plan->forwarder)
		return;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof address) < 0 ||
	    listen(fd, BACKLOG) < 0)
		fail("listen for the proxy");
	hand_out(fd);
	close(fd);
	close(ends[INSIDE]);
	close(ends[OUTSIDE]);
}

/* -1: process 1 came to its end before. */
static int take_in(void)
{
	char byte;
	union passed passed;
	struct iovec part = {&byte, 1};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = &passed,
				 .msg_controllen = sizeof passed};
	struct cmsghdr *found;
	int fd = -1;

	close(ends[INSIDE]);
	if (recvmsg(ends[OUTSIDE], &message, MSG_CMSG_CLOEXEC) > 0 &&
	    (found = CMSG_FIRSTHDR(&message)) && found->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(found), sizeof fd);
	close(ends[OUTSIDE]);
	return fd;
}

/* Its descriptors: 3 the socket; nothing else of ours. */
static _Noreturn void become_forwarder(const struct plan *plan, int listener)
{
	char *const argv[] = {(char *)(uintptr_t)plan->forwarder,
			      (char *)(uintptr_t)plan->proxy_host,
			      (char *)(uintptr_t)plan->proxy_port, NULL};
	char *const env[] = {NULL};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t none;

	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
	if (dup2(listener, 3) < 0 || syscall(SYS_close_range, 4, ~0u, 0) < 0)
		_exit(1);
	fcntl(3, F_SETFD, 0);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	execve(argv[0], argv, env);
	_exit(1);
}

void forward_start(const struct plan *plan)
{
	int listener = plan->forwarder ? take_in() : -1;

	if (listener < 0)
		return;
	pid_t pid = fork();
	if (pid == 0)
		become_forwarder(plan, listener);
	if (pid < 0)
		fail("start the forwarder");
	close(listener);
}

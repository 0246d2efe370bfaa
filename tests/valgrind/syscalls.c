// SPDX-License-Identifier: MIT
/*
 * System calls that valgrind 3.19 does not know (pidfd_open, pidfd_send_signal,
 * openat2), made for a program under valgrind by one that is not.
 *
 * As a library to preload: takes the place of syscall() and runs the program HELPER.
 * With -DPROGRAM: that program, "NUMBER ARGUMENT...": makes the call on descriptor 4
 * and sends its result, and the descriptor if it is one, through socket 3.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SOCKET = 3, TARGET = 4, ARGUMENTS = 4 };

union room { /* for one descriptor */
	struct cmsghdr header;
	char bytes[CMSG_SPACE(sizeof(int))];
};

#ifdef PROGRAM

static void answer(long result, int fd)
{
	union room room = {.header = {.cmsg_len = CMSG_LEN(sizeof fd),
				      .cmsg_level = SOL_SOCKET,
				      .cmsg_type = SCM_RIGHTS}};
	struct iovec data = {&result, sizeof result};
	struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};

	if (fd >= 0) {
		message.msg_control = room.bytes;
		message.msg_controllen = sizeof room;
		memcpy(CMSG_DATA(&room.header), &fd, sizeof fd);
	}
	if (sendmsg(SOCKET, &message, 0) < 0)
		abort();
}

int main(int argc, char **argv)
{
	unsigned long long at[ARGUMENTS] = {0};
	long number = atol(argv[1]), result = -1;

	for (int i = 0; i < ARGUMENTS && i + 2 < argc; i++)
		at[i] = strtoull(argv[i + 2], NULL, 10);
	if (number == SYS_pidfd_open)
		result = syscall(number, at[0], at[1]);
	else if (number == SYS_pidfd_send_signal)
		result = syscall(number, TARGET, at[0], NULL, 0);
	else if (number == SYS_openat2)
		result = syscall(number, at[3] ? TARGET : AT_FDCWD, argv[argc - 1],
				 &(struct open_how){at[0], at[1], at[2]},
				 sizeof(struct open_how));
	answer(result < 0 ? -errno : result,
	       number == SYS_pidfd_send_signal ? -1 : (int)result);
	return 0;
}

#else

#include <dlfcn.h>

static long receive(int socket)
{
	union room room = {0};
	long result = -EIO;
	int fd;
	struct iovec data = {&result, sizeof result};
	struct msghdr message = {.msg_iov = &data,
				 .msg_iovlen = 1,
				 .msg_control = room.bytes,
				 .msg_controllen = sizeof room};

	if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) < 0 || result < 0) {
		errno = (int)-result;
		return -1;
	}
	if (!CMSG_FIRSTHDR(&message))
		return result;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
	return fd;
}

/* arguments: those of HELPER after the call's number. */
static long ask(long number, int target, char *const arguments[])
{
	char text[32];
	char *argv[] = {HELPER,       text,         arguments[0], arguments[1],
			arguments[2], arguments[3], arguments[4], NULL};
	int sockets[2];

	snprintf(text, sizeof text, "%ld", number);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
		return -1;
	pid_t child = fork();
	if (child == 0) {
		/* Above both numbers first: either may be taken. */
		int socket = fcntl(sockets[1], F_DUPFD_CLOEXEC, TARGET + 1);
		int other = fcntl(target, F_DUPFD_CLOEXEC, TARGET + 1);

		dup2(socket, SOCKET);
		if (other >= 0)
			dup2(other, TARGET);
		/* Without this library, or it would ask itself without end. */
		execve(HELPER, argv, (char *[]){NULL});
		_exit(127);
	}
	close(sockets[1]);
	long result = receive(sockets[0]);
	int why = errno;
	close(sockets[0]);
	waitpid(child, NULL, 0);
	errno = why;
	return result;
}

static long ask_with(long number, int target, const unsigned long long numbers[4],
		     char *path)
{
	char texts[ARGUMENTS][32];

	for (int i = 0; i < ARGUMENTS; i++)
		snprintf(texts[i], sizeof texts[i], "%llu", numbers[i]);
	return ask(number, target,
		   (char *[]){texts[0], texts[1], texts[2], texts[3], path});
}

long syscall(long number, ...)
{
	long (*real)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	long at[6];
	va_list ap;

	va_start(ap, number);
	for (int i = 0; i < 6; i++)
		at[i] = va_arg(ap, long);
	va_end(ap);
	if (number == SYS_pidfd_open)
		return ask_with(
		    number, -1,
		    (unsigned long long[4]){(unsigned)at[0], (unsigned)at[1]}, NULL);
	if (number == SYS_pidfd_send_signal)
		return ask_with(number, (int)at[0],
				(unsigned long long[4]){(unsigned)at[1]}, NULL);
	if (number == SYS_openat2) {
		const struct open_how *how = (const struct open_how *)at[2];

		return ask_with(number, (int)at[0],
				(unsigned long long[4]){how->flags, how->mode,
							how->resolve,
							(int)at[0] != AT_FDCWD},
				(char *)at[1]);
	}
	return real(number, at[0], at[1], at[2], at[3], at[4], at[5]);
}

#endif

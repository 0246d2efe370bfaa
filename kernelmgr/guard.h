/*
 * guard - connects for a kernel that sees the machine's own paths.  Before its ABI 9
 * Landlock lets code connect to every UNIX socket that its user may: the session bus,
 * an ssh agent, docker.  So a filter hands each connect() of the kernel, and of
 * whatever it starts, to the supervisor (seccomp_unotify(2)), which copies the address
 * and gets the socket, and forks a process that judges this copy and connects this
 * socket, whatever the caller changes meanwhile; its exit status is the errno that the
 * caller gets.  Never is a caller told to go on by itself.
 *
 *   UNIX, a path     what lies below a directory that the plan lets the kernel write,
 *                    after all links; EACCES for others
 *   UNIX, abstract   what the kernel or its own has bound; before Landlock's ABI 6, by
 *                    which it is known whose it is, EPERM
 *   all others       Landlock's rules for the network, as for the kernel itself
 *
 * Whom it connects to sees the pid of that process as its peer (SO_PEERCRED).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef KERNELMGR_GUARD_H
#define KERNELMGR_GUARD_H

#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "kernelmgr/plan.h"

enum {
	GUARD_AT_ONCE = 64,     /* connections under way; others wait their turn */
	GUARD_STEP_US = 500,    /* one in such a time: it costs the supervisor more than
				   the kernel, whose control group does not pay it */
	GUARD_BURST = 500,      /* may come early */
	GUARD_OWN_MAX = 16,     /* directories */
	GUARD_LOOK_SOON_MS = 5, /* where signals end a call unseen: before Linux 5.19 */
	GUARD_LOOK_MS = 50,     /* how often it is seen whether a caller still waits */
};

struct guard_job { /* a process that connects */
	pid_t pid, caller;
	uint64_t id;
	int64_t begun_us;
	bool killed;
};

struct guard {
	const struct plan *plan;
	int listener;           /* -1: nothing is guarded */
	int passing[2];         /* by which it comes here */
	int ports;              /* Landlock's rules for them; -1: all are allowed */
	int own[GUARD_OWN_MAX]; /* directories below which sockets are the kernel's */
	size_t own_count;
	struct guard_job jobs[GUARD_AT_ONCE];
	size_t job_count;
	int64_t due_us; /* of the next one, if none came early */
	int64_t looked_us;
	int look_ms;
};

struct guard_call { /* a connect(): all of it is a copy of our own */
	int socket;
	int cwd;      /* what a relative path begins at */
	pid_t caller; /* its thread */
	socklen_t size;
	union {
		struct sockaddr any;
		struct sockaddr_un unix_path;
		struct sockaddr_storage room;
	} to;
};

/* With which the filter is entered. */
unsigned long guard_flags(void);
/* In the supervisor, before the kernel's process is there. */
void guard_begin(struct guard *out, const struct plan *plan);
/* In the kernel's process: what confine() returned goes to the supervisor. */
void guard_pass(struct guard *self, int listener);
/* In the supervisor: takes it, or finds that the process has failed. */
void guard_receive(struct guard *self);

/* What to wait for with poll(): a descriptor to read from or -1, and ms or -1. */
int guard_fd(const struct guard *self);
int guard_wait_ms(const struct guard *self);
/* What poll() has found: takes one call. */
void guard_take(struct guard *self, short events);
/* After each wait: ends those whose callers do not wait any more, or have a signal. */
void guard_look(struct guard *self);
/* A child has ended: if it connected, its caller is answered. */
void guard_ended(struct guard *self, pid_t pid, int status);

/* guard_connect.c.  In a process of its own with the kernel's rights: returns what the
 * caller gets. */
int guard_connect(const struct guard *self, const struct guard_call *call);

#endif

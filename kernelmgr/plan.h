/*
 * plan - what the daemon tells a supervisor about the walls of its kernel: the first
 * message on the control socket, text, one item a line, words separated by tabs:
 *
 *   tier N|U|L|0       which walls (SECURITY.md has the tiers)
 *   become UID GID     whom the kernel runs as; without: the daemon's own ids,
 *   appear UID GID     which look like these in it (tier N)
 *   modes all          it only copies: it may set the bits of set-id programs, and has
 *                      the filter of system calls that cp needs
 *   net own|none       a network of its own (tier N); no internet sockets (U, L)
 *   guard connect      it connects through the supervisor (guard.h; U, L)
 *   port N             the one TCP port that may be connected to (U, L with net none)
 *   forwarder PATH     the program that carries connections to
 *   proxy HOST PORT    the only thing reached from the own network, at FORWARD_PORT
 *   group PATH         a control group that the kernel with all its own is put into
 *   ro FROM TO         readable and executable
 *   rw FROM TO         also writable
 *   opt FROM TO        as ro, but may be missing
 *   own FROM TO        as ro, but the daemon's
 *   link TARGET PATH   a symbolic link (tier N)
 *   limit NAME N       as core cpu data fsize nofile nproc: resource limits;
 *                      shm tmp: bytes of those file systems (tier N)
 *   cwd PATH           as the kernel sees it
 *
 * In tiers without a private root FROM is what counts, and TO is the same.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef KERNELMGR_PLAN_H
#define KERNELMGR_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>

enum {
	PLAN_TEXT_MAX = 32 * 1024, /* bytes */
	PLAN_MOUNTS_MAX = 160,
	PLAN_LIMITS_MAX = 8,
	PLAN_GROUPS_MAX = 3,
	FORWARD_PORT = 3128, /* of the kernel's 127.0.0.1 */
};

enum plan_kind { PLAN_RO, PLAN_RW, PLAN_OPT, PLAN_OWN, PLAN_LINK };

struct plan_mount {
	enum plan_kind kind;
	const char *from, *to;
	int owners; /* user namespace that maps its owner to the kernel's; -1 none */
	int tree;   /* a detached copy of from, until it is placed; -1 none */
	bool placed;
};

struct plan_limit {
	int what; /* RLIMIT_* */
	rlim_t most;
};

struct plan { /* its texts lie in the text that it was read from */
	char tier;
	bool become, own_net, no_internet, all_modes, guard;
	uid_t uid, outer_uid;
	gid_t gid, outer_gid;
	long port; /* 0: none */
	const char *cwd, *shm, *tmp;
	const char *forwarder, *proxy_host, *proxy_port; /* NULL: none */
	struct plan_mount mounts[PLAN_MOUNTS_MAX];
	size_t mount_count;
	struct plan_limit limits[PLAN_LIMITS_MAX];
	size_t limit_count;
	const char *groups[PLAN_GROUPS_MAX];
	size_t group_count;
};

/* Changes text, which must outlive the plan.  Returns the line that it cannot read, or
 * NULL when all is well. */
const char *plan_read(struct plan *out, char *text);

#endif

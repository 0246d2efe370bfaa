/*
 * walls - what the operating system keeps around every kernel.  Which tier this machine
 * allows is tried at start, by a Python that starts behind it; the supervisor builds
 * the walls of each kernel from a plan (plan.h) that is written here.
 *
 *   N  namespaces (user, mount, pid, ipc, uts, cgroup, and net unless the network is
 *      the machine's) with a root of their own; Landlock; a filter of system calls
 *   U  a user id per workspace; Landlock; a filter; guarded sockets (guard.h)
 *   L  Landlock; a filter; guarded sockets
 *   0  nothing
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef KERNELMGR_WALLS_H
#define KERNELMGR_WALLS_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "kernelmgr/config.h"
#include "kernelmgr/launch.h"
#include "kernelmgr/owners.h"
#include "kernelmgr/proxy.h"
#include "wire/buf.h"
#include "wire/err.h"

enum {
	WALLS_APPEAR_ID = 1000,      /* who a kernel in tier N thinks it is */
	WALLS_FIRST_ID = 1900000000, /* of kernels that are somebody else */
	WALLS_IDS = 1024,            /* after so many an id is used again */
};
#define WALLS_HOME "/home/kernel" /* in tier N */

struct walls { /* decided once */
	const struct config *config;
	const struct launch_paths *paths;
	char tier;
	bool become;           /* kernels are somebody else: tier U, and N as root */
	bool guard;            /* they connect through their supervisor: U and L */
	struct owners *owners; /* tier U */
	enum network network;
	struct proxy proxy;      /* with NETWORK_PROXY */
	char identity[PATH_MAX]; /* directory with the passwd and group they see */
	char why[300];           /* why no better tier; "" when it is what was asked */
	char lower[360];         /* the same as a line of the footer */
};

struct walls_kernel { /* of one kernel, as the machine sees it; borrowed */
	const char *workdir, *home, *runtime_dir;
	const char *store, *spool; /* NULL: nothing is saved */
	const char *copy;          /* NULL: it copies its files nowhere */
	unsigned number;
	uid_t owner; /* walls_owner() */
};

struct walls_view { /* the same, as the kernel sees it */
	char workdir[PATH_MAX], home[PATH_MAX], runtime_dir[PATH_MAX];
	char store[PATH_MAX], spool[PATH_MAX], tmp[PATH_MAX], copy[PATH_MAX];
	bool fixed; /* the paths are the same wherever the workspace lies */
	pid_t peer; /* what the daemon's pid looks like */
};

/* Tries tiers until one works: all that VIVARIUM_WALLS admits, the best first.
 * Files are made in the two directories, which are the daemon's own.  Fails if the tier
 * that is asked for cannot be had. */
int walls_decide(struct walls *out, const struct config *config,
		 const struct launch_paths *paths, char *const env[],
		 const char *runtime_dir, const char *state_dir,
		 struct err *err) must_check;
/* "tier N: namespaces, Landlock (ABI 7), system call filter; network: host". */
void walls_describe(const struct walls *self, char *out, size_t size);
/* The same in the log, as a warning if it is not the best. */
void walls_log(const struct walls *self);
/* No kernel can reach the daemon's own port. */
bool walls_apart(const struct walls *self);

void walls_finish(struct walls *self);
/* The id of this workspace's kernels and of the helper that keeps its states; 0 where
 * the tier gives it none. */
int walls_owner(const struct walls *self, const char *workspace, uid_t *out,
		struct err *err) must_check;
/* Gives a directory of the daemon's to them (owners_give()); nothing if owner is 0. */
int walls_give(uid_t owner, const char *dir, const char *root,
	       struct err *err) must_check;

void walls_view(const struct walls *self, const struct walls_kernel *kernel,
		struct walls_view *out);
/* How a kernel sees its workspace's directory; its runtime directory. */
const char *walls_shown_workdir(const struct walls *self, const char *dir);
const char *walls_shown_runtime(const struct walls *self, const char *dir);
/* Adds the plan of this kernel's walls to out. */
int walls_plan(const struct walls *self, const struct walls_kernel *kernel,
	       const struct walls_view *view, struct buf *out,
	       struct err *err) must_check;
/* The environment of this kernel, of the daemon's for all kernels.  Caller owns:
 * launch_env_destroy(). */
char **walls_env(const struct walls *self, const struct walls_view *view,
		 char *const base[]);

/* A program that is behind walls, too. */
struct walls_program { /* all borrowed */
	const struct buf *plan;
	const char *dir;         /* made for it: the supervisor removes it */
	const char *const *argv; /* NULL ends */
	char *const *env;
	int output; /* descriptor of what it says; -1: nobody listens */
};
struct walls_run {
	struct child *child; /* its supervisor */
	int control;         /* owned; when it is closed, the program is ended */
};
int walls_run(struct walls_run *out, struct loop *loop,
	      const struct launch_paths *paths, const struct walls_program *program,
	      child_ended_fn *ended, void *arg, struct err *err) must_check;
/* When the child has ended.  *status is as from waitpid(); fails if it could not run.
 */
int walls_run_result(const struct walls_run *self, int *status,
		     struct err *err) must_check;

#endif

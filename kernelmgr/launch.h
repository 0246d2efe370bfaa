/*
 * launch - the only place that starts processes.  A kernel's supervisor and the
 * short-lived helpers all start here, by posix_spawn, with exactly the descriptors
 * they are given; each is watched through a pidfd and reaped by it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef KERNELMGR_LAUNCH_H
#define KERNELMGR_LAUNCH_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "wire/err.h"
#include "wire/loop.h"

/* Where the program's own parts lie. */
struct launch_paths {
	/* beside the program */
	char supervisor[PATH_MAX], image[PATH_MAX], store[PATH_MAX];
	char forward[PATH_MAX], usage[PATH_MAX];
	char pyside[PATH_MAX];      /* ../pyside or ../share/vivarium/pyside */
	char python[PATH_MAX];      /* the kernels' interpreter */
	char python_dirs[PATH_MAX]; /* what it needs outside /usr; tabs between */
};
/* Fails if a part is missing.  The interpreter is left to launch_find_python(). */
int launch_find(struct launch_paths *out, struct err *err) must_check;
/* python: the configured one, or "" for .venv beside the program or one directory up,
 * else /usr/bin/python3. */
int launch_find_python(struct launch_paths *out, const char *python,
		       struct err *err) must_check;

struct child;
/* The process has ended and is reaped.  status is as from waitpid(); child is
 * destroyed after the call. */
typedef void child_ended_fn(int status, void *arg);

struct launch {
	const char *const *argv; /* argv[0] is the path; NULL ends */
	const char *const *env;  /* NULL ends */
	const char *cwd;         /* NULL: the daemon's */
	const int *fds;          /* become 0, 1, 2, ...; nothing else is inherited */
	int fd_count;
};
/* Starts a process in a session of its own.  Borrows everything in what. */
int launch_child(struct child **out, struct loop *loop, const struct launch *what,
		 child_ended_fn *ended, void *arg, struct err *err) must_check;
pid_t child_pid(const struct child *self);
/* SIGKILL; ended() still comes. */
void child_kill(struct child *self);
/* Nobody wants to know how it ends any more (it is still reaped).  Clears *self. */
void child_forget(struct child **self);

/* Makes the daemon the parent of whatever a killed supervisor leaves behind. */
void launch_adopt_orphans(void);
/* Kills and reaps children of the daemon that it did not start: orphans of a
 * supervisor that was itself killed.  Repeats by timer until none is left. */
void launch_sweep_orphans(struct loop *loop);

/* The environment of a kernel, built from scratch from the few variables of ours
 * that programs expect, with the interpreter's directory first in PATH.  Caller
 * owns the list and its texts: launch_env_destroy(). */
char **launch_env(const char *python, char *const ours[]);
void launch_env_destroy(char ***env);
/* The value of one variable in an environment, or NULL. */
const char *launch_env_get(char *const env[], const char *name);

#endif

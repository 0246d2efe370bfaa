/*
 * state - the directory in which the daemon keeps what must outlive it, and the
 * runtime directory that must not.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef KERNELMGR_STATE_H
#define KERNELMGR_STATE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "wire/err.h"

enum { STATE_OWNER_SIZE = 64 }; /* "123", "123, started by ..." */

/* Where the state directory is: configured, or "" for $XDG_STATE_HOME (else
 * ~/.local/state)/vivarium/<hash of workdir's real path>. */
int state_find(char out[PATH_MAX], const char *configured, const char *real_workdir,
	       struct err *err) must_check;
/* Makes the state directory, mode 0700, and stores its real path.  workdir exists.
 * Fails if the state would lie inside it, where code could read it. */
int state_open(char out[PATH_MAX], const char *configured, const char *workdir,
	       struct err *err) must_check;
/* The part of it that is the daemon's alone: keys, journals, the socket of its door.
 * Kernels with a user id of their own may have to pass the state directory; what lies
 * here they cannot even look at. */
int state_own(char out[PATH_MAX], const char *state_dir, struct err *err) must_check;
/* Makes this daemon the only one that uses the state, as long as *lock stays open: two
 * would each have a kernel for the same workspace.  for_client: a client started it,
 * with --stdio.  ERR_BUSY: there is another; what to do comes after a semicolon. */
int state_lock(const char *state_dir, bool for_client, int *lock,
	       struct err *err) must_check;
/* True while a daemon holds that lock; then owner gets its process id, and who started
 * it if that was a client. */
bool state_is_locked(const char *state_dir, char owner[STATE_OWNER_SIZE]);
/* Reads the secret called name, or makes it: size random bytes in a file of mode 0600
 * that is renamed into place whole. */
int state_secret(const char *dir, const char *name, void *out, size_t size,
		 struct err *err) must_check;
/* The home directory of a workspace's kernels and of its branches', made if it is
 * missing. */
int state_home(char out[PATH_MAX], const char *state_dir, const char *workspace,
	       struct err *err) must_check;

/* Makes a directory of mode 0700 for this run's sockets below $XDG_RUNTIME_DIR or
 * /tmp, and removes those of daemons that were killed.  *lock stays open (and locked)
 * as long as the directory is in use. */
int state_runtime_open(char out[PATH_MAX], int *lock, struct err *err) must_check;
/* Removes it with all that is in it. */
void state_runtime_close(const char *runtime_dir, int *lock);

#endif

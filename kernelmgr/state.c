// SPDX-License-Identifier: MIT
#include "kernelmgr/state.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernelmgr/config.h"
#include "kernelmgr/sweep.h"
#include "wire/mem.h"

#define RUNTIME_PREFIX "vivarium-"

/* mkdir -p; what is missing gets mode 0700. */
static int make_directories(const char *path, struct err *err)
{
	char partial[PATH_MAX];

	snprintf(partial, sizeof partial, "%s", path);
	for (char *slash = strchr(partial + 1, '/');; slash = strchr(slash + 1, '/')) {
		if (slash)
			*slash = '\0';
		if (mkdir(partial, 0700) < 0 && errno != EEXIST)
			return err_set(err, ERR_SYSTEM, "make %.150s", partial);
		if (!slash)
			return 0;
		*slash = '/';
	}
}

static int default_path(char out[PATH_MAX], const char *real_workdir, struct err *err)
{
	const char *base = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	unsigned char hash[16];
	char hex[sizeof hash * 2 + 1];
	bool from_home = !base || base[0] != '/';

	if (from_home && (!home || home[0] != '/'))
		return err_set(err, ERR_CONFIG,
			       "neither HOME nor XDG_STATE_HOME is set: say where to "
			       "keep state");
	crypto_generichash(hash, sizeof hash, (const unsigned char *)real_workdir,
			   strlen(real_workdir), NULL, 0);
	sodium_bin2hex(hex, sizeof hex, hash, sizeof hash);
	if (snprintf(out, PATH_MAX, "%s%s/vivarium/%s", from_home ? home : base,
		     from_home ? "/.local/state" : "", hex) >= PATH_MAX)
		return err_set(err, ERR_CONFIG,
			       "the state directory's path is too long");
	return 0;
}

int state_find(char out[PATH_MAX], const char *configured, const char *real_workdir,
	       struct err *err)
{
	if (!configured[0])
		return default_path(out, real_workdir, err);
	snprintf(out, PATH_MAX, "%s", configured);
	return 0;
}

int state_open(char out[PATH_MAX], const char *configured, const char *workdir,
	       struct err *err)
{
	char real_workdir[PATH_MAX], wanted[PATH_MAX];

	if (!realpath(workdir, real_workdir))
		return err_set(err, ERR_SYSTEM, "find %.150s", workdir);
	if (state_find(wanted, configured, real_workdir, err) < 0)
		return -1;
	if (make_directories(wanted, err) < 0)
		return -1;
	if (!realpath(wanted, out))
		return err_set(err, ERR_SYSTEM, "find %.150s", wanted);
	if (config_is_inside(out, real_workdir)) {
		if (strcmp(out, real_workdir) != 0)
			rmdir(out); /* if it was just made, and is empty */
		return err_set(err, ERR_CONFIG,
			       "%.100s lies inside the work directory, where code "
			       "could change it",
			       out);
	}
	return 0;
}

/* Before this directory was there, its files lay in the one above. */
static int move_in(const char *state_dir, const char *own, struct err *err)
{
	static const char *const names[] = {"session.key",   "snapshot.key",
					    "door.key",      "sessions.ended",
					    "calls.journal", "owners"};
	char from[PATH_MAX + 16], to[PATH_MAX + 16];

	for (size_t i = 0; i < COUNT_OF(names); i++) {
		snprintf(from, sizeof from, "%s/%s", state_dir, names[i]);
		snprintf(to, sizeof to, "%s/%s", own, names[i]);
		if (access(to, F_OK) < 0 && rename(from, to) < 0 && errno != ENOENT)
			return err_set(err, ERR_SYSTEM, "move %.150s", from);
	}
	return 0;
}

int state_own(char out[PATH_MAX], const char *state_dir, struct err *err)
{
	if (snprintf(out, PATH_MAX, "%s/daemon", state_dir) >= PATH_MAX)
		return err_set(err, ERR_CONFIG,
			       "the state directory's path is too long");
	if (mkdir(out, 0700) < 0 && errno != EEXIST)
		return err_set(err, ERR_SYSTEM, "make %.150s", out);
	return move_in(state_dir, out, err);
}

static void read_owner(int lock, char owner[STATE_OWNER_SIZE])
{
	ssize_t len = pread(lock, owner, STATE_OWNER_SIZE - 1, 0);

	owner[len > 0 ? len : 0] = '\0';
}

bool state_is_locked(const char *state_dir, char owner[STATE_OWNER_SIZE])
{
	char path[PATH_MAX + 8];

	snprintf(path, sizeof path, "%s/lock", state_dir);
	owned(close_fd) int lock = open(path, O_RDONLY | O_CLOEXEC);
	if (lock < 0 || flock(lock, LOCK_SH | LOCK_NB) == 0)
		return false;
	read_owner(lock, owner);
	return true;
}

int state_lock(const char *state_dir, bool for_client, int *lock, struct err *err)
{
	char path[PATH_MAX + 8], owner[STATE_OWNER_SIZE];

	snprintf(path, sizeof path, "%s/lock", state_dir);
	*lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (*lock < 0)
		return err_set(err, ERR_SYSTEM, "open %.150s", path);
	if (flock(*lock, LOCK_EX | LOCK_NB) < 0) {
		read_owner(*lock, owner);
		return err_set(
		    err, ERR_BUSY,
		    "another Vivarium (pid %s) has the state directory %.80s; "
		    "stop it, or choose another --workdir (and --state-dir, if set)",
		    owner, state_dir);
	}
	int len = snprintf(owner, sizeof owner, "%d%s", (int)getpid(),
			   for_client ? ", started by a client with --stdio" : "");
	if (ftruncate(*lock, 0) < 0 || write(*lock, owner, (size_t)len) != len)
		return err_set(err, ERR_SYSTEM, "write %.150s", path);
	return 0;
}

static int make_secret(const char *path, const void *bytes, size_t size,
		       struct err *err)
{
	char partial[PATH_MAX + 128];

	snprintf(partial, sizeof partial, "%s.new", path);
	owned(close_fd) int fd =
	    open(partial, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, bytes, size) != (ssize_t)size || fsync(fd) < 0 ||
	    rename(partial, path) < 0)
		return err_set(err, ERR_SYSTEM, "write %.150s", path);
	return 0;
}

int state_secret(const char *dir, const char *name, void *out, size_t size,
		 struct err *err)
{
	char path[PATH_MAX + 64];

	snprintf(path, sizeof path, "%s/%s", dir, name);
	owned(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && read(fd, out, size) == (ssize_t)size)
		return 0;
	if (fd < 0 && errno != ENOENT)
		return err_set(err, ERR_SYSTEM, "read %.150s", path);
	randombytes_buf(out, size);
	return make_secret(path, out, size, err);
}

int state_home(char out[PATH_MAX], const char *state_dir, const char *workspace,
	       struct err *err)
{
	int len = (int)strcspn(workspace, "@"); /* a branch has that of its workspace */

	if (snprintf(out, PATH_MAX, "%s/homes/%.*s", state_dir, len, workspace) >=
	    PATH_MAX) {
		errno = ENAMETOOLONG;
		return err_set(err, ERR_SYSTEM, "make %.150s/homes", state_dir);
	}
	return make_directories(out, err);
}

/* ---- the runtime directory ---- */

/* A lock that can be had belongs to a daemon that is gone. */
static void remove_stale(const char *base)
{
	char pattern[PATH_MAX];
	glob_t found;

	snprintf(pattern, sizeof pattern, "%s/" RUNTIME_PREFIX "??????", base);
	if (glob(pattern, GLOB_NOSORT, NULL, &found) != 0)
		return;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		char path[PATH_MAX + 8];
		struct stat st;

		snprintf(path, sizeof path, "%s/lock", found.gl_pathv[i]);
		if (lstat(found.gl_pathv[i], &st) < 0 || st.st_uid != geteuid())
			continue;
		owned(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
			sweep_tree(found.gl_pathv[i]);
	}
	globfree(&found);
}

int state_runtime_open(char out[PATH_MAX], int *lock, struct err *err)
{
	const char *base = getenv("XDG_RUNTIME_DIR");
	char path[PATH_MAX + 8];

	if (!base || access(base, W_OK) < 0)
		base = "/tmp";
	remove_stale(base);
	snprintf(out, PATH_MAX, "%s/" RUNTIME_PREFIX "XXXXXX", base);
	if (!mkdtemp(out))
		return err_set(err, ERR_SYSTEM, "make a directory in %.150s", base);
	if (!realpath(out, path) || strlen(path) >= PATH_MAX)
		return err_set(err, ERR_SYSTEM, "find %.150s", out);
	memcpy(out, path, strlen(path) + 1);
	snprintf(path, sizeof path, "%s/lock", out);
	*lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (*lock < 0 || flock(*lock, LOCK_EX | LOCK_NB) < 0)
		return err_set(err, ERR_SYSTEM, "lock %.150s", path);
	return 0;
}

void state_runtime_close(const char *runtime_dir, int *lock)
{
	sweep_tree(runtime_dir);
	close_fd(lock);
}

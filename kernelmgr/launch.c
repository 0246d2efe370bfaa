// SPDX-License-Identifier: MIT
#include "kernelmgr/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/queue.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernelmgr/sweep.h"
#include "wire/log.h"
#include "wire/mem.h"
#include "wire/words.h"

enum {
	FD_HIGH = 64, /* sources are copied above any target, so order cannot matter */
	FDS_MAX = 8,
	SWEEP_US = 20 * 1000,
};

struct child {
	LIST_ENTRY(child) link;
	pid_t pid;
	int pidfd; /* borrowed from watch */
	struct loop_watch *watch;
	child_ended_fn *ended; /* NULL once forgotten */
	void *arg;
};

static LIST_HEAD(, child) children = LIST_HEAD_INITIALIZER(children);

static void on_end(void *arg)
{
	struct child *self = arg;
	siginfo_t info = {0};

	if (waitid(P_PID, (id_t)self->pid, &info, WEXITED | WNOHANG) < 0 ||
	    info.si_pid == 0)
		return;
	int status = info.si_code == CLD_EXITED ? (info.si_status & 0xff) << 8
						: info.si_status & 0x7f;
	LIST_REMOVE(self, link);
	loop_unwatch(&self->watch);
	if (self->ended)
		self->ended(status, self->arg);
	free(self);
}

/* Copies of the descriptors, all above FD_HIGH; -1 on failure. */
static int copy_high(const int *fds, int count, int copies[FDS_MAX])
{
	for (int i = 0; i < count; i++) {
		copies[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, FD_HIGH);
		if (copies[i] < 0) {
			while (i-- > 0)
				close(copies[i]);
			return -1;
		}
	}
	return 0;
}

static int spawn(pid_t *pid, const struct launch *what, const int *copies)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID |
						  POSIX_SPAWN_SETSIGMASK |
						  POSIX_SPAWN_SETSIGDEF);
	for (int i = 0; i < what->fd_count; i++)
		posix_spawn_file_actions_adddup2(&actions, copies[i], i);
	posix_spawn_file_actions_addclosefrom_np(&actions, what->fd_count);
	if (what->cwd)
		posix_spawn_file_actions_addchdir_np(&actions, what->cwd);
	int rc = posix_spawn(pid, what->argv[0], &actions, &attributes,
			     (char *const *)(uintptr_t)what->argv,
			     (char *const *)(uintptr_t)what->env);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return rc;
}

int launch_child(struct child **out, struct loop *loop, const struct launch *what,
		 child_ended_fn *ended, void *arg, struct err *err)
{
	int copies[FDS_MAX];
	pid_t pid;

	if (what->fd_count > FDS_MAX ||
	    copy_high(what->fds, what->fd_count, copies) < 0)
		return err_set(err, ERR_SYSTEM, "copy descriptors for %s",
			       what->argv[0]);
	errno = spawn(&pid, what, copies);
	int failed = errno;
	for (int i = 0; i < what->fd_count; i++)
		close(copies[i]);
	errno = failed;
	if (failed)
		return err_set(err, ERR_SYSTEM, "run %s", what->argv[0]);

	struct child *self = xcalloc(1, sizeof *self);
	*self = (struct child){.pid = pid, .ended = ended, .arg = arg};
	self->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (self->pidfd < 0 ||
	    loop_watch(loop, self->pidfd, on_end, self, &self->watch, err) < 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		free(self);
		return err_set(err, ERR_SYSTEM, "watch %s", what->argv[0]);
	}
	LIST_INSERT_HEAD(&children, self, link);
	*out = self;
	return 0;
}

pid_t child_pid(const struct child *self)
{
	return self->pid;
}

void child_kill(struct child *self)
{
	syscall(SYS_pidfd_send_signal, self->pidfd, SIGKILL, NULL, 0);
}

void child_forget(struct child **self)
{
	struct child *child = take(self);

	if (child)
		child->ended = NULL;
}

/* ---- orphans ---- */

void launch_adopt_orphans(void)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1);
}

static bool is_ours(pid_t pid)
{
	struct child *child;

	LIST_FOREACH(child, &children, link)
	if (child->pid == pid)
		return true;
	return false;
}

static void sweep(void *arg)
{
	static struct loop_timer again;
	int found = sweep_children(is_ours);

	if (!found)
		return;
	log_warn("launch", "ended %d orphan%s of a supervisor that was killed", found,
		 plural_s((unsigned)found));
	loop_timer_start(arg, &again, SWEEP_US, sweep, arg);
}

void launch_sweep_orphans(struct loop *loop)
{
	sweep(loop);
}

/* ---- paths and environment ---- */

/* The first of the candidates that exists; those without a leading slash are
 * relative to the program's directory, "../" to the one above it. */
static int find_part(char out[PATH_MAX], const char *here,
		     const char *const candidates[], int mode)
{
	int above = (int)(strrchr(here, '/') - here);

	for (; *candidates; candidates++) {
		const char *part = *candidates;
		int len = (int)strlen(here);

		if (strncmp(part, "../", 3) == 0) {
			len = above;
			part += 3;
		}
		int all = part[0] == '/'
			      ? snprintf(out, PATH_MAX, "%s", part)
			      : snprintf(out, PATH_MAX, "%.*s/%s", len, here, part);
		if (all < PATH_MAX && access(out, mode) == 0)
			return 0;
	}
	return -1;
}

/* The program's directory. */
static int find_here(char here[PATH_MAX], struct err *err)
{
	ssize_t len = readlink("/proc/self/exe", here, PATH_MAX - 1);

	if (len < 0)
		return err_set(err, ERR_SYSTEM, "find the program's directory");
	here[len] = '\0';
	*strrchr(here, '/') = '\0';
	return 0;
}

int launch_find_python(struct launch_paths *out, const char *python, struct err *err)
{
	static const char *const usual[] = {".venv/bin/python", "../.venv/bin/python",
					    "/usr/bin/python3", NULL};
	const char *const asked[] = {python, NULL};
	char here[PATH_MAX];

	if (find_here(here, err) < 0)
		return -1;
	if (find_part(out->python, here, python[0] ? asked : usual, X_OK) == 0)
		return 0;
	return err_set(err, ERR_CONFIG, "'%.120s' is not a program that can be run",
		       python[0] ? python : usual[2]);
}

int launch_find(struct launch_paths *out, struct err *err)
{
	static const char *const supervisor[] = {"vivarium-supervisor", NULL};
	static const char *const image[] = {"vivarium-image", NULL};
	static const char *const store[] = {"vivarium-store", NULL};
	static const char *const forward[] = {"vivarium-forward", NULL};
	static const char *const usage[] = {"vivarium-usage", NULL};
	static const char *const pyside[] = {"../pyside", "../share/vivarium/pyside",
					     NULL};
	char here[PATH_MAX];

	if (find_here(here, err) < 0)
		return -1;
	if (find_part(out->supervisor, here, supervisor, X_OK) < 0 ||
	    find_part(out->image, here, image, X_OK) < 0 ||
	    find_part(out->store, here, store, X_OK) < 0 ||
	    find_part(out->forward, here, forward, X_OK) < 0 ||
	    find_part(out->usage, here, usage, X_OK) < 0 ||
	    find_part(out->pyside, here, pyside, R_OK) < 0)
		return err_set(err, ERR_CONFIG,
			       "vivarium-supervisor, -image, -store, -forward, -usage "
			       "or pyside is missing beside the program in %.120s",
			       here);
	return 0;
}

/* Passed on as they are; a name that ends in '_' stands for all that start so. */
static const char *const passed[] = {"HOME",
				     "LANG",
				     "LANGUAGE",
				     "LC_",
				     "LOGNAME",
				     "USER",
				     "TZ",
				     "TMPDIR",
				     "SHELL",
				     "LD_LIBRARY_PATH",
				     "SSL_CERT_FILE",
				     "SSL_CERT_DIR",
				     "REQUESTS_CA_BUNDLE",
				     "http_proxy",
				     "https_proxy",
				     "ftp_proxy",
				     "all_proxy",
				     "no_proxy",
				     "HTTP_PROXY",
				     "HTTPS_PROXY",
				     "FTP_PROXY",
				     "ALL_PROXY",
				     "NO_PROXY",
				     "OPENBLAS_",
				     "OMP_",
				     "MKL_",
				     "NUMEXPR_",
				     "MPLCONFIGDIR",
				     "XDG_CACHE_HOME"};

static bool is_passed(const char *variable)
{
	size_t len = strcspn(variable, "=");

	for (size_t i = 0; i < COUNT_OF(passed); i++) {
		size_t n = strlen(passed[i]);

		bool prefix = passed[i][n - 1] == '_';

		if (strncmp(variable, passed[i], n) == 0 &&
		    (prefix ? len > n : len == n))
			return true;
	}
	return false;
}

char **launch_env(const char *python, char *const ours[])
{
	size_t count = 0, at = 0;
	const char *path = getenv("PATH");

	while (ours[count])
		count++;
	char **env = xcalloc(count + 4, sizeof *env);
	for (size_t i = 0; i < count; i++)
		if (is_passed(ours[i]))
			env[at++] = xstrdup(ours[i]);
	env[at++] = xasprintf("PATH=%.*s:%s", (int)(strrchr(python, '/') - python),
			      python, path ? path : "/usr/local/bin:/usr/bin:/bin");
	env[at++] = xstrdup("PYTHONUNBUFFERED=1"); /* children's output comes at once */
	env[at] = NULL;
	return env;
}

const char *launch_env_get(char *const env[], const char *name)
{
	size_t len = strlen(name);

	for (; *env; env++)
		if (strncmp(*env, name, len) == 0 && (*env)[len] == '=')
			return *env + len + 1;
	return NULL;
}

void launch_env_destroy(char ***env)
{
	char **dead = take(env);

	for (size_t i = 0; dead && dead[i]; i++)
		free(dead[i]);
	free(dead);
}

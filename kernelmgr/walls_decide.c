// SPDX-License-Identifier: MIT
/* Which walls this machine allows: found out by building them around a Python. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernelmgr/idmap.h"
#include "kernelmgr/landlock.h"
#include "kernelmgr/state.h"
#include "kernelmgr/sweep.h"
#include "kernelmgr/walls.h"
#include "kernelmgr/walls_network.h"
#include "wire/log.h"
#include "wire/loop.h"
#include "wire/mem.h"

enum { TRY_US = 20 * 1000 * 1000, READ_SIZE = 4096 };

struct attempt {
	struct loop *loop;
	struct child *child;
	struct loop_timer deadline;
};

static void on_ended(int status, void *arg)
{
	(void)status;
	loop_stop(((struct attempt *)arg)->loop);
}

static void on_deadline(void *arg)
{
	child_kill(((struct attempt *)arg)->child);
}

/* Where connections are guarded, one is made: that needs more than the filter. */
#define TRY_NOTHING "pass"
#define TRY_CONNECTION                                                                 \
	"import os, socket, sys; os.chdir(sys.argv[1]); "                              \
	"made = socket.socket(socket.AF_UNIX); made.bind('tried'); made.listen(); "    \
	"socket.socket(socket.AF_UNIX).connect('tried')"

/* Runs Python behind the walls of a plan. */
static int run(const struct walls *self, char *const env[], const char *dir,
	       const struct buf *plan, struct err *err)
{
	owned(loop_destroy) struct loop *loop = NULL;
	const struct walls_program program = {
	    .plan = plan,
	    .dir = dir,
	    .argv = (const char *const[]){self->paths->python, "-c",
					  self->guard ? TRY_CONNECTION : TRY_NOTHING,
					  dir, NULL},
	    .env = env,
	    .output = -1,
	};
	struct walls_run run;
	int status;

	if (loop_create(&loop, READ_SIZE, err) < 0)
		return -1;
	struct attempt attempt = {.loop = loop};
	if (walls_run(&run, loop, self->paths, &program, on_ended, &attempt, err) < 0)
		return -1;
	owned(close_fd) int control = run.control;
	(void)control; /* closed when we are done with it */
	attempt.child = run.child;
	loop_timer_start(loop, &attempt.deadline, TRY_US, on_deadline, &attempt);
	loop_run(loop);
	loop_timer_stop(&attempt.deadline);
	if (walls_run_result(&run, &status, err) < 0)
		return -1;
	if (status == 0)
		return 0;
	return err_set(err, ERR_CONFIG,
		       self->guard ? "no connection can be made there (wait status %d)"
				   : "Python does not start behind it (wait status %d)",
		       status);
}

static int make_dir(char out[PATH_MAX], const char *above, const char *name,
		    struct err *err)
{
	if (snprintf(out, PATH_MAX, "%s/%s", above, name) >= PATH_MAX ||
	    (mkdir(out, 0700) < 0 && errno != EEXIST))
		return err_set(err, ERR_SYSTEM, "make %.150s", out);
	return 0;
}

/* In directories that stand for a kernel's own, beside where theirs will be. */
static int try_walls(const struct walls *self, char *const env[],
		     const char *runtime_dir, const char *state_dir, struct err *err)
{
	owned(buf_finish) struct buf plan = {0};
	char dir[PATH_MAX], home[PATH_MAX], tmp[PATH_MAX];
	struct walls_view view;

	if (make_dir(dir, runtime_dir, "try", err) < 0 ||
	    make_dir(tmp, dir, "tmp", err) < 0 ||
	    make_dir(home, state_dir, "try", err) < 0)
		return -1;
	struct walls_kernel kernel = {
	    .workdir = self->config->workdir, .home = home, .runtime_dir = dir};
	if (walls_owner(self, "-", &kernel.owner, err) < 0 ||
	    walls_give(kernel.owner, dir, runtime_dir, err) < 0 ||
	    walls_give(kernel.owner, tmp, runtime_dir, err) < 0 ||
	    walls_give(kernel.owner, home, state_dir, err) < 0)
		return -1;
	if (kernel.owner) /* the work directory is given to a workspace */
		kernel.workdir = home;
	walls_view(self, &kernel, &view);
	int rc = walls_plan(self, &kernel, &view, &plan, err);
	if (rc == 0)
		rc = run(self, env, dir, &plan, err);
	sweep_tree(dir);
	sweep_tree(home);
	return rc;
}

/* ---- who kernels are ---- */

static int write_names(const struct walls *self, const char *name, struct err *err)
{
	bool users = strcmp(name, "passwd") == 0;
	char path[PATH_MAX + 16];

	snprintf(path, sizeof path, "%s/%s", self->identity, name);
	FILE *file = fopen(path, "we");
	if (!file)
		return err_set(err, ERR_SYSTEM, "write %.150s", path);
	for (int i = 0; i < (self->become ? WALLS_IDS : 1); i++) {
		int id = self->become ? WALLS_FIRST_ID + i : WALLS_APPEAR_ID;

		if (users)
			fprintf(file, "kernel:x:%d:%d::" WALLS_HOME ":/bin/sh\n", id,
				id);
		else
			fprintf(file, "kernel:x:%d:\n", id);
	}
	fprintf(file, users ? "root:x:0:0::/:/bin/false\n"
			      "nobody:x:65534:65534::/:/bin/false\n"
			    : "root:x:0:\nnogroup:x:65534:\n");
	if (fchmod(fileno(file), 0644) < 0 || fclose(file) != 0)
		return err_set(err, ERR_SYSTEM, "write %.150s", path);
	return 0;
}

/* ---- which tier ---- */

/* A process of the machine's own root, not of a container's. */
static bool is_real_root(void)
{
	struct idmap_range all;

	return geteuid() == 0 && idmap_find(0, &all) && all.count == UINT_MAX;
}

/* The first directory above path that other users may not pass; false if there is none.
 */
static bool find_closed(const char *path, char out[PATH_MAX])
{
	struct stat st;

	for (size_t len = 1; path[len]; len++) {
		if (path[len] != '/')
			continue;
		snprintf(out, PATH_MAX, "%.*s", (int)len, path);
		if (stat(out, &st) == 0 && !(st.st_mode & S_IXOTH))
			return true;
	}
	return false;
}

/* Tier U has failed: the reason mostly is one that the system does not name. */
static void explain_closed(const struct walls *self, const char *runtime_dir,
			   const char *state_dir, struct err *err)
{
	const char *const needed[] = {self->config->workdir, state_dir, runtime_dir,
				      self->paths->python, self->paths->pyside};
	char real[PATH_MAX], closed[PATH_MAX];

	for (size_t i = 0; i < COUNT_OF(needed); i++) {
		config_real_path(real, needed[i]);
		if (!find_closed(real, closed))
			continue;
		(void)err_set(err, ERR_CONFIG,
			      "other users may not pass %.90s: chmod o+x %.90s", closed,
			      closed);
		return;
	}
}

struct candidate {
	char tier;
	bool become, guard;
};

static int try_candidate(struct walls *self, const struct candidate *candidate,
			 char *const env[], const char *runtime_dir,
			 const char *state_dir, struct err *err)
{
	char own[PATH_MAX];

	self->tier = candidate->tier;
	self->become = candidate->become;
	self->guard = candidate->guard;
	if (self->tier == 'U' && (state_own(own, state_dir, err) < 0 ||
				  owners_open(&self->owners, own, err) < 0))
		return -1;
	if (self->tier == 'L' && landlock_abi() == 0)
		return err_set(err, ERR_CONFIG, "this Linux has no Landlock");
	if (network_fits(self, err) < 0 || write_names(self, "passwd", err) < 0 ||
	    write_names(self, "group", err) < 0)
		return -1;
	int rc = try_walls(self, env, runtime_dir, state_dir, err);
	if (rc < 0 && self->tier == 'U' && err->kind == ERR_CONFIG)
		explain_closed(self, runtime_dir, state_dir, err);
	return rc;
}

static bool is_asked(int64_t asked, char tier)
{
	return asked == WALLS_AUTO || (asked == WALLS_N && tier == 'N') ||
	       (asked == WALLS_U && tier == 'U') || (asked == WALLS_L && tier == 'L');
}

static void note_failure(struct walls *self, const struct candidate *candidate,
			 const struct err *err)
{
	size_t at = strlen(self->why);

	snprintf(self->why + at, sizeof self->why - at, "%stier %c%s: %s",
		 at ? "; " : "", candidate->tier,
		 candidate->guard ? " with guarded sockets" : "", err->msg);
}

/* Whether it is of any use to try this one. */
static bool is_worth_it(const struct walls *self, const struct candidate *candidate)
{
	int abi = landlock_abi();

	if (candidate->guard && (abi == 0 || abi >= LANDLOCK_ABI_UNIX))
		return false; /* the same without is as good */
	return is_asked(self->config->walls, candidate->tier) &&
	       !(candidate->tier == 'N' && candidate->become && !is_real_root());
}

/* Why nothing could be tried; says nothing of what this machine allows.  A full disk,
 * which a kernel of the last daemon may have filled, must not lower the walls. */
static bool is_passing(const struct err *err)
{
	static const int reasons[] = {ENOSPC, EDQUOT, ENOMEM, EMFILE,
				      ENFILE, EAGAIN, EIO,    EROFS};

	for (size_t i = 0; i < COUNT_OF(reasons); i++)
		if (err->kind == ERR_SYSTEM && err->os == reasons[i])
			return true;
	return false;
}

/* The best candidate that is asked for and works; tier 0 if there is none. */
static int find_tier(struct walls *self, char *const env[], const char *runtime_dir,
		     const char *state_dir, struct err *out)
{
	static const struct candidate candidates[] = {
	    {.tier = 'N', .become = true},
	    {.tier = 'N'},
	    {.tier = 'U', .become = true, .guard = true},
	    {.tier = 'U', .become = true},
	    {.tier = 'L', .guard = true},
	    {.tier = 'L'},
	};
	size_t mark = 0; /* of why, before this tier */
	struct err err;

	for (size_t i = 0; i < COUNT_OF(candidates); i++) {
		const struct candidate *candidate = &candidates[i];

		if (candidate->tier == 'N' || candidate->guard)
			mark = strlen(self->why);
		if (!is_worth_it(self, candidate))
			continue;
		if (try_candidate(self, candidate, env, runtime_dir, state_dir, &err) ==
		    0)
			return 0;
		owners_close(&self->owners);
		if (is_passing(&err)) {
			*out = err;
			return err_wrap(out, "try tier %c", candidate->tier);
		}
		self->why[mark] = '\0'; /* the guard was not to blame */
		note_failure(self, candidate, &err);
	}
	self->tier = '0';
	self->become = self->guard = false;
	return 0;
}

/* Nobody is shown what walls keep apart: the files of users, saved states, keys. */
static int check_read_dir(const struct config *config, const char *path,
			  const char *const apart[3], struct err *err)
{
	char real[PATH_MAX], own[PATH_MAX];
	const char *name = config_name(config, "read-dirs");

	if (path[0] != '/' || !realpath(path, real))
		return err_set(
		    err, ERR_CONFIG,
		    "%s: '%.120s' is not the absolute path of something that "
		    "is there",
		    name, path);
	for (int i = 0; i < 3; i++) {
		config_real_path(own, apart[i]);
		if (config_is_inside(own, real) || config_is_inside(real, own))
			return err_set(err, ERR_CONFIG,
				       "%s must not show '%.80s': it overlaps %.80s, "
				       "which is not for all kernels",
				       name, path, own);
	}
	return 0;
}

static int check_read_dirs(const struct config *config, const char *runtime_dir,
			   const char *state_dir, struct err *err)
{
	const char *const apart[3] = {config->workdir, state_dir, runtime_dir};
	owned(free_text) char *copy = xstrdup(config->read_dirs);
	char *rest = copy, *path;

	while ((path = strsep(&rest, ":")))
		if (*path && check_read_dir(config, path, apart, err) < 0)
			return -1;
	return 0;
}

int walls_decide(struct walls *out, const struct config *config,
		 const struct launch_paths *paths, char *const env[],
		 const char *runtime_dir, const char *state_dir, struct err *err)
{
	*out = (struct walls){.config = config, .paths = paths, .tier = '0'};
	if (network_decide(out, env, err) < 0)
		return -1;
	if (check_read_dirs(config, runtime_dir, state_dir, err) < 0)
		return -1;
	if (config->walls == WALLS_OFF)
		return network_settle(out, err);
	if (make_dir(out->identity, runtime_dir, "identity", err) < 0)
		return -1;
	if (find_tier(out, env, runtime_dir, state_dir, err) < 0)
		return -1;
	if (out->tier == '0' && config->walls != WALLS_AUTO)
		return err_set(err, ERR_CONFIG, "%s cannot be kept here: %.180s",
			       config_name(config, "walls"), out->why);
	if (out->why[0])
		snprintf(out->lower, sizeof out->lower, "tier %c, because of %s",
			 out->tier, out->why);
	return network_settle(out, err);
}

bool walls_apart(const struct walls *self)
{
	return self->tier == 'N' && self->network != NETWORK_HOST;
}

void walls_describe(const struct walls *self, char *out, size_t size)
{
	static const char *const networks[] = {"", "none", "proxy", "host"};
	const char *means = self->tier == 'N'   ? "namespaces, Landlock, call filter"
			    : self->tier == 'U' ? "user ids, Landlock, call filter"
			    : self->tier == 'L' ? "Landlock, call filter"
						: "none";

	snprintf(out, size, "tier %c (%s%s; Landlock ABI %d), network %s%s%s",
		 self->tier, means, self->guard ? ", guarded sockets" : "",
		 landlock_abi(), networks[self->network],
		 self->why[0] ? "; not better because of " : "", self->why);
}

void walls_log(const struct walls *self)
{
	char text[600];

	walls_describe(self, text, sizeof text);
	if (self->tier == 'N')
		log_info("walls", "%s", text);
	else
		log_warn("walls", "%s", text);
}

// SPDX-License-Identifier: MIT
/* Makes a branch when its call's turn comes: the newest state is on disk, the store
 * copies it, then cp copies the files.  The queue waits meanwhile, so that no cell
 * changes what is being copied; but what cells have started may, and put links where
 * directories were.  So cp runs behind the walls of the workspace's kernels. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernelmgr/branches.h"
#include "kernelmgr/call_impl.h"
#include "wire/json.h"
#include "wire/log.h"
#include "wire/mem.h"
#include "wire/utf8.h"

enum {
	SAVED_US = 20 * 1000 * 1000, /* for the last cell's state to be saved */
	COPY_US = 60 * 1000 * 1000,  /* for all files */
	BATCH = 500,                 /* names that one cp is given */
	NAMES_MAX = 100 * 1000,      /* at the top of a workspace */
	WORDS_SHOWN = 200,           /* characters of what cp said */
};

struct branching {
	struct workspace *workspace; /* borrowed */
	struct call *call;           /* borrowed */
	struct branch_place place;
	bool waiting, gave_up, asked;
	struct loop_timer timer;
	json_t *answer; /* owned; the store's */
	struct child *child;
	int control;  /* owned; of a child that copies; -1: it does not */
	int words;    /* owned; what the child says */
	bool dropped; /* waits for the child's end, to remove what it copied */
	char **names; /* owned; at the top of the workspace */
	size_t count, next;
};

static struct loop *loop_of(const struct branching *self)
{
	return self->workspace->place->kernels.loop;
}

/* ---- children ---- */

/* They end with the daemon, even if that is killed. */
#define WITH_US "/usr/bin/setpriv", "--pdeathsig", "KILL"

static int open_words(struct branching *self, struct err *err)
{
	close_fd(&self->words);
	self->words = memfd_create("words", MFD_CLOEXEC);
	return self->words < 0 ? err_set(err, ERR_SYSTEM, "copy the files") : 0;
}

static int run(struct branching *self, const char *const *argv, child_ended_fn *ended,
	       struct err *err)
{
	owned(close_fd) int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (open_words(self, err) < 0)
		return -1;
	if (null < 0)
		return err_set(err, ERR_SYSTEM, "open /dev/null");
	const int fds[] = {null, null, self->words};
	const struct launch what = {
	    .argv = argv,
	    .env = (const char *const *)(uintptr_t)self->workspace->place->kernels.env,
	    .cwd = self->workspace->dir,
	    .fds = fds,
	    .fd_count = COUNT_OF(fds),
	};
	return launch_child(&self->child, loop_of(self), &what, ended, self, err);
}

/* What is left of the copies.  Nobody has to wait for it. */
static int remove_partial(struct branching *self, child_ended_fn *ended,
			  struct err *err)
{
	const char *const argv[] = {
	    WITH_US, "/usr/bin/rm",       "-rf", "--one-file-system",
	    "--",    self->place.partial, NULL};

	return run(self, argv, ended, err);
}

/* Its supervisor ends one that copies, and removes its directory. */
static void stop_child(struct branching *self)
{
	if (self->child && self->control < 0)
		child_kill(self->child);
	close_fd(&self->control);
}

/* ---- its end ---- */

static void destroy(struct branching **self)
{
	struct branching *dead = take(self);

	loop_timer_stop(&dead->timer);
	workspace_forget(dead->workspace, dead);
	stop_child(dead);
	child_forget(&dead->child);
	for (size_t i = 0; i < dead->count; i++)
		free(dead->names[i]);
	free(dead->names);
	json_decref(dead->answer);
	close_fd(&dead->words);
	free(dead);
}

static void remove_and_destroy(struct branching *self)
{
	struct err err;

	if (access(self->place.partial, F_OK) == 0 &&
	    remove_partial(self, NULL, &err) < 0)
		log_warn(self->workspace->name, "%s", err.msg);
	child_forget(&self->child);
	destroy(&self);
}

void branch_drop(struct workspace *workspace, const struct call *call)
{
	struct branching *self = workspace->branching;

	if (!self || self->call != call)
		return;
	workspace->branching = NULL;
	workspace_forget(workspace, self);
	loop_timer_stop(&self->timer);
	stop_child(self);
	/* What stays, the next branch of this name removes. */
	if (workspace->draining)
		destroy(&self);
	else if (self->child)
		self->dropped = true;
	else
		remove_and_destroy(self);
}

/* Ends self, by branch_drop(). */
static void fail(struct branching *self, const char *words)
{
	struct workspace *workspace = self->workspace;

	call_fail(self->call, "No branch was made: %s.", words);
	workspace_pump(workspace);
}

/* What cp said first, which is about the first file. */
static void fail_copy(struct branching *self)
{
	owned(buf_finish) struct buf words = {0};
	char text[1024];
	ssize_t len = pread(self->words, text, sizeof text, 0);
	size_t size = len > 0 ? (size_t)len : 0;
	const char *end = memchr(text, '\n', size);

	buf_text(&words, "not all files could be copied (");
	utf8_show_cut(&words, text, end ? (size_t)(end - text) : size, WORDS_SHOWN);
	buf_text(&words, ")");
	fail(self, buf_str(&words));
}

static void tell_unsaved(struct branching *self)
{
	long long cell = json_integer_of(self->answer, "cell", 0);

	if (self->gave_up)
		buf_printf(&self->call->notice,
			   "The state after cell %llu could not be saved in time: the "
			   "branch begins with the one after cell %lld.\n",
			   self->workspace->cells, cell);
}

static void finish(struct branching *self)
{
	json_auto_t *answer = json_incref(self->answer);

	if (rename(self->place.partial, self->place.dir) < 0) {
		fail(self, strerror(errno));
		return;
	}
	tell_unsaved(self);
	log_info(self->workspace->name, "branch %s made", self->place.name);
	call_on_branched(self->call, answer);
}

/* ---- files ---- */

static void copy_some(struct branching *self);

static void on_copied(int ended, void *arg)
{
	struct branching *self = arg;
	const struct walls_run run = {.control = self->control};
	struct err err;
	int status = 0;

	(void)ended; /* of the supervisor */
	self->child = NULL;
	if (self->dropped) {
		remove_and_destroy(self);
		return;
	}
	int rc = walls_run_result(&run, &status, &err);
	close_fd(&self->control);
	if (rc < 0)
		fail(self, err.msg);
	else if (status != 0)
		fail_copy(self);
	else
		copy_some(self);
}

/* cp, as the workspace's kernel would run it. */
static int run_copy(struct branching *self, const char *const *argv,
		    const struct walls_kernel *kernel, const struct walls_view *view,
		    struct err *err)
{
	const struct kernel_place *place = &self->workspace->place->kernels;
	owned(buf_finish) struct buf plan = {0};
	owned(launch_env_destroy) char **env =
	    walls_env(place->walls, view, place->env);
	struct walls_run run;

	if (walls_plan(place->walls, kernel, view, &plan, err) < 0 ||
	    open_words(self, err) < 0)
		return -1;
	const struct walls_program program = {.plan = &plan,
					      .dir = kernel->runtime_dir,
					      .argv = argv,
					      .env = env,
					      .output = self->words};
	if (walls_run(&run, place->loop, place->paths, &program, on_copied, self, err) <
	    0)
		return -1;
	self->child = run.child;
	self->control = run.control;
	return 0;
}

/* The next of the names. */
static void copy_some(struct branching *self)
{
	static unsigned number;
	static const char *const start[] = {"/usr/bin/cp", "-a", "--one-file-system",
					    "--reflink=auto", "-t"};
	const char *argv[COUNT_OF(start) + 2 + BATCH + 1] = {NULL};
	size_t at = COUNT_OF(start), last = self->next + BATCH;
	const struct workspace *workspace = self->workspace;
	const char *root = workspace->place->kernels.runtime_dir;
	const struct walls *walls = workspace->place->kernels.walls;
	struct walls_view view;
	struct err err;

	if (self->next == self->count) {
		finish(self);
		return;
	}
	owned(free_text) char *dir = xasprintf("%s/copy%u", root, ++number);
	const struct walls_kernel kernel = {.workdir = workspace->dir,
					    .home = workspace->home,
					    .runtime_dir = dir,
					    .copy = self->place.partial,
					    .owner = workspace->owner};
	walls_view(walls, &kernel, &view);
	memcpy(argv, start, sizeof start);
	argv[at++] = view.copy;
	argv[at++] = "--";
	while (self->next < self->count && self->next < last)
		argv[at++] = self->names[self->next++];
	if (mkdir(dir, 0700) < 0)
		fail(self, strerror(errno));
	else if (walls_give(workspace->owner, dir, root, &err) < 0 ||
		 run_copy(self, argv, &kernel, &view, &err) < 0)
		fail(self, err.msg);
}

/* All but the branches themselves, which are inside where the workspace is the work
 * directory. */
static int list_names(struct branching *self)
{
	DIR *dir = opendir(self->workspace->dir);
	const struct dirent *entry;
	size_t room = 0;

	if (!dir)
		return -1;
	while ((entry = readdir(dir)) && self->count <= NAMES_MAX) {
		const char *name = entry->d_name;

		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
		    strcmp(name, BRANCHES_DIR) == 0)
			continue;
		if (self->count == room) {
			room = room ? 2 * room : 64;
			self->names = xrealloc(self->names, room * sizeof(char *));
		}
		self->names[self->count++] = xstrdup(name);
	}
	closedir(dir);
	errno = E2BIG;
	return self->count <= NAMES_MAX ? 0 : -1;
}

static void copy_files(struct branching *self)
{
	struct workspace *workspace = self->workspace;
	struct err err;

	if (mkdir(self->place.partial, 0700) < 0 || list_names(self) < 0)
		fail(self, strerror(errno));
	else if (walls_give(workspace->owner, self->place.partial,
			    workspace->place->config->workdir, &err) < 0)
		fail(self, err.msg);
	else
		copy_some(self);
}

static void on_removed(int status, void *arg)
{
	struct branching *self = arg;

	self->child = NULL;
	if (self->dropped)
		remove_and_destroy(self);
	else if (status != 0)
		fail_copy(self);
	else
		copy_files(self);
}

static void on_too_long(void *arg)
{
	char words[80];

	snprintf(words, sizeof words, "copying the files took longer than %d s",
		 COPY_US / 1000000);
	fail(arg, words);
}

/* What an earlier attempt has left goes first. */
static void begin_files(struct branching *self)
{
	owned(free_text) char *parent =
	    xasprintf("%s/" BRANCHES_DIR, self->workspace->place->config->workdir);
	struct err err;

	if (mkdir(parent, 0700) < 0 && errno != EEXIST) {
		fail(self, strerror(errno));
		return;
	}
	loop_timer_start(loop_of(self), &self->timer, COPY_US, on_too_long, self);
	if (access(self->place.partial, F_OK) < 0)
		copy_files(self);
	else if (remove_partial(self, on_removed, &err) < 0)
		fail(self, err.msg);
}

/* ---- variables ---- */

static void on_state(const json_t *answer, void *arg)
{
	struct branching *self = arg;
	const char *error = json_text(answer, "error", NULL);

	if (error) {
		fail(self, error);
		return;
	}
	buf_text(&self->call->notice, json_text(answer, "words", ""));
	self->answer = json_incref((json_t *)(uintptr_t)answer);
	begin_files(self);
}

static void ask(struct branching *self)
{
	struct workspace *workspace = self->workspace;
	struct err err;

	self->asked = true;
	loop_timer_stop(&self->timer);
	owned(free_text) char *dir = xasprintf(
	    "%s/snapshots/%s", workspace->place->stores.state_dir, self->place.name);
	if (store_make_dir(&workspace->place->stores, self->place.name,
			   workspace->owner, &err) < 0 ||
	    workspace_ask(workspace,
			  json_pack("{ss ss ss ss sb}", "do", "branch", "dir", dir,
				    "workspace", self->place.name, "origin",
				    workspace->dir, "live", workspace->kernel != NULL),
			  on_state, self, &err) < 0)
		fail(self, err.msg);
}

static void on_not_saved(void *arg)
{
	struct branching *self = arg;

	self->gave_up = true;
	ask(self);
}

static int begin(struct workspace *workspace, struct call *call, struct err *err)
{
	struct branching *self = xcalloc(1, sizeof *self);

	self->words = self->control = -1;
	self->workspace = workspace;
	self->call = call;
	workspace->branching = self;
	if (branch_find_place(&self->place, workspace->place->config, workspace->name,
			      call->options.branch, err) < 0)
		return -1;
	if (branch_is_there(&self->place))
		return err_set(err, ERR_ARGUMENT, "there is a branch %s already",
			       call->options.branch);
	return 0;
}

void branch_go(struct workspace *workspace, struct call *call)
{
	struct branching *self;
	struct err err;

	if (!workspace->branching && begin(workspace, call, &err) < 0) {
		fail(workspace->branching, err.msg);
		return;
	}
	self = workspace->branching;
	if (self->asked)
		return;
	if (!workspace->kernel || !workspace->saving.store ||
	    workspace->saving.kept >= (long long)workspace->cells) {
		ask(self);
	} else if (!self->waiting) {
		self->waiting = true;
		loop_timer_start(loop_of(self), &self->timer, SAVED_US, on_not_saved,
				 self);
	}
}

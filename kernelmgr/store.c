// SPDX-License-Identifier: MIT
#include "kernelmgr/store.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernelmgr/names.h"
#include "kernelmgr/walls.h"
#include "wire/buf.h"
#include "wire/json.h"
#include "wire/log.h"
#include "wire/mem.h"
#include "wire/sender.h"

enum {
	ANSWER_MAX = 16 << 20, /* bytes of one answer */
	READ_BYTES = 64 * 1024,
};

struct job {
	STAILQ_ENTRY(job) link;
	store_done_fn *done; /* NULL: nobody wants the answer */
	void *arg;
};

struct store {
	const struct store_place *place; /* borrowed */
	char workspace[WORKSPACE_NAME_SIZE], dir[PATH_MAX];
	struct child *helper; /* NULL: none runs */
	struct loop_watch *watch;
	int socket; /* borrowed from watch */
	struct buf in;
	struct sender out;
	uid_t owner;             /* user id of the helper; 0 the daemon's */
	bool resting;            /* ends its helper with the last answer */
	STAILQ_HEAD(, job) jobs; /* job::link; sent or in out, oldest first */
	struct loop_timer failing;
};

int store_create(struct store **out, const struct store_place *place,
		 const char *workspace, uid_t owner, struct err *err)
{
	owned(store_destroy) struct store *self = xcalloc(1, sizeof *self);

	STAILQ_INIT(&self->jobs);
	self->place = place;
	self->owner = owner;
	snprintf(self->workspace, sizeof self->workspace, "%s", workspace);
	if (snprintf(self->dir, sizeof self->dir, "%s/snapshots/%s", place->state_dir,
		     workspace) >= (int)sizeof self->dir - 64)
		return err_set(err, ERR_CONFIG, "VIVARIUM_STATE_DIR is too long");
	*out = take(&self);
	return 0;
}

static void end_helper(struct store *self)
{
	loop_timer_stop(&self->failing);
	sender_close(&self->out);
	loop_unwatch(&self->watch); /* it ends with its socket */
	child_forget(&self->helper);
	buf_finish(&self->in);
}

void store_destroy(struct store **self)
{
	struct store *dead = take(self);
	struct job *job;

	if (!dead)
		return;
	end_helper(dead);
	while ((job = STAILQ_FIRST(&dead->jobs))) {
		STAILQ_REMOVE_HEAD(&dead->jobs, link);
		free(job);
	}
	free(dead);
}

const char *store_dir(const struct store *self)
{
	return self->dir;
}

bool store_busy(const struct store *self)
{
	return !STAILQ_EMPTY(&self->jobs);
}

void store_rest(struct store *self)
{
	self->resting = true;
	if (!store_busy(self))
		end_helper(self);
}

/* ---- answers ---- */

/* The oldest job gets it. */
static void answer(struct store *self, const json_t *text)
{
	struct job *job = STAILQ_FIRST(&self->jobs);

	if (!job) {
		log_warn(self->workspace, "the store answered without being asked");
		return;
	}
	STAILQ_REMOVE_HEAD(&self->jobs, link);
	if (job->done)
		job->done(text, job->arg);
	free(job);
}

/* Those that are there now: an answer may lead to a new job. */
static void fail_all(struct store *self, const char *why)
{
	json_auto_t *text = json_pack("{ss}", "error", why);
	const struct job *job;
	size_t count = 0;

	log_error(self->workspace, "%s", why);
	STAILQ_FOREACH(job, &self->jobs, link)
	count++;
	while (count--)
		answer(self, text);
}

static void on_helper_ended(int status, void *arg)
{
	struct store *self = arg;

	(void)status;
	self->helper = NULL;
	end_helper(self);
	if (store_busy(self))
		fail_all(self, "the helper that keeps saved states ended early");
}

static void take_lines(struct store *self)
{
	char *end;

	while (self->in.size && (end = memchr(self->in.data, '\n', self->in.size))) {
		json_t *text = NULL;
		struct err err;
		size_t size = (size_t)(end - self->in.data);

		if (json_parse(&text, self->in.data, size, &err) < 0)
			text = json_pack("{ss}", "error", err.msg);
		buf_drop(&self->in, size + 1);
		answer(self, text);
		json_decref(text);
	}
	if (self->resting && !store_busy(self))
		end_helper(self);
}

static void on_readable(void *arg)
{
	struct store *self = arg;
	ssize_t len = recv(self->socket, buf_reserve(&self->in, READ_BYTES), READ_BYTES,
			   MSG_DONTWAIT);

	if (len <= 0) {
		if (len == 0 || (errno != EAGAIN && errno != EINTR)) {
			sender_close(&self->out);
			loop_unwatch(&self->watch); /* its pidfd tells the rest */
		}
		return;
	}
	self->in.size += (size_t)len;
	self->in.data[self->in.size] = '\0';
	take_lines(self);
	if (self->in.size > ANSWER_MAX && self->helper)
		child_kill(self->helper);
}

/* ---- jobs ---- */

static void queue(struct store *self, json_t *text, store_done_fn *done, void *arg)
{
	owned(free_text) char *json = json_dumps(text, JSON_COMPACT);
	struct job *job = xcalloc(1, sizeof *job);

	job->done = done;
	job->arg = arg;
	STAILQ_INSERT_TAIL(&self->jobs, job, link);
	buf_printf(&self->out.unsent, "%s\n", json ? json : "{}");
	json_decref(text);
}

int store_make_dir(const struct store_place *place, const char *workspace, uid_t owner,
		   struct err *err)
{
	owned(free_text) char *parent = xasprintf("%s/snapshots", place->state_dir);
	owned(free_text) char *dir = xasprintf("%s/%s", parent, workspace);

	if ((mkdir(parent, 0700) < 0 && errno != EEXIST) ||
	    (mkdir(dir, 0700) < 0 && errno != EEXIST))
		return err_set(err, ERR_SYSTEM, "make %.150s", dir);
	return walls_give(owner, dir, place->state_dir, err);
}

static void on_started(const json_t *text, void *arg)
{
	const struct store *self = arg;
	const char *error = json_text(text, "error", NULL);

	if (error)
		log_warn(self->workspace, "store: %s", error);
}

static int start_helper(struct store *self, struct err *err)
{
	const char *const argv[] = {self->place->paths->store, NULL};
	const char *const env[] = {NULL};
	char key[2 * STORE_KEY_SIZE + 1];
	int ends[2];

	if (store_make_dir(self->place, self->workspace, self->owner, err) < 0)
		return -1;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return err_set(err, ERR_SYSTEM, "open a socket");
	owned(close_fd) int theirs = ends[1];
	owned(close_fd) int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	self->socket = ends[0];
	if (loop_watch(self->place->loop, ends[0], on_readable, self, &self->watch,
		       err) < 0)
		return -1;
	sender_open(&self->out, self->place->loop, ends[0]);
	if (null < 0)
		return err_set(err, ERR_SYSTEM, "open /dev/null");
	const int fds[] = {theirs, null, STDERR_FILENO};
	const struct launch what = {
	    .argv = argv, .env = env, .fds = fds, .fd_count = COUNT_OF(fds)};
	if (launch_child(&self->helper, self->place->loop, &what, on_helper_ended, self,
			 err) < 0)
		return -1;
	sodium_bin2hex(key, sizeof key, self->place->key, sizeof self->place->key);
	queue(self,
	      json_pack("{ss ss ss ss sI sI sI}", "do", "start", "dir", self->dir,
			"workspace", self->workspace, "key", key, "keep",
			(json_int_t)self->place->keep, "max_bytes",
			(json_int_t)self->place->max_bytes, "owner",
			(json_int_t)self->owner),
	      on_started, self);
	sodium_memzero(key, sizeof key);
	return 0;
}

static void fail_later(void *arg)
{
	struct store *self = arg;

	fail_all(self, "the helper that keeps saved states cannot be started");
}

void store_ask(struct store *self, json_t *job, store_done_fn *done, void *arg)
{
	struct err err;

	self->resting = false;
	if (!self->helper && start_helper(self, &err) < 0) {
		log_error(self->workspace, "store: %s", err.msg);
		end_helper(self);
		queue(self, job, done, arg);
		sender_close(&self->out);
		loop_timer_start(self->place->loop, &self->failing, 1, fail_later,
				 self);
		return;
	}
	queue(self, job, done, arg);
	sender_push(&self->out);
}

void store_forget(struct store *self, const void *arg)
{
	struct job *job;

	STAILQ_FOREACH(job, &self->jobs, link)
	if (job->arg == arg)
		job->done = NULL;
}

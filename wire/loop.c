// SPDX-License-Identifier: MIT
#include "wire/loop.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "wire/log.h"
#include "wire/mem.h"

enum { HEADER_TIMEOUT_S = 5 }; /* lws: headers, and the pause between body reads */

struct loop {
	struct lws_context *lws;
	bool stopping;
	unsigned long long round;
};

struct loop_watch {
	struct loop *loop;
	struct lws *wsi;
	loop_fn *ready;
	void *arg;
	bool dead; /* unwatched; lws still has to let go of it */
	/* wsi is NULL once lws has let go: it closes by itself at a hang-up */
};

static void on_closed(struct loop_watch *watch)
{
	lws_set_opaque_user_data(watch->wsi, NULL);
	watch->wsi = NULL;
	if (watch->dead)
		free(watch);
	else
		watch->ready(watch->arg); /* the owner finds the end, and unwatches */
}

static int on_fd(struct lws *wsi, enum lws_callback_reasons reason, void *user,
		 void *in, size_t len)
{
	struct loop_watch *watch = lws_get_opaque_user_data(wsi);

	(void)user, (void)in, (void)len;
	if (!watch)
		return 0; /* still being adopted */
	if (reason == LWS_CALLBACK_RAW_RX_FILE) {
		if (!watch->dead)
			watch->ready(watch->arg);
		return watch->dead ? -1 : 0; /* -1: lws closes the fd */
	}
	if (reason == LWS_CALLBACK_RAW_CLOSE_FILE)
		on_closed(watch);
	return 0;
}

static const struct lws_protocols protocols[] = {
    {.name = "fd", .callback = on_fd},
    {.name = NULL},
};

/* What lws has to say goes where all else goes.  For debugging only: what fails is
 * reported, in better words, by who asked for it. */
static void on_lws_log(int level, const char *line)
{
	(void)level;
	log_debug("libwebsockets", "%.*s", (int)strcspn(line, "\n"), line);
}

int loop_create(struct loop **out, size_t read_size, struct err *err)
{
	struct loop *self = xcalloc(1, sizeof *self);
	struct lws_context_creation_info info = {
	    .port = CONTEXT_PORT_NO_LISTEN_SERVER,
	    .protocols = protocols,
	    .pt_serv_buf_size = (unsigned int)read_size,
	    .timeout_secs = HEADER_TIMEOUT_S,
	    .max_http_header_data = LOOP_HEAD_MAX,
	    .fd_limit_per_thread = LOOP_FD_MAX,
	};

	lws_set_log_level(LLL_ERR | LLL_WARN, on_lws_log);
	self->lws = lws_create_context(&info);
	if (!self->lws)
		return err_set(err, ERR_SYSTEM, "create the event loop");
	*out = take(&self);
	return 0;
}

void loop_destroy(struct loop **self)
{
	struct loop *dead = take(self);

	if (!dead)
		return;
	if (dead->lws)
		lws_context_destroy(dead->lws);
	free(dead);
}

struct lws_context *loop_lws(struct loop *self)
{
	return self->lws;
}

void loop_run(struct loop *self)
{
	self->stopping = false;
	do
		self->round++;
	while (!self->stopping && lws_service(self->lws, 0) >= 0);
}

void loop_stop(struct loop *self)
{
	self->stopping = true;
	lws_cancel_service(self->lws); /* timers fire before poll(): wake it */
}

unsigned long long loop_round(const struct loop *self)
{
	return self->round;
}

int loop_watch(struct loop *self, int fd, loop_fn *ready, void *arg,
	       struct loop_watch **out, struct err *err)
{
	struct loop_watch *watch = xcalloc(1, sizeof *watch);
	lws_sock_file_fd_type u = {.filefd = fd};
	struct lws_vhost *vhost = lws_get_vhost_by_name(self->lws, "default");

	*watch = (struct loop_watch){.loop = self, .ready = ready, .arg = arg};
	watch->wsi =
	    lws_adopt_descriptor_vhost(vhost, LWS_ADOPT_RAW_FILE_DESC, u, "fd", NULL);
	if (!watch->wsi) {
		free(watch);
		return err_set(err, ERR_SYSTEM, "watch fd %d", fd);
	}
	lws_set_opaque_user_data(watch->wsi, watch);
	*out = watch;
	return 0;
}

/* Closing another connection inside a callback of lws is safe only later. */
void loop_unwatch(struct loop_watch **watch)
{
	struct loop_watch *self = take(watch);

	if (!self)
		return;
	self->dead = true;
	if (!self->wsi) {
		free(self);
		return;
	}
	lws_set_timeout(self->wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC);
}

static void on_timer(lws_sorted_usec_list_t *sul)
{
	struct loop_timer *timer = lws_container_of(sul, struct loop_timer, sul);

	timer->fn(timer->arg);
}

void loop_timer_start(struct loop *self, struct loop_timer *timer, int64_t usec,
		      loop_fn *fn, void *arg)
{
	timer->fn = fn;
	timer->arg = arg;
	lws_sul_schedule(self->lws, 0, &timer->sul, on_timer, usec);
}

void loop_timer_stop(struct loop_timer *timer)
{
	lws_sul_cancel(&timer->sul);
}

int64_t loop_now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

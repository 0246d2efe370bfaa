// SPDX-License-Identifier: MIT
#include "mcp/door.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "kernelmgr/state.h"
#include "mcp/lines.h"
#include "wire/json.h"
#include "wire/log.h"
#include "wire/mem.h"
#include "wire/pass.h"

enum {
	GUESTS_MAX = 64,
	FIRST_LINE_US = 5 * 1000 * 1000, /* to say who comes */
	KEY_SIZE = 32,
	KEY_HEX_SIZE = KEY_SIZE * 2 + 1,
};
#define DOOR_NAME "door"

static const char subject[] = "door";

struct guest {
	LIST_ENTRY(guest) link;
	struct door *door; /* borrowed */
	struct lines *lines;
	struct channel *channel; /* NULL until the first line */
	struct loop_timer patience;
	char user[PASS_USER_SIZE];
};

struct door {
	struct loop *loop; /* borrowed, like the next one */
	struct channels *channels;
	struct door_owner owner;
	struct loop_watch *watch;
	int fd; /* borrowed from watch */
	int dir;
	char key[KEY_HEX_SIZE];
	LIST_HEAD(, guest) guests; /* guest::link */
	int count;
};

/* ---- the address ---- */

/* By a descriptor of its directory: an address has at most 107 bytes. */
static int find_address(const char *own_dir, int *dir, struct sockaddr_un *out,
			struct err *err)
{
	*dir = open(own_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (*dir < 0)
		return err_set(err, ERR_SYSTEM, "open %.150s", own_dir);
	*out = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(out->sun_path, sizeof out->sun_path, "/proc/self/fd/%d/" DOOR_NAME,
		 *dir);
	return 0;
}

static int read_key(const char *own_dir, char out[KEY_HEX_SIZE], struct err *err)
{
	unsigned char key[KEY_SIZE];

	if (state_secret(own_dir, "door.key", key, sizeof key, err) < 0)
		return -1;
	sodium_bin2hex(out, KEY_HEX_SIZE, key, sizeof key);
	explicit_bzero(key, sizeof key);
	return 0;
}

/* Whether the one at the other end is who we are. */
static bool is_ours(int fd)
{
	struct ucred peer;
	socklen_t size = sizeof peer;

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
	       peer.uid == geteuid();
}

int door_reach(const char *own_dir, int *fd, struct err *err)
{
	owned(close_fd) int dir = -1, made = -1;
	struct sockaddr_un address;

	if (find_address(own_dir, &dir, &address, err) < 0)
		return -1;
	made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (made < 0 ||
	    connect(made, (const struct sockaddr *)&address, sizeof address) < 0)
		return err_set(err, ERR_SYSTEM, "reach %.150s/" DOOR_NAME, own_dir);
	if (!is_ours(made))
		return err_set(err, ERR_CONFIG,
			       "%.150s/" DOOR_NAME " is another user's", own_dir);
	*fd = made;
	made = -1;
	return 0;
}

int door_first_line(struct buf *out, const char *own_dir, const char *user,
		    struct err *err)
{
	char key[KEY_HEX_SIZE];

	if (read_key(own_dir, key, err) < 0)
		return -1;
	json_auto_t *line =
	    json_pack("{s{ss ss}}", "vivarium", "key", key, "user", user);
	json_write(out, line);
	explicit_bzero(key, sizeof key);
	return 0;
}

/* ---- guests ---- */

static void guest_leave(struct guest *self)
{
	struct door *door = self->door;

	LIST_REMOVE(self, link);
	loop_timer_stop(&self->patience);
	channel_destroy(&self->channel);
	lines_destroy(&self->lines);
	free(self);
	if (--door->count == 0 && door->owner.left)
		door->owner.left(door->owner.arg);
}

static void on_patience_over(void *arg)
{
	log_info(subject, "somebody said nothing, closing");
	guest_leave(arg);
}

static bool send_line(void *arg, const char *text, size_t size, bool must)
{
	struct guest *self = arg;

	return lines_send(self->lines, text, size, must);
}

static size_t waiting(void *arg)
{
	const struct guest *self = arg;

	return lines_waiting(self->lines);
}

static void who(void *arg, struct server_context *context)
{
	struct guest *self = arg;

	if (workspaces_local(context->workspaces, self->user, &context->workspace,
			     &context->refusal) < 0)
		context->workspace = NULL;
}

static bool read_first_line(struct guest *self, const char *text, size_t size)
{
	json_auto_t *line = NULL;
	struct err err;

	if (json_parse(&line, text, size, &err) < 0)
		return false;
	const json_t *hello = json_object_get(line, "vivarium");
	const char *key = json_text(hello, "key", "");
	const char *user = json_text(hello, "user", "");
	if (strlen(key) != KEY_HEX_SIZE - 1 ||
	    sodium_memcmp(key, self->door->key, KEY_HEX_SIZE - 1) != 0 ||
	    strlen(user) >= sizeof self->user)
		return false;
	memcpy(self->user, user, strlen(user) + 1);
	return true;
}

static void on_line(void *arg, const char *text, size_t size)
{
	struct guest *self = arg;

	if (self->channel) {
		channel_take(self->channel, text, size);
		return;
	}
	if (!read_first_line(self, text, size)) {
		log_warn(subject, "somebody came without the key, closing");
		guest_leave(self);
		return;
	}
	loop_timer_stop(&self->patience);
	self->channel = channel_create(
	    self->door->channels,
	    &(struct channel_link){
		.send = send_line, .waiting = waiting, .who = who, .arg = self});
}

static void on_too_long(void *arg)
{
	struct guest *self = arg;

	if (self->channel)
		channel_refuse_long(self->channel);
}

static void on_end(void *arg, bool broken)
{
	(void)broken;
	guest_leave(arg);
}

static void let_in(struct door *self, int fd)
{
	struct guest *guest = xcalloc(1, sizeof *guest);
	const struct lines_owner owner = {
	    .line = on_line, .too_long = on_too_long, .end = on_end, .arg = guest};
	int second = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	struct err err;

	guest->door = self;
	if (lines_create(&guest->lines, self->loop, fd, second, LINES_IN_MAX, &owner,
			 &err) < 0) {
		log_warn(subject, "%s", err.msg);
		free(guest);
		return;
	}
	LIST_INSERT_HEAD(&self->guests, guest, link);
	self->count++;
	loop_timer_start(self->loop, &guest->patience, FIRST_LINE_US, on_patience_over,
			 guest);
}

static void on_knock(void *arg)
{
	struct door *self = arg;
	int fd = accept4(self->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;
	if (self->count >= GUESTS_MAX || !is_ours(fd)) {
		log_warn(subject, "somebody was refused: %s",
			 self->count >= GUESTS_MAX ? "too many" : "another user");
		close(fd);
		return;
	}
	let_in(self, fd);
}

/* ---- the door ---- */

static int bind_there(struct door *self, const char *own_dir, int fd, struct err *err)
{
	struct sockaddr_un address;

	if (find_address(own_dir, &self->dir, &address, err) < 0)
		return -1;
	unlinkat(self->dir, DOOR_NAME,
		 0); /* of one that was killed: we have the lock */
	mode_t before = umask(0177);
	int bound = bind(fd, (const struct sockaddr *)&address, sizeof address);
	umask(before);
	if (bound < 0 || listen(fd, GUESTS_MAX) < 0)
		return err_set(err, ERR_SYSTEM, "listen on %.150s/" DOOR_NAME, own_dir);
	return 0;
}

int door_open(struct door **out, struct loop *loop, const char *own_dir,
	      struct channels *channels, const struct door_owner *owner,
	      struct err *err)
{
	owned(door_close) struct door *self = xcalloc(1, sizeof *self);

	*self = (struct door){
	    .loop = loop, .channels = channels, .owner = *owner, .dir = -1};
	self->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (self->fd < 0)
		return err_set(err, ERR_SYSTEM, "make a socket");
	/* consumes it */
	if (loop_watch(loop, self->fd, on_knock, self, &self->watch, err) < 0 ||
	    read_key(own_dir, self->key, err) < 0 ||
	    bind_there(self, own_dir, self->fd, err) < 0)
		return -1;
	*out = take(&self);
	return 0;
}

void door_close(struct door **self)
{
	struct door *dead = take(self);
	struct guest *guest;

	if (!dead)
		return;
	dead->owner.left = NULL;
	while ((guest = LIST_FIRST(&dead->guests)))
		guest_leave(guest);
	if (dead->dir >= 0)
		unlinkat(dead->dir, DOOR_NAME, 0);
	close_fd(&dead->dir);
	loop_unwatch(&dead->watch);
	explicit_bzero(dead->key, sizeof dead->key);
	free(dead);
}

int door_guests(const struct door *self)
{
	return self->count;
}

int door_busy(const struct door *self)
{
	const struct guest *guest;
	int busy = 0;

	LIST_FOREACH(guest, &self->guests, link)
	busy += lines_waiting(guest->lines) > 0 ||
		(guest->channel && channel_open(guest->channel) > 0);
	return busy;
}

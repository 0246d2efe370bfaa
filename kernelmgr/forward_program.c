// SPDX-License-Identifier: MIT
/*
 * vivarium-forward - carries the connections that one kernel makes to 127.0.0.1:3128 in
 * its own network to the proxy in the machine's.  It looks at nothing that it carries.
 *
 * usage: vivarium-forward HOST PORT
 * Descriptor 3 is the listening socket, which comes out of the kernel's network.  It
 * ends with the supervisor that started it (PR_SET_PDEATHSIG).
 */
#include <errno.h>
#include <grp.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kernelmgr/forward_resolve.h"

enum {
	LISTENER = 3,
	CONNECTIONS_MAX = 128, /* more wait in the backlog */
	FLOW_SIZE = 64 * 1024,
	CONNECT_US = 10 * 1000 * 1000, /* to one address */
	FAILED_US = 5 * 1000 * 1000,   /* for the kernel to read why */
	AGAIN_US = 10 * 1000,
	NOBODY = 65534,
};

enum end { KERNEL, PROXY };
enum state { RESOLVING, CONNECTING, OPEN, FAILED };

struct flow { /* from one end to the other */
	size_t from, upto;
	bool ended, shut; /* nothing more comes; that was passed on */
	char data[FLOW_SIZE];
};

struct connection {
	LIST_ENTRY(connection) link;
	enum state state;
	int fds[2];           /* by end; -1 none */
	int places[2];        /* in the list for poll(); -1 none */
	size_t address;       /* that is tried */
	int64_t until_us;     /* 0: as long as it likes */
	struct flow flows[2]; /* by the end that they come from */
};

static LIST_HEAD(, connection) connections = LIST_HEAD_INITIALIZER(connections);
static size_t count;
static struct resolver resolver;
static struct pollfd polled[2 + 2 * CONNECTIONS_MAX];

static void drop(struct connection *self)
{
	LIST_REMOVE(self, link);
	count--;
	for (int end = KERNEL; end <= PROXY; end++)
		if (self->fds[end] >= 0)
			close(self->fds[end]);
	free(self);
}

/* ---- connecting ---- */

/* The kernel's request gets an answer that says why. */
static void fail(struct connection *self, const char *why)
{
	struct flow *answer = &self->flows[PROXY];
	char body[160];
	int size = snprintf(body, sizeof body,
			    "Vivarium: the proxy cannot be reached: %s.\n", why);

	if (self->fds[PROXY] >= 0)
		close(self->fds[PROXY]);
	self->fds[PROXY] = -1;
	self->state = FAILED;
	self->until_us = now_us() + FAILED_US;
	answer->upto =
	    (size_t)snprintf(answer->data, sizeof answer->data,
			     "HTTP/1.1 502 The proxy cannot be reached: %s\r\n"
			     "Content-Type: text/plain\r\nContent-Length: %d\r\n"
			     "Connection: close\r\n\r\n%s",
			     why, size, body);
	answer->ended = true;
}

/* Tries the addresses from the present one on. */
static void connect_on(struct connection *self)
{
	int failed = 0;

	for (; self->address < resolver.count; self->address++) {
		const struct address *address = &resolver.addresses[self->address];
		int fd = socket(address->at.ss_family,
				SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

		if (fd >= 0 && (connect(fd, (const struct sockaddr *)&address->at,
					address->size) == 0 ||
				errno == EINPROGRESS)) {
			self->fds[PROXY] = fd;
			self->state = CONNECTING;
			self->until_us = now_us() + CONNECT_US;
			return;
		}
		failed = errno;
		if (fd >= 0)
			close(fd);
	}
	fail(self, failed ? strerror(failed) : "its name has no address");
}

static void connect_next(struct connection *self, int failed)
{
	close(self->fds[PROXY]);
	self->fds[PROXY] = -1;
	if (++self->address < resolver.count)
		connect_on(self);
	else
		fail(self, strerror(failed));
}

static void on_connected(struct connection *self)
{
	socklen_t size = sizeof(int);
	int failed = 0;

	getsockopt(self->fds[PROXY], SOL_SOCKET, SO_ERROR, &failed, &size);
	if (failed) {
		connect_next(self, failed);
		return;
	}
	self->state = OPEN;
	self->until_us = 0;
}

static void accept_one(void)
{
	int fd = accept4(LISTENER, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0) {
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			usleep(AGAIN_US);
		return;
	}
	struct connection *self = calloc(1, sizeof *self);
	if (!self) {
		close(fd);
		return;
	}
	self->fds[KERNEL] = fd;
	self->fds[PROXY] = -1;
	LIST_INSERT_HEAD(&connections, self, link);
	count++;
	if (resolver_ready(&resolver))
		connect_on(self);
}

static void on_resolved(void)
{
	struct connection *self;

	resolver_take(&resolver);
	LIST_FOREACH(self, &connections, link)
	if (self->state == RESOLVING)
		connect_on(self);
}

/* ---- carrying ---- */

static bool take(struct flow *flow, int from)
{
	if (flow->ended || flow->upto)
		return true;
	ssize_t len = recv(from, flow->data, sizeof flow->data, 0);
	if (len < 0)
		return errno == EAGAIN || errno == EINTR;
	flow->ended = len == 0;
	flow->upto = (size_t)len;
	return true;
}

static bool give(struct flow *flow, int to)
{
	if (to < 0) /* the proxy, when there is none */
		flow->upto = 0;
	if (flow->upto) {
		ssize_t len = send(to, flow->data + flow->from, flow->upto - flow->from,
				   MSG_NOSIGNAL);

		if (len < 0)
			return errno == EAGAIN || errno == EINTR;
		flow->from += (size_t)len;
		if (flow->from == flow->upto)
			flow->from = flow->upto = 0;
	}
	if (flow->ended && !flow->upto && !flow->shut) {
		flow->shut = true;
		if (to >= 0)
			shutdown(to, SHUT_WR);
	}
	return true;
}

/* False when it is over. */
static bool carry(struct connection *self)
{
	for (int end = KERNEL; end <= PROXY; end++) {
		struct flow *flow = &self->flows[end];

		if (!take(flow, self->fds[end]) || !give(flow, self->fds[!end]))
			return false;
	}
	return !self->flows[KERNEL].shut || !self->flows[PROXY].shut;
}

/* ---- the loop ---- */

static short events_of(const struct connection *self, enum end end)
{
	const struct flow *out = &self->flows[end], *in = &self->flows[!end];

	if (self->state == CONNECTING && end == PROXY)
		return POLLOUT;
	if (self->state < OPEN)
		return 0;
	return (short)((!out->upto && !out->ended ? POLLIN : 0) |
		       (in->upto ? POLLOUT : 0));
}

/* A descriptor of which nothing is wanted is left out: poll() would tell for ever that
 * its other end has hung up. */
static nfds_t fill_polled(void)
{
	struct connection *self;
	nfds_t used = 0;

	polled[used++] =
	    (struct pollfd){count < CONNECTIONS_MAX ? LISTENER : -1, POLLIN, 0};
	polled[used++] = (struct pollfd){resolver.answer, POLLIN, 0};
	LIST_FOREACH(self, &connections, link)
	for (int end = KERNEL; end <= PROXY; end++) {
		short events = events_of(self, (enum end)end);

		self->places[end] = events && self->fds[end] >= 0 ? (int)used : -1;
		if (self->places[end] >= 0)
			polled[used++] = (struct pollfd){self->fds[end], events, 0};
	}
	return used;
}

/* Milliseconds until the first deadline; -1 there is none. */
static int next_deadline(void)
{
	int64_t first = INT64_MAX, now = now_us();
	struct connection *self;

	LIST_FOREACH(self, &connections, link)
	if (self->until_us && self->until_us < first)
		first = self->until_us;
	if (first == INT64_MAX)
		return -1;
	return first > now ? (int)((first - now) / 1000) + 1 : 0;
}

static bool has_event(const struct connection *self)
{
	for (int end = KERNEL; end <= PROXY; end++)
		if (self->places[end] >= 0 && polled[self->places[end]].revents)
			return true;
	return false;
}

static void go_on(struct connection *self)
{
	bool late = self->until_us && now_us() >= self->until_us;

	if (has_event(self)) {
		if (self->state == CONNECTING)
			on_connected(self);
		if (self->state >= OPEN && !carry(self))
			drop(self);
	} else if (late && self->state == CONNECTING) {
		connect_next(self, ETIMEDOUT);
	} else if (late && self->state == FAILED) {
		drop(self);
	}
}

static void serve(void)
{
	for (;;) {
		nfds_t used = fill_polled();
		struct connection *self = LIST_FIRST(&connections), *next;

		if (poll(polled, used, next_deadline()) < 0)
			continue;
		for (; self; self = next) {
			next = LIST_NEXT(self, link);
			go_on(self);
		}
		if (polled[1].revents)
			on_resolved();
		if (polled[0].revents)
			accept_one();
	}
}

/* It needs no right but to connect.  Not every container has this user: then it stays
 * who it is. */
static void give_up_rights(void)
{
	if (geteuid() == 0 && setgroups(0, NULL) == 0 &&
	    setresgid(NOBODY, NOBODY, NOBODY) == 0 &&
	    setresuid(NOBODY, NOBODY, NOBODY) == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* which that had cleared */
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_DUMPABLE, 0);
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	prctl(PR_SET_NAME, "viv-forward");
	give_up_rights();
	if (getppid() == 1) /* it was gone before we asked to end with it */
		return 1;
	mallopt(M_MMAP_THRESHOLD, FLOW_SIZE); /* what is freed is given back */
	resolver_init(&resolver, argv[1], argv[2]);
	serve();
}

// SPDX-License-Identifier: MIT
#include "kernelmgr/forward_resolve.h"

#include <netdb.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { KEEP_US = 10 * 1000 * 1000 };

int64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static size_t look_up(const struct resolver *self, int flags,
		      struct address out[ADDRESSES_MAX])
{
	const struct addrinfo hints = {.ai_flags = flags | AI_NUMERICSERV,
				       .ai_socktype = SOCK_STREAM};
	struct addrinfo *list, *at;
	size_t count = 0;

	if (getaddrinfo(self->host, self->port, &hints, &list) != 0)
		return 0;
	for (at = list; at && count < ADDRESSES_MAX; at = at->ai_next) {
		if (at->ai_addrlen > sizeof out->at)
			continue;
		memset(&out[count], 0, sizeof *out);
		memcpy(&out[count].at, at->ai_addr, at->ai_addrlen);
		out[count++].size = at->ai_addrlen;
	}
	freeaddrinfo(list);
	return count;
}

void resolver_init(struct resolver *self, const char *host, const char *port)
{
	*self = (struct resolver){.host = host, .port = port, .answer = -1};
	self->count = look_up(self, AI_NUMERICHOST, self->addresses);
	if (self->count)
		self->until_us = INT64_MAX;
}

static void ask(struct resolver *self)
{
	int ends[2];

	if (pipe(ends) < 0)
		return;
	self->child = fork();
	if (self->child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* A copy here would keep connections open that are closed there. */
		syscall(SYS_close_range, 3, (unsigned)ends[1] - 1, 0);
		syscall(SYS_close_range, (unsigned)ends[1] + 1, ~0u, 0);
		size_t count = look_up(self, 0, self->addresses);
		size_t size = count * sizeof self->addresses[0];

		_exit(write(ends[1], self->addresses, size) != (ssize_t)size);
	}
	close(ends[1]);
	if (self->child < 0)
		close(ends[0]);
	else
		self->answer = ends[0];
}

bool resolver_ready(struct resolver *self)
{
	if (self->answer >= 0)
		return false;
	if (now_us() < self->until_us)
		return true;
	self->count = 0;
	ask(self);
	return self->answer < 0; /* it cannot even be asked */
}

void resolver_take(struct resolver *self)
{
	/* Written at once and smaller than a pipe. */
	ssize_t len = read(self->answer, self->addresses, sizeof self->addresses);

	self->count = len > 0 ? (size_t)len / sizeof self->addresses[0] : 0;
	self->until_us = self->count ? now_us() + KEEP_US : 0;
	close(self->answer);
	self->answer = -1;
	waitpid(self->child, NULL, 0);
}

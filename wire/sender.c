// SPDX-License-Identifier: MIT
#include "wire/sender.h"

#include <errno.h>
#include <sys/socket.h>

enum { AGAIN_US = 1000 /* until it may read again */ };

void sender_open(struct sender *self, struct loop *loop, int fd)
{
	self->loop = loop;
	self->fd = fd;
}

static void on_again(void *arg)
{
	sender_push(arg);
}

void sender_push(struct sender *self)
{
	while (self->unsent.size && self->loop) {
		ssize_t len = send(self->fd, self->unsent.data, self->unsent.size,
				   MSG_DONTWAIT | MSG_NOSIGNAL);

		if (len < 0 && errno == EINTR)
			continue;
		if (len < 0 && errno == EAGAIN)
			loop_timer_start(self->loop, &self->again, AGAIN_US, on_again,
					 self);
		if (len < 0)
			return;
		buf_drop(&self->unsent, (size_t)len);
	}
	if (!self->unsent.size)
		buf_finish(&self->unsent);
}

void sender_close(struct sender *self)
{
	loop_timer_stop(&self->again);
	buf_finish(&self->unsent);
	self->loop = NULL;
	self->fd = -1;
}

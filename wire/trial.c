// SPDX-License-Identifier: MIT
#include "wire/trial.h"

#include <sys/socket.h>
#include <unistd.h>

#include "wire/mem.h"

enum { LIMIT_US = 5 * 1000 * 1000 };

static void on_deadline(void *arg)
{
	loop_stop(arg);
}

/* Gives lws one end of a connection on which the input has come already, and nothing
 * else will; returns the other end, or -1. */
static int send_input(struct lws_vhost *vhost, const struct trial_input *input)
{
	int ends[2];

	if (!vhost || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
				 ends) < 0)
		return -1;
	if (send(ends[0], input->text, input->size, MSG_NOSIGNAL) < 0 ||
	    shutdown(ends[0], SHUT_WR) < 0 || !lws_adopt_socket_vhost(vhost, ends[1])) {
		close(ends[0]);
		return -1;
	}
	return ends[0];
}

int trial_run(struct trial *self, const struct trial_input *inputs, size_t count,
	      struct err *err)
{
	struct lws_context_creation_info info = {.vhost_name = self->vhost,
						 .port = CONTEXT_PORT_NO_LISTEN_SERVER,
						 .protocols = self->protocols};
	struct loop_timer deadline = {0};
	int ends[TRIAL_INPUTS_MAX], result = 0;
	size_t open = 0;

	self->protocols[0] =
	    (struct lws_protocols){.name = "trial", .callback = self->callback};
	struct lws_vhost *vhost = lws_create_vhost(loop_lws(self->loop), &info);
	for (; open < count && result == 0; open++)
		if ((ends[open] = send_input(vhost, &inputs[open])) < 0)
			result = err_set(err, ERR_SYSTEM, "try libwebsockets");
	if (result == 0) {
		loop_timer_start(self->loop, &deadline, LIMIT_US, on_deadline,
				 self->loop);
		loop_run(self->loop);
		loop_timer_stop(&deadline);
	}
	while (open--)
		close_fd(&ends[open]);
	return result;
}

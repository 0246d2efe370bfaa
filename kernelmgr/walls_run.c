// SPDX-License-Identifier: MIT
/* A short program behind walls: what has no kernel's channels. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kernelmgr/walls.h"
#include "wire/mem.h"

static void free_argv(const char ***argv)
{
	free(*argv);
}

int walls_run(struct walls_run *out, struct loop *loop,
	      const struct launch_paths *paths, const struct walls_program *program,
	      child_ended_fn *ended, void *arg, struct err *err)
{
	owned(close_fd) int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int output = program->output < 0 ? null : program->output, control[2];
	size_t count = 0;

	if (null < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) < 0)
		return err_set(err, ERR_SYSTEM, "open a socket");
	owned(close_fd) int ours = control[0];
	owned(close_fd) int theirs = control[1];
	if (send(ours, program->plan->data, program->plan->size, MSG_NOSIGNAL) < 0)
		return err_set(err, ERR_SYSTEM, "tell the plan");
	while (program->argv[count])
		count++;
	owned(free_argv) const char **argv = xcalloc(count + 3, sizeof *argv);
	argv[0] = paths->supervisor;
	argv[1] = program->dir;
	memcpy(argv + 2, program->argv, count * sizeof *argv);
	const struct launch what = {
	    .argv = argv,
	    .env = (const char *const *)(uintptr_t)program->env,
	    .fds = (const int[]){null, output, output, theirs, null, null, null},
	    .fd_count = 7,
	};
	if (launch_child(&out->child, loop, &what, ended, arg, err) < 0)
		return -1;
	out->control = ours;
	ours = -1; /* handed over */
	return 0;
}

int walls_run_result(const struct walls_run *self, int *status, struct err *err)
{
	char text[256];
	ssize_t len;

	while ((len = recv(self->control, text, sizeof text - 1, MSG_DONTWAIT)) > 0) {
		text[len] = '\0';
		if (strncmp(text, "failed ", 7) == 0)
			return err_set(err, ERR_CONFIG, "%.200s", text + 7);
		if (sscanf(text, "end %d", status) == 1)
			return 0;
	}
	return err_set(err, ERR_CONFIG, "nothing was heard of a program behind it");
}

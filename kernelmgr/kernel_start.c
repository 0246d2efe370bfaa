// SPDX-License-Identifier: MIT
/* The process side of a kernel: its channels, its supervisor and what that reports. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kernelmgr/kernel_impl.h"
#include "wire/connfile.h"
#include "wire/log.h"
#include "wire/mem.h"

enum {
	/* Characters in one stream message: with the messages that may wait here (see
	 * kernel_messages.c) this bounds what a flood costs us. */
	STREAM_SPLIT = 32 * 1024,
	SUMMARY_MAX = 16 * 1024,      /* bytes of names in a reply's metadata */
	CRASH_OUTPUT_MAX = 32 * 1024, /* bytes kept of what it wrote to our pipe */
	READS_PER_TURN = 16,
};

/* ---- the supervisor ---- */

static void on_supervisor_ended(int status, void *arg)
{
	struct kernel *self = arg;

	(void)status;
	self->supervisor = NULL;
	if (self->state >= KERNEL_CLOSING)
		return;
	/* It ends by itself only after it has told us how the kernel ended. */
	self->death.status = -1;
	launch_sweep_orphans(self->place->loop);
	kernel_begin_closing(self, "supervisor gone");
}

static void on_end_report(struct kernel *self, const char *text)
{
	long long user_us, system_us, memory_kb;

	if (sscanf(text, "end %d %lld %lld %lld", &self->death.status, &user_us,
		   &system_us, &memory_kb) == 4)
		self->death.memory_kb = memory_kb;
	kernel_begin_closing(self, "process ended");
}

static void on_control(void *arg)
{
	struct kernel *self = arg;
	char text[256];
	ssize_t len = recv(self->control, text, sizeof text - 1, MSG_DONTWAIT);

	if (len <= 0) {
		if (len == 0 || errno != EAGAIN)
			loop_unwatch(&self->control_watch); /* pidfd tells the rest */
		return;
	}
	text[len] = '\0';
	if (strncmp(text, "started ", 8) == 0) {
		self->pid = (pid_t)strtol(text + 8, NULL, 10);
		log_info(self->name, "kernel process %d started", (int)self->pid);
	} else if (strncmp(text, "failed ", 7) == 0) {
		snprintf(self->death.words, sizeof self->death.words,
			 "could not be started: %s", text + 7);
		kernel_begin_closing(self, "failed");
	} else if (strncmp(text, "end ", 4) == 0) {
		on_end_report(self, text);
	}
}

static void on_output(void *arg)
{
	struct kernel *self = arg;
	char text[4096];

	for (int i = 0; i < READS_PER_TURN; i++) {
		ssize_t len = read(self->output, text, sizeof text);

		if (len <= 0) {
			if (len == 0 || (errno != EAGAIN && errno != EINTR))
				loop_unwatch(&self->output_watch);
			return;
		}
		buf_add(&self->crash_output, text, (size_t)len);
		if (self->crash_output.size > CRASH_OUTPUT_MAX)
			buf_drop(&self->crash_output,
				 self->crash_output.size - CRASH_OUTPUT_MAX);
	}
}

/* "ready" when its sockets are bound; "run ID" before the code of a request begins,
 * through a socket, so that it is known even if the code is the process's end. */
static void take_report(struct kernel *self, const char *line)
{
	if (strcmp(line, "ready") == 0 && self->state == KERNEL_LAUNCHING) {
		self->death.tells_begun = true;
		kernel_connect(self);
	} else if (strncmp(line, "run ", 4) == 0) {
		snprintf(self->death.last_begun, sizeof self->death.last_begun, "%s",
			 line + 4);
		self->owner.begun(self->death.last_begun, self->owner.arg);
	}
}

static void on_report(void *arg)
{
	struct kernel *self = arg;
	char text[512], *end;
	ssize_t len =
	    lastwords_recv(&self->last_words, self->report, text, sizeof text);

	if (len <= 0) {
		if (len == 0 || (errno != EAGAIN && errno != EINTR))
			loop_unwatch(&self->report_watch);
		return;
	}
	buf_add(&self->reported, text, (size_t)len);
	while ((end = memchr(self->reported.data, '\n', self->reported.size))) {
		*end = '\0';
		take_report(self, self->reported.data);
		buf_drop(&self->reported, (size_t)(end - self->reported.data) + 1);
	}
	if (self->reported.size > JMSG_ID_SIZE * 2) /* no line of ours is that long */
		buf_finish(&self->reported);
}

/* ---- start ---- */

struct ends { /* of everything the supervisor is given */
	int null, output[2], control[2], report[2], connection;
};

static void close_ends(struct ends *ends)
{
	close_fd(&ends->null);
	close_fd(&ends->connection);
	for (int i = 0; i < 2; i++) {
		close_fd(&ends->output[i]);
		close_fd(&ends->control[i]);
		close_fd(&ends->report[i]);
	}
}

static int open_ends(struct ends *ends, struct kernel *self, struct err *err)
{
	const struct connfile connection = {
	    .key = self->session.key,
	    .runtime_dir = self->runtime_dir,
	    .peer_pid = getpid(),
	    .stream_split = STREAM_SPLIT,
	    .summary_max = SUMMARY_MAX,
	};

	ends->null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (ends->null < 0 || pipe2(ends->output, O_CLOEXEC | O_NONBLOCK) < 0 ||
	    fcntl(ends->output[1], F_SETFL, 0) < 0 || /* only our end must not block */
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends->report) < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends->control) < 0)
		return err_set(err, ERR_SYSTEM, "open the pipes of %s", self->name);
	ends->connection = connfile_memfd(&connection, err);
	return ends->connection < 0 ? -1 : 0;
}

static int watch(struct kernel *self, int *end, int *fd, loop_fn *fn,
		 struct loop_watch **out, struct err *err)
{
	*fd = *end;
	*end = -1; /* consumed */
	return loop_watch(self->place->loop, *fd, fn, self, out, err);
}

int kernel_start(struct kernel *self, const char *workdir, struct err *err)
{
	owned(close_ends) struct ends ends = {-1, {-1, -1}, {-1, -1}, {-1, -1}, -1};
	const struct launch_paths *paths = self->place->paths;
	const char *const argv[] = {paths->supervisor, self->runtime_dir, paths->python,
				    paths->pyside, NULL};

	if (open_ends(&ends, self, err) < 0)
		return -1;
	const int fds[] = {ends.null,       ends.output[1],  ends.output[1],
			   ends.control[1], ends.connection, ends.report[1]};
	const struct launch what = {
	    .argv = argv,
	    .env = (const char *const *)(uintptr_t)self->place->env,
	    .cwd = workdir,
	    .fds = fds,
	    .fd_count = COUNT_OF(fds),
	};
	if (watch(self, &ends.control[0], &self->control, on_control,
		  &self->control_watch, err) < 0 ||
	    watch(self, &ends.report[0], &self->report, on_report, &self->report_watch,
		  err) < 0 ||
	    watch(self, &ends.output[0], &self->output, on_output, &self->output_watch,
		  err) < 0)
		return -1;
	return launch_child(&self->supervisor, self->place->loop, &what,
			    on_supervisor_ended, self, err);
}

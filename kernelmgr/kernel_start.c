// SPDX-License-Identifier: MIT
/* The process side of a kernel: its channels, its supervisor and what that reports. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernelmgr/kernel_impl.h"
#include "wire/connfile.h"
#include "wire/log.h"
#include "wire/mem.h"
#include "wire/unixsock.h"

enum {
	/* Characters in one stream message: so much of a flood is read at once. */
	STREAM_SPLIT = 32 * 1024,
	SUMMARY_MAX = 16 * 1024,      /* bytes of names in a reply's metadata */
	CRASH_OUTPUT_MAX = 32 * 1024, /* bytes kept of what it wrote to our pipe */
	READS_PER_TURN = 16,
	LINE_BYTES_MAX = 4096, /* of a report */
};

/* ---- what the kernel reports ---- */

/* The record that pyside's comeback.py keeps in the spool: the number as 4 bytes, then
 * the name.  It is there also when the kernel is not. */
long long kernel_progress(const struct kernel *self, char name[KERNEL_NAME_SIZE])
{
	char path[PATH_MAX + 16], record[4 + KERNEL_NAME_SIZE];
	uint32_t number;

	name[0] = '\0';
	snprintf(path, sizeof path, "%s/restoring", self->spool);
	owned(close_fd) int fd =
	    open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || pread(fd, record, sizeof record, 0) != (ssize_t)sizeof record)
		return -1;
	memcpy(&number, record, sizeof number);
	memcpy(name, record + 4, KERNEL_NAME_SIZE);
	name[KERNEL_NAME_SIZE - 1] = '\0';
	return number;
}

static void note_restoring(struct kernel *self, bool restoring)
{
	if (restoring == self->restoring ||
	    (self->state != KERNEL_PROBING && self->state != KERNEL_RESTORING))
		return;
	self->restoring = restoring;
	self->restored_upto = -1;
	kernel_set_state(self, restoring ? KERNEL_RESTORING : KERNEL_PROBING,
			 "it says so");
	if (!restoring)
		kernel_probe(self);
}

/* "ready" when its sockets are bound; "run ID" before the code of a request begins,
 * through a socket, so that it is known even if the code is the process's end. */
static void take_report(struct kernel *self, const char *line)
{
	if (strcmp(line, "ready") == 0 && self->state == KERNEL_LAUNCHING) {
		self->death.tells_begun = true;
		unixsock_refuse_descriptors(self->report); /* it has sent its own */
		kernel_connect(self);
	} else if (strncmp(line, "run ", 4) == 0) {
		snprintf(self->death.last_begun, sizeof self->death.last_begun, "%s",
			 line + 4);
		if (self->owner.begun)
			self->owner.begun(self->death.last_begun, self->owner.arg);
	} else if (strncmp(line, "saved ", 6) == 0 && self->owner.saved) {
		self->owner.saved(strtoull(line + 6, NULL, 10), self->owner.arg);
	} else if (strncmp(line, "damaged ", 8) == 0 && self->owner.damaged) {
		self->owner.damaged(line + 8, self->owner.arg);
	} else if (strcmp(line, "restoring") == 0) {
		note_restoring(self, true);
	} else if (strcmp(line, "restored") == 0) {
		note_restoring(self, false);
	}
}

/* False: nothing more is there now. */
static bool read_report(struct kernel *self)
{
	char text[512], *end;
	ssize_t len =
	    lastwords_recv(&self->last_words, self->report, text, sizeof text);

	if (len <= 0) {
		if (len == 0 || (errno != EAGAIN && errno != EINTR))
			loop_unwatch(&self->report_watch);
		return false;
	}
	buf_add(&self->reported, text, (size_t)len);
	while ((end = memchr(self->reported.data, '\n', self->reported.size))) {
		*end = '\0';
		take_report(self, self->reported.data);
		buf_drop(&self->reported, (size_t)(end - self->reported.data) + 1);
	}
	if (self->reported.size > LINE_BYTES_MAX) /* no line of ours is that long */
		buf_finish(&self->reported);
	return true;
}

static void on_report(void *arg)
{
	read_report(arg);
}

/* Of a channel whose other side is dead; read_one is false when nothing is there. */
static void read_rest(struct kernel *self, struct loop_watch *const *watch,
		      bool (*read_one)(struct kernel *self))
{
	for (int i = 0; i < READS_PER_TURN && *watch && read_one(self); i++)
		;
}

/* What it had reported comes before its end, though by another socket: that it was
 * restoring, above all, says which name was its death. */
static void begin_closing(struct kernel *self, const char *why)
{
	read_rest(self, &self->report_watch, read_report);
	kernel_begin_closing(self, why);
}

/* ---- the supervisor ---- */

static void on_end_report(struct kernel *self, const char *text)
{
	long long user_us, system_us, memory_kb;

	if (self->state >= KERNEL_CLOSING) /* process 1 of its namespaces came first */
		return;
	if (sscanf(text, "end %d %lld %lld %lld", &self->death.status, &user_us,
		   &system_us, &memory_kb) == 4)
		self->death.memory_kb = memory_kb;
	begin_closing(self, "process ended");
}

/* As recv(); sender gets the pid of the process that sent it, as we see it. */
static ssize_t recv_from_process(int fd, char *text, size_t size, pid_t *sender)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(struct ucred))];
	} control;
	struct iovec part = {text, size};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof control};
	ssize_t len = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct cmsghdr *found = len < 0 ? NULL : CMSG_FIRSTHDR(&message);

	if (found && found->cmsg_type == SCM_CREDENTIALS) {
		struct ucred who;

		memcpy(&who, CMSG_DATA(found), sizeof who);
		*sender = who.pid;
	}
	return len;
}

/* False: nothing more is there now. */
static bool read_control(struct kernel *self)
{
	char text[256];
	pid_t sender = 0;
	ssize_t len = recv_from_process(self->control, text, sizeof text - 1, &sender);

	if (len <= 0) {
		if (len == 0 || errno != EAGAIN)
			loop_unwatch(&self->control_watch); /* pidfd tells the rest */
		return false;
	}
	text[len] = '\0';
	if (strcmp(text, "started") == 0) {
		self->pid = sender;
		log_info(self->name, "kernel process %d started", (int)self->pid);
	} else if (strncmp(text, "failed ", 7) == 0) {
		snprintf(self->death.words, sizeof self->death.words,
			 "could not be started: %s", text + 7);
		begin_closing(self, "failed");
	} else if (strncmp(text, "end ", 4) == 0) {
		on_end_report(self, text);
	}
	return true;
}

static void on_control(void *arg)
{
	read_control(arg);
}

/* It ends by itself only after it has told us how the kernel ended. */
static void on_supervisor_ended(int status, void *arg)
{
	struct kernel *self = arg;

	(void)status;
	self->supervisor = NULL;
	read_rest(self, &self->control_watch, read_control);
	if (self->state >= KERNEL_CLOSING)
		return;
	self->death.status = -1;
	launch_sweep_orphans(self->place->loop);
	begin_closing(self, "supervisor gone");
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

/* ---- start ---- */

struct ends { /* of everything the supervisor is given */
	int null, output[2], control[2], report[2], connection, notices[2];
};

static void close_ends(struct ends *ends)
{
	close_fd(&ends->null);
	close_fd(&ends->connection);
	for (int i = 0; i < 2; i++) {
		close_fd(&ends->output[i]);
		close_fd(&ends->control[i]);
		close_fd(&ends->report[i]);
		close_fd(&ends->notices[i]);
	}
}

static int open_connection(struct ends *ends, struct kernel *self,
			   const struct kernel_begin *begin,
			   const struct walls_view *view, struct err *err)
{
	owned(free_text) char *manifest = NULL;
	struct connfile_snapshot snapshot;
	struct connfile connection = {
	    .key = self->session.key,
	    .runtime_dir = view->runtime_dir,
	    .peer_pid = view->peer,
	    .stream_split = STREAM_SPLIT,
	    .summary_max = SUMMARY_MAX,
	    .cell = begin->cell,
	};

	if (begin->snapshot) {
		snapshot = *begin->snapshot;
		snapshot.store = view->store;
		snapshot.spool = view->spool;
		if (snapshot.manifest) {
			manifest = xasprintf("%s%s", view->store,
					     snapshot.manifest +
						 strlen(begin->snapshot->store));
			snapshot.manifest = manifest;
		}
		if (view->fixed) /* it sees them where they were */
			snapshot.moved_from = NULL;
		connection.snapshot = &snapshot;
	}
	ends->connection = connfile_memfd(&connection, err);
	return ends->connection < 0 ? -1 : 0;
}

static int open_ends(struct ends *ends, struct kernel *self, struct err *err)
{
	const int on = 1;

	ends->null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (ends->null < 0 || pipe2(ends->output, O_CLOEXEC | O_NONBLOCK) < 0 ||
	    fcntl(ends->output[1], F_SETFL, 0) < 0 || /* only our end must not block */
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends->report) < 0 ||
	    pipe2(ends->notices, O_CLOEXEC | O_NONBLOCK) < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends->control) < 0 ||
	    setsockopt(ends->control[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof on) < 0)
		return err_set(err, ERR_SYSTEM, "open the pipes of %s", self->name);
	return 0;
}

/* The first message that the supervisor reads: it waits there for it already. */
static int send_plan(struct ends *ends, struct kernel *self,
		     const struct walls_kernel *seen, const struct walls_view *view,
		     struct err *err)
{
	owned(buf_finish) struct buf plan = {0};

	if (limits_begin(self->place->limits, &self->limits, self->number, err) < 0 ||
	    walls_plan(self->place->walls, seen, view, &plan, err) < 0)
		return -1;
	limits_plan(self->place->limits, &self->limits, &plan);
	if (send(ends->control[0], plan.data, plan.size, MSG_NOSIGNAL) < 0)
		return err_set(err, ERR_SYSTEM, "tell the plan of %s", self->name);
	return 0;
}

/* Its runtime directory, and what lies in it from the start. */
static int make_own(const struct kernel *self, uid_t owner, struct err *err)
{
	owned(free_text) char *tmp = xasprintf("%s/tmp", self->runtime_dir);
	const char *root = self->place->runtime_dir;

	if (walls_give(owner, self->runtime_dir, root, err) < 0)
		return -1;
	if (mkdir(tmp, 0700) < 0)
		return err_set(err, ERR_SYSTEM, "make %.150s", tmp);
	return walls_give(owner, tmp, root, err);
}

static int watch(struct kernel *self, int *end, int *fd, loop_fn *fn,
		 struct loop_watch **out, struct err *err)
{
	*fd = *end;
	*end = -1; /* consumed */
	return loop_watch(self->place->loop, *fd, fn, self, out, err);
}

int kernel_start(struct kernel *self, const struct kernel_begin *begin, struct err *err)
{
	owned(close_ends) struct ends ends = {-1,       {-1, -1}, {-1, -1},
					      {-1, -1}, -1,       {-1, -1}};
	const struct launch_paths *paths = self->place->paths;
	const char *const argv[] = {paths->supervisor, self->runtime_dir, paths->python,
				    paths->pyside, NULL};

	const struct walls_kernel seen = {
	    .workdir = begin->workdir,
	    .home = begin->home,
	    .runtime_dir = self->runtime_dir,
	    .store = begin->snapshot ? begin->snapshot->store : NULL,
	    .spool = begin->snapshot ? begin->snapshot->spool : NULL,
	    .number = self->number,
	    .owner = begin->owner,
	};
	struct walls_view view;

	walls_view(self->place->walls, &seen, &view);
	if (make_own(self, begin->owner, err) < 0 || open_ends(&ends, self, err) < 0 ||
	    open_connection(&ends, self, begin, &view, err) < 0 ||
	    send_plan(&ends, self, &seen, &view, err) < 0)
		return -1;
	owned(launch_env_destroy) char **env =
	    walls_env(self->place->walls, &view, self->place->env);
	self->notices = ends.notices[1];
	ends.notices[1] = -1; /* handed over */
	if (begin->snapshot)
		snprintf(self->spool, sizeof self->spool, "%s", begin->snapshot->spool);
	const int fds[] = {ends.null,       ends.output[1],  ends.output[1],
			   ends.control[1], ends.connection, ends.report[1],
			   ends.notices[0]};
	const struct launch what = {
	    .argv = argv,
	    .env = (const char *const *)(uintptr_t)env,
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

// SPDX-License-Identifier: MIT
#include "kernelmgr/kernel.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "wire/buf.h"
#include "wire/connfile.h"
#include "wire/log.h"
#include "wire/mem.h"
#include "wire/utf8.h"

enum {
	STREAM_SPLIT = 32 * 1024, /* characters in one stream message */
	SUMMARY_MAX = 16 * 1024,  /* bytes of names in a reply's metadata */
	IOPUB_WAITING_MAX = 100,  /* messages here; the rest waits in the kernel */
	PROBE_EVERY_US = 100 * 1000,
	CRASH_OUTPUT_MAX = 4096, /* bytes kept of what it wrote to our pipe */
	CRASH_LINES = 3,         /* of it shown when it dies */
	CLOSING_TURNS_MAX = 40,  /* of CLOSING's deadline while output comes */
	READS_PER_TURN = 16,
};

struct kernel {
	/* fixed at create */
	const struct kernel_place *place; /* borrowed */
	struct kernel_owner owner;
	char name[80]; /* for the log: workspace and number */
	char runtime_dir[PATH_MAX];

	enum kernel_state state;
	struct loop_timer deadline, probe;
	struct child *supervisor; /* NULL once it has ended */
	struct loop_watch *control_watch, *report_watch, *output_watch;
	int control, report, output; /* borrowed from the watches */
	struct buf reported;         /* a line of its report that is not whole yet */
	pid_t pid;

	struct zsock *sockets[3]; /* by kernel_channel */
	struct replay_guard replays[3];
	struct jmsg_session session;
	char probe_id[JMSG_ID_SIZE];
	bool probe_answered, iopub_heard;
	unsigned long long messages, dropped;

	struct buf crash_output;
	struct kernel_death death;
	int closing_turns;
	unsigned long long messages_at_turn;
};

#define TO(id) (1u << KERNEL_##id)
static const struct {
	const char *name;
	unsigned next;
	double deadline_s;
	const char *then;
} rows[] = {
#define X(id, text, next, deadline_s, then)                                            \
	[KERNEL_##id] = {text, next, deadline_s, then},
    KERNEL_STATES(X)
#undef X
};

static void on_deadline(void *arg);
static void connect_sockets(struct kernel *self);

enum kernel_state kernel_state(const struct kernel *self)
{
	return self->state;
}

const char *kernel_state_name(enum kernel_state state)
{
	return rows[state].name;
}

pid_t kernel_pid(const struct kernel *self)
{
	return self->pid;
}

void kernel_states_markdown(FILE *to)
{
	fprintf(to, "| state | may become | deadline | then |\n|---|---|---|---|\n");
	for (int i = 0; i < KERNEL_STATE_COUNT; i++) {
		fprintf(to, "| %s |", rows[i].name);
		for (int next = 0; next < KERNEL_STATE_COUNT; next++)
			if (rows[i].next & (1u << next))
				fprintf(to, " %s", rows[next].name);
		if (rows[i].deadline_s > 0)
			fprintf(to, " | %g s | %s |\n", rows[i].deadline_s,
				rows[i].then);
		else
			fprintf(to, " | - | - |\n");
	}
}

/* The only way to change state. */
static void set_state(struct kernel *self, enum kernel_state next, const char *why)
{
	assert(rows[self->state].next & (1u << next));
	log_debug(self->name, "%s -> %s (%s)", rows[self->state].name, rows[next].name,
		  why);
	self->state = next;
	loop_timer_stop(&self->deadline);
	if (rows[next].deadline_s > 0)
		loop_timer_start(self->place->loop, &self->deadline,
				 (int64_t)(rows[next].deadline_s * 1e6), on_deadline,
				 self);
}

static void tell_supervisor(struct kernel *self, const char *text)
{
	if (self->control_watch)
		send(self->control, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* ---- death ---- */

/* The last lines that it wrote to our pipe, such as a start-up error or the report
 * of a crash, as one line of text. */
static void add_crash_output(struct kernel *self)
{
	struct buf *out = &self->crash_output;
	int lines = 0;

	while (out->size && strchr("\n ", out->data[out->size - 1]))
		out->data[--out->size] = '\0';
	const char *from = buf_str(out) + out->size;
	while (from > buf_str(out) && (from[-1] != '\n' || ++lines < CRASH_LINES))
		from--;
	if (!*from)
		return;
	owned(buf_finish) struct buf shown = {0};
	utf8_show(&shown, from, strlen(from));
	size_t at = strlen(self->death.words);
	snprintf(self->death.words + at, sizeof self->death.words - at, "; it said: %s",
		 buf_str(&shown));
}

static void describe_death(struct kernel *self)
{
	struct kernel_death *death = &self->death;
	char *words = death->words;
	size_t size = sizeof death->words;

	if (death->words[0] || death->status < 0) {
		if (!death->words[0])
			snprintf(words, size, "was lost: its supervisor was killed");
	} else if (WIFSIGNALED(death->status)) {
		int number = WTERMSIG(death->status);
		const char *name = sigabbrev_np(number);
		int len = snprintf(words, size, "was killed by signal %d (SIG%s)",
				   number, name ? name : "?");

		if (number == SIGKILL && !death->requested && death->memory_kb)
			snprintf(words + len, size - (size_t)len,
				 " at a peak of %lld MB of memory",
				 (long long)(death->memory_kb >> 10));
	} else {
		snprintf(words, size, "exited with status %d",
			 WEXITSTATUS(death->status));
	}
	if (!death->requested && death->status != 0)
		add_crash_output(self);
}

static void release_resources(struct kernel *self)
{
	loop_timer_stop(&self->deadline);
	loop_timer_stop(&self->probe);
	for (size_t i = 0; i < COUNT_OF(self->sockets); i++) {
		zsock_destroy(&self->sockets[i]);
		replay_finish(&self->replays[i]);
	}
	loop_unwatch(&self->report_watch);
	loop_unwatch(&self->output_watch);
	/* This tells the supervisor to end all that is left, if it is still there. */
	loop_unwatch(&self->control_watch);
	child_forget(&self->supervisor);
	buf_finish(&self->crash_output);
	buf_finish(&self->reported);
	explicit_bzero(&self->session, sizeof self->session);
}

void kernel_destroy(struct kernel **self)
{
	struct kernel *dead = take(self);

	if (!dead)
		return;
	release_resources(dead);
	free(dead);
}

static void finish_death(struct kernel *self)
{
	describe_death(self);
	set_state(self, KERNEL_DEAD, self->death.words);
	if (self->dropped)
		log_warn(self->name, "dropped %llu of its messages", self->dropped);
	log_info(self->name, "kernel %s", self->death.words);
	self->owner.dead(&self->death, self->owner.arg);
	kernel_destroy(&self);
}

/* The process is gone; what it had sent may still be on the way to us. */
static void begin_closing(struct kernel *self, const char *why)
{
	if (self->state >= KERNEL_CLOSING)
		return;
	self->death.started = self->probe_answered;
	self->death.requested =
	    self->state == KERNEL_STOPPING || self->state == KERNEL_KILLING;
	loop_timer_stop(&self->probe);
	set_state(self, KERNEL_CLOSING, why);
}

static void on_deadline(void *arg)
{
	struct kernel *self = arg;
	bool flowing = self->messages != self->messages_at_turn;

	switch (self->state) {
	case KERNEL_LAUNCHING:
	case KERNEL_PROBING:
		snprintf(self->death.words, sizeof self->death.words,
			 "did not answer within %.0f s of its start",
			 rows[self->state].deadline_s);
		add_crash_output(self);
		kernel_kill(self);
		break;
	case KERNEL_INTERRUPTING:
		kernel_interrupt(self);
		break;
	case KERNEL_STOPPING:
		kernel_kill(self);
		break;
	case KERNEL_KILLING: /* the supervisor does not do its work */
		log_warn(self->name, "killing its supervisor");
		if (self->supervisor)
			child_kill(self->supervisor);
		self->death.status = -1;
		begin_closing(self, "supervisor killed");
		break;
	case KERNEL_CLOSING:
		self->messages_at_turn = self->messages;
		if (flowing && ++self->closing_turns < CLOSING_TURNS_MAX)
			set_state(self, KERNEL_CLOSING, "output still comes");
		else
			finish_death(self);
		break;
	case KERNEL_IDLE:
	case KERNEL_BUSY:
	case KERNEL_DEAD:
	case KERNEL_STATE_COUNT:
		break;
	}
}

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
	begin_closing(self, "supervisor gone");
}

static void on_end_report(struct kernel *self, const char *text)
{
	long long user_us, system_us, memory_kb;

	if (sscanf(text, "end %d %lld %lld %lld", &self->death.status, &user_us,
		   &system_us, &memory_kb) == 4)
		self->death.memory_kb = memory_kb;
	begin_closing(self, "process ended");
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
		self->pid = atoi(text + 8);
		log_info(self->name, "kernel process %d started", (int)self->pid);
	} else if (strncmp(text, "failed ", 7) == 0) {
		snprintf(self->death.words, sizeof self->death.words,
			 "could not be started: %s", text + 7);
		begin_closing(self, "failed");
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
 * through a pipe, so that it is known even if the code is the process's end. */
static void take_report(struct kernel *self, const char *line)
{
	if (strcmp(line, "ready") == 0 && self->state == KERNEL_LAUNCHING) {
		self->death.tells_begun = true;
		connect_sockets(self);
	} else if (strncmp(line, "run ", 4) == 0) {
		snprintf(self->death.last_begun, sizeof self->death.last_begun, "%s",
			 line + 4);
	}
}

static void on_report(void *arg)
{
	struct kernel *self = arg;
	char text[512], *end;
	ssize_t len = read(self->report, text, sizeof text);

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

/* ---- messages ---- */

static void send_probe(void *arg)
{
	struct kernel *self = arg;
	struct err err;

	if (jmsg_send(&self->session, self->sockets[KERNEL_SHELL],
		      "kernel_info_request", json_object(), self->probe_id, &err) < 0)
		log_warn(self->name, "probe: %s", err.msg);
	if (self->state == KERNEL_PROBING)
		loop_timer_start(self->place->loop, &self->probe, PROBE_EVERY_US,
				 send_probe, self);
}

/* A kernel is there when it answers on shell and we hear its broadcasts: a
 * subscription takes a moment to arrive, and what is sent before is lost. */
static void note_probe(struct kernel *self, enum kernel_channel channel,
		       const struct jmsg *message)
{
	if (channel == KERNEL_IOPUB)
		self->iopub_heard = true;
	else if (strcmp(message->type, "kernel_info_reply") == 0)
		self->probe_answered = true;
	if (!self->probe_answered || !self->iopub_heard)
		return;
	loop_timer_stop(&self->probe);
	set_state(self, KERNEL_IDLE, "answers");
	self->owner.ready(self->owner.arg);
}

static void receive(struct kernel *self, enum kernel_channel channel)
{
	owned(frames_finish) struct frames frames = {0};
	owned(jmsg_finish) struct jmsg message = {0};
	struct err err;

	self->messages++;
	if (zsock_recv(self->sockets[channel], &frames, &err) < 0 ||
	    jmsg_read(&message, self->session.key, &self->replays[channel], frames.at,
		      frames.count, &err) < 0) {
		self->dropped++;
		log_debug(self->name, "dropped %s", err.msg);
		return;
	}
	if (self->state == KERNEL_PROBING)
		note_probe(self, channel, &message);
	else if (strcmp(message.type, "kernel_info_reply") != 0)
		self->owner.message(channel, &message, self->owner.arg);
}

static void on_shell(struct zsock *zsock, void *arg)
{
	(void)zsock;
	receive(arg, KERNEL_SHELL);
}

static void on_iopub(struct zsock *zsock, void *arg)
{
	(void)zsock;
	receive(arg, KERNEL_IOPUB);
}

static void on_control_channel(struct zsock *zsock, void *arg)
{
	(void)zsock;
	receive(arg, KERNEL_CONTROL);
}

static int connect_one(struct kernel *self, enum kernel_channel channel,
		       struct err *err)
{
	static const struct {
		enum connfile_port port;
		enum zsock_type type;
		int waiting;
		zsock_fn *readable;
	} channels[] = {
	    [KERNEL_SHELL] = {CONN_SHELL, ZSOCK_DEALER, 0, on_shell},
	    [KERNEL_IOPUB] = {CONN_IOPUB, ZSOCK_SUB, IOPUB_WAITING_MAX, on_iopub},
	    [KERNEL_CONTROL] = {CONN_CONTROL, ZSOCK_DEALER, 0, on_control_channel},
	};
	char endpoint[PATH_MAX + 16];

	if (connfile_endpoint(endpoint, sizeof endpoint, self->runtime_dir,
			      channels[channel].port, err) < 0)
		return -1;
	return zsock_connect(&self->sockets[channel], self->place->loop,
			     self->place->zmq,
			     &(struct zsock_options){
				 .type = channels[channel].type,
				 .endpoint = endpoint,
				 .receive_max = channels[channel].waiting,
				 .message_max = JMSG_FRAME_MAX,
			     },
			     channels[channel].readable, self, err);
}

static void connect_sockets(struct kernel *self)
{
	struct err err;

	for (int i = 0; i < (int)COUNT_OF(self->sockets); i++)
		if (connect_one(self, (enum kernel_channel)i, &err) < 0) {
			snprintf(self->death.words, sizeof self->death.words,
				 "could not be reached: %s", err.msg);
			kernel_kill(self);
			return;
		}
	set_state(self, KERNEL_PROBING, "sockets bound");
	send_probe(self);
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
	    pipe2(ends->report, O_CLOEXEC | O_NONBLOCK) < 0 ||
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

static int start(struct kernel *self, const char *workdir, struct err *err)
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

int kernel_create(struct kernel **out, const struct kernel_place *place,
		  const char *name, const char *workdir,
		  const struct kernel_owner *owner, struct err *err)
{
	static unsigned long long number;
	owned(kernel_destroy) struct kernel *self = xcalloc(1, sizeof *self);

	number++;
	self->place = place;
	self->owner = *owner;
	self->death.status = -1;
	snprintf(self->name, sizeof self->name, "%.60s/k%llu", name, number);
	snprintf(self->runtime_dir, sizeof self->runtime_dir, "%s/k%llu",
		 place->runtime_dir, number);
	jmsg_session_init(&self->session);
	if (mkdir(self->runtime_dir, 0700) < 0)
		return err_set(err, ERR_SYSTEM, "make %s", self->runtime_dir);
	if (start(self, workdir, err) < 0) {
		rmdir(self->runtime_dir);
		return err_wrap(err, "start a kernel");
	}
	loop_timer_start(place->loop, &self->deadline,
			 (int64_t)(rows[KERNEL_LAUNCHING].deadline_s * 1e6),
			 on_deadline, self);
	*out = take(&self);
	return 0;
}

/* ---- what the owner may do ---- */

bool kernel_has_begun(const struct kernel_death *death, const char *id)
{
	return !death->tells_begun || strcmp(death->last_begun, id) == 0;
}

int kernel_execute(struct kernel *self, const char *code, size_t size,
		   char id[JMSG_ID_SIZE], struct err *err)
{
	json_t *content = json_pack("{ss% sb sb s{} sb sb}", "code", code, size,
				    "silent", 0, "store_history", 1, "user_expressions",
				    "allow_stdin", 0, "stop_on_error", 0);

	if (!content)
		return err_set(err, ERR_ARGUMENT, "the code is not valid UTF-8");
	if (jmsg_send(&self->session, self->sockets[KERNEL_SHELL], "execute_request",
		      content, id, err) < 0)
		return -1;
	set_state(self, KERNEL_BUSY, id);
	return 0;
}

void kernel_release(struct kernel *self)
{
	if (self->state == KERNEL_BUSY || self->state == KERNEL_INTERRUPTING)
		set_state(self, KERNEL_IDLE, "released");
}

void kernel_interrupt(struct kernel *self)
{
	if (self->state != KERNEL_BUSY && self->state != KERNEL_INTERRUPTING)
		return;
	set_state(self, KERNEL_INTERRUPTING, "SIGINT");
	tell_supervisor(self, "interrupt");
	send_probe(self);
}

void kernel_stop(struct kernel *self)
{
	struct err err;
	char id[JMSG_ID_SIZE];

	if (self->state < KERNEL_IDLE) {
		kernel_kill(self);
		return;
	}
	if (self->state >= KERNEL_STOPPING)
		return;
	set_state(self, KERNEL_STOPPING, "asked to");
	if (jmsg_send(&self->session, self->sockets[KERNEL_CONTROL], "shutdown_request",
		      json_pack("{sb}", "restart", 0), id, &err) < 0)
		kernel_kill(self);
}

void kernel_kill(struct kernel *self)
{
	if (self->state >= KERNEL_KILLING)
		return;
	set_state(self, KERNEL_KILLING, "SIGKILL");
	tell_supervisor(self, "kill");
}

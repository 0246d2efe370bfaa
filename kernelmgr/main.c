// SPDX-License-Identifier: MIT
/*
 * main - puts the rooms together, serves until a signal says stop, and takes them
 * apart in the reverse order.  With main_house.c the one that sees everything.
 */
#include <fcntl.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "kernelmgr/call.h"
#include "kernelmgr/check.h"
#include "kernelmgr/main_house.h"
#include "kernelmgr/state.h"
#include "mcp/tools.h"
#include "wire/header_check.h"
#include "wire/log.h"
#include "wire/mem.h"
#include "wire/ws_mask.h"

enum {
	EXIT_CANNOT_START = 1,
	EXIT_BAD_SETTING = 2,
	READ_SIZE = 64 * 1024,
	/* Stopping: a running cell's grace, then it is interrupted, then we go anyway.
	 */
	GRACE_US = 5 * 1000 * 1000,
	STOP_US = 15 * 1000 * 1000,
	/* Clients that started us give us 2 s from SIGTERM to SIGKILL. */
	STDIO_STOP_US = 1500 * 1000,
	LOOK_US = 20 * 1000,
};

/* ---- stopping ---- */

static void stop(void *arg)
{
	struct daemon *self = arg;

	loop_stop(self->loop);
}

static bool is_busy(const struct daemon *self)
{
	return (self->workspaces && workspaces_busy(self->workspaces)) ||
	       (self->http && http_busy(self->http)) ||
	       (self->door && door_busy(self->door)) ||
	       (self->stdio && stdio_busy(self->stdio));
}

static void look_whether_done(void *arg)
{
	struct daemon *self = arg;

	if (!is_busy(self))
		stop(self);
	else
		loop_timer_start(self->loop, &self->look, LOOK_US, look_whether_done,
				 self);
}

static void end_grace(void *arg)
{
	struct daemon *self = arg;

	if (self->workspaces)
		workspaces_interrupt(self->workspaces);
}

static void drain(struct daemon *self, int64_t grace_us, int64_t stop_us)
{
	self->draining = true;
	server_drain(self->server);
	if (self->http)
		http_drain(self->http);
	if (self->workspaces)
		workspaces_drain(self->workspaces);
	loop_timer_start(self->loop, &self->grace, grace_us, end_grace, self);
	loop_timer_start(self->loop, &self->stop, stop_us, stop, self);
	look_whether_done(self);
}

static void on_signal(void *arg)
{
	struct daemon *self = arg;
	struct signalfd_siginfo info;

	if (read(self->signal_fd, &info, sizeof info) != sizeof info)
		return;
	if (self->signalled) /* the supervisors see our end and end their kernels */
		_exit(128 + (int)info.ssi_signo);
	self->signalled = true;
	log_info("vivarium", "signal %u: stopping; once more stops at once",
		 info.ssi_signo);
	drain(self, self->stdio ? 1 : GRACE_US, self->stdio ? STDIO_STOP_US : STOP_US);
}

/* The client that started us wants no more.  Others may be here through the door. */
static void on_stdio_over(void *arg)
{
	struct daemon *self = arg;

	if (self->draining)
		return;
	if (self->door && door_guests(self->door)) {
		log_info("vivarium", "the input has ended; staying for %d other%s",
			 door_guests(self->door),
			 door_guests(self->door) == 1 ? "" : "s");
		return;
	}
	log_info("vivarium", "the input has ended: stopping");
	drain(self, GRACE_US, STOP_US);
}

static void on_guests_left(void *arg)
{
	struct daemon *self = arg;

	if (self->stdio && stdio_over(self->stdio))
		on_stdio_over(self);
}

static int watch_signals(struct daemon *self, struct err *err)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	self->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (self->signal_fd < 0)
		return err_set(err, ERR_SYSTEM, "watch signals");
	return loop_watch(self->loop, self->signal_fd, on_signal, self, &self->signals,
			  err);
}

/* ---- starting ---- */

static void raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static int check_settings(struct daemon *self, struct err *err)
{
	const struct config *config = &self->config;

	if (house_wants_http(self) &&
	    (config_check_conformance(config, err) < 0 ||
	     config_check_exposure(config, err) < 0 ||
	     config_check_hosts(config, err) < 0 || config_check_tls(config, err) < 0 ||
	     config_check_outside(config, err) < 0 ||
	     tokens_open(&self->tokens, config, err) < 0))
		return -1;
	return tools_check(config, err);
}

/* What is there before, and without, any workspace. */
static int start(struct daemon *self, struct err *err)
{
	if (check_settings(self, err) < 0 ||
	    loop_create(&self->loop, READ_SIZE, err) < 0 ||
	    (house_wants_http(self) && (header_check(self->loop, err) < 0 ||
					ws_mask_check(self->loop, err) < 0)) ||
	    watch_signals(self, err) < 0)
		return -1;
	self->server = server_create(&self->config, self->loop);
	self->channels.server = self->server;
	channels_listen(&self->channels);
	return 0;
}

static void finish(struct daemon *self)
{
	loop_timer_stop(&self->look);
	loop_timer_stop(&self->grace);
	loop_timer_stop(&self->stop);
	filewatch_end(&self->tokens_watch);
	filewatch_end(&self->tls_watch);
	loop_unwatch(&self->signals);
	if (self->http)
		http_stop(self->http);
	door_close(&self->door);
	stdio_destroy(&self->stdio);
	server_destroy(&self->server);
	channels_finish(&self->channels);
	if (self->streamable)
		streamable_destroy(&self->streamable);
	house_close_workspaces(self);
	loop_destroy(&self->loop);
	http_destroy(&self->http);
	house_close(self);
	tokens_close(&self->tokens);
}

static int run(struct daemon *self)
{
	loop_run(self->loop);
	finish(self);
	log_info("vivarium", "stopped");
	return 0;
}

static int fail(struct daemon *self, const struct err *err)
{
	log_error("vivarium", "cannot start: %s", err->msg);
	finish(self);
	return err->kind == ERR_CONFIG ? EXIT_BAD_SETTING : EXIT_CANNOT_START;
}

static void prepare(struct daemon *self, char *const env[])
{
	self->env = env;
	self->runtime_lock = self->state_lock = -1;
	raise_file_limit();
	prctl(PR_SET_DUMPABLE, 0); /* what we know is not for our kernels */
}

static int serve(struct daemon *self)
{
	struct err err;

	if (start(self, &err) < 0 || house_open(self, on_guests_left, &err) < 0)
		return fail(self, &err);
	return run(self);
}

/* ---- standard input and output ---- */

static int settle(void *arg, struct err *err)
{
	struct daemon *self = arg;

	if (self->draining)
		return err_set(err, ERR_LIMIT, "Vivarium is stopping");
	if (house_open_state(self, err) == 0 &&
	    house_open(self, on_guests_left, err) == 0)
		return 0;
	house_close(self);
	return -1;
}

/* Nobody else is to write to the client: what is printed by mistake goes to the log. */
static int take_stdout(struct err *err)
{
	int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

	if (fd < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return err_set(err, ERR_SYSTEM, "use standard output");
	return fd;
}

static int open_stdio(struct daemon *self, struct err *err)
{
	const struct stdio_host host = {.settle = settle,
					.over = on_stdio_over,
					.own_dir = self->own_dir,
					.arg = self};
	int in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	int out = take_stdout(err);

	if (in < 0)
		return err_set(err, ERR_SYSTEM, "use standard input");
	return out < 0 ? -1
		       : stdio_create(&self->stdio, self->loop, in, out,
				      self->config.user, &self->channels, &host, err);
}

static int serve_stdio(struct daemon *self)
{
	struct err err;

	if (start(self, &err) < 0 || open_stdio(self, &err) < 0)
		return fail(self, &err);
	return run(self);
}

/* Every table that a document shows, between the marks that it has there. */
static void print_tables(void)
{
	static const struct {
		const char *name;
		void (*print)(FILE *to);
	} tables[] = {
	    {"tools", tools_markdown},
	    {"settings", config_help_markdown},
	    {"errors", err_markdown},
	    {"kernel states", kernel_states_markdown},
	    {"call states", call_states_markdown},
	};

	for (size_t i = 0; i < COUNT_OF(tables); i++) {
		printf("<!-- begin %s -->\n", tables[i].name);
		tables[i].print(stdout);
		printf("<!-- end %s -->\n", tables[i].name);
	}
}

/* The paths that are used where none was given, or a relative one; none is made. */
static void resolve(struct config *config)
{
	struct launch_paths paths;
	char path[PATH_MAX];
	struct err err;

	config_real_path(path, config->workdir);
	memcpy(config->workdir, path, sizeof path);
	if (launch_find_python(&paths, config->python, &err) == 0)
		memcpy(config->python, paths.python, sizeof paths.python);
	if (state_find(path, config->state_dir, config->workdir, &err) == 0)
		config_real_path(config->state_dir, path);
}

int main(int argc, char **argv)
{
	static struct daemon self;
	enum config_verb verb;
	struct err err;

	if (sodium_init() < 0) {
		fprintf(stderr, "vivarium: no randomness on this system\n");
		return EXIT_CANNOT_START;
	}
	if (config_load(&self.config, &verb, argc, argv, environ, &err) < 0) {
		fprintf(stderr, "vivarium: %s\n", err.msg);
		return EXIT_BAD_SETTING;
	}
	config_hide_secrets(argv, environ);
	log_setup((enum log_level)self.config.log_level, self.config.log_format == 1);
	switch (verb) {
	case CONFIG_SERVE:
		prepare(&self, environ);
		return serve(&self);
	case CONFIG_STDIO:
		prepare(&self, environ);
		self.is_stdio = true;
		return serve_stdio(&self);
	case CONFIG_CHECK:
		return check_machine(&self.config, environ);
	case CONFIG_PRINT:
		resolve(&self.config);
		config_print(&self.config, stdout);
		return 0;
	case CONFIG_NEW_TOKEN:
		if (tokens_make(&self.config, self.config.operand, &err) == 0)
			return 0;
		fprintf(stderr, "vivarium: %s\n", err.msg);
		return EXIT_BAD_SETTING;
	case CONFIG_HELP:
		config_help(stdout);
		return 0;
	case CONFIG_HELP_MARKDOWN:
		print_tables();
		return 0;
	case CONFIG_VERSION:
		printf("vivarium %s\n", VIVARIUM_VERSION);
		return 0;
	}
	return 0;
}

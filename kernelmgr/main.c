// SPDX-License-Identifier: MIT
/*
 * main - puts the rooms together, serves until a signal says stop, and takes them
 * apart in the reverse order.  The one file that sees everything.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "api/health.h"
#include "kernelmgr/call.h"
#include "kernelmgr/check.h"
#include "kernelmgr/config.h"
#include "kernelmgr/launch.h"
#include "kernelmgr/state.h"
#include "kernelmgr/tokens.h"
#include "kernelmgr/workspaces.h"
#include "mcp/channel.h"
#include "mcp/door.h"
#include "mcp/server.h"
#include "mcp/stdio.h"
#include "mcp/streamable.h"
#include "mcp/tools.h"
#include "mcp/websocket.h"
#include "wire/filewatch.h"
#include "wire/header_check.h"
#include "wire/http.h"
#include "wire/log.h"
#include "wire/mem.h"

enum {
	EXIT_CANNOT_START = 1,
	EXIT_BAD_SETTING = 2,
	READ_SIZE = 64 * 1024,
	BODY_MAX = 4 << 20,
	KEEP_ALIVE_S = 15, /* between the comments on an event stream */
	CONNECTIONS_MAX = 1024,
	/* Stopping: a running cell's grace, then it is interrupted, then we go anyway.
	 */
	GRACE_US = 5 * 1000 * 1000,
	STOP_US = 15 * 1000 * 1000,
	/* Clients that started us give us 2 s from SIGTERM to SIGKILL. */
	STDIO_STOP_US = 1500 * 1000,
	LOOK_US = 20 * 1000,
};

struct daemon {
	struct config config;
	struct launch_paths paths;
	char state_dir[PATH_MAX], runtime_dir[PATH_MAX];
	int runtime_lock, state_lock;
	struct sessions sessions;
	struct tokens tokens;
	struct filewatch tokens_watch, tls_watch;
	char **kernel_env;
	struct loop *loop;
	struct walls walls;
	struct limits limits;
	struct workspace_place place;
	struct workspaces *workspaces;
	struct journal *journal;
	struct server *server;
	struct channels channels;
	struct stdio *stdio; /* NULL unless --stdio */
	struct door *door;
	struct streamable *streamable;
	struct http *http;
	struct websockets websockets;
	struct http_route routes[3];
	struct loop_watch *signals;
	int signal_fd; /* borrowed from signals */
	struct loop_timer look, grace, stop;
	bool is_stdio, draining, signalled;
	char *const *env; /* borrowed */
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

/* ---- files that may change ---- */

/* Who has lost his token loses his open connections too; a cell of his goes on. */
static void on_tokens_changed(void *arg)
{
	struct daemon *self = arg;
	struct err err;

	if (tokens_read(&self->tokens, &err) < 0)
		log_error("tokens", "%s; those read before stay in force", err.msg);
	else
		http_revoke(self->http, tokens_honour, &self->tokens);
}

static void on_certificate_changed(void *arg)
{
	struct daemon *self = arg;
	struct err err;

	if (http_reload_tls(self->http, &err) < 0)
		log_error("tls", "%s; the certificate read before stays in force",
			  err.msg);
	else
		log_info("tls", "%s was read again", self->config.tls_cert);
}

static void watch_files(struct daemon *self)
{
	const struct config *config = &self->config;

	if (config->tokens_file[0])
		filewatch_begin(&self->tokens_watch, self->loop, config->tokens_file,
				NULL, on_tokens_changed, self);
	if (config->tls_cert[0])
		filewatch_begin(&self->tls_watch, self->loop, config->tls_cert,
				config->tls_key, on_certificate_changed, self);
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

/* Once it succeeds the work directory is ours. */
static int open_state(struct daemon *self, struct err *err)
{
	struct config *config = &self->config;
	owned(files_close) struct files *files = NULL;
	owned(free_text) char *real = NULL;

	if (files_open(&files, config->workdir, err) < 0) /* makes it */
		return config_blame(config, "workdir", err);
	real = realpath(config->workdir, NULL);
	if (real && strlen(real) < sizeof config->workdir)
		memcpy(config->workdir, real, strlen(real) + 1);
	if (state_open(self->state_dir, config->state_dir, config->workdir, err) < 0)
		return config_blame(config, "state-dir", err);
	return state_lock(self->state_dir, &self->state_lock, err);
}

static int open_directories(struct daemon *self, struct err *err)
{
	if (state_secret(self->state_dir, "session.key", self->sessions.key,
			 sizeof self->sessions.key, err) < 0 ||
	    state_secret(self->state_dir, "snapshot.key", self->place.stores.key,
			 sizeof self->place.stores.key, err) < 0 ||
	    sessions_open(&self->sessions, self->state_dir, err) < 0 ||
	    journal_open(&self->journal, self->state_dir, err) < 0)
		return -1;
	return state_runtime_open(self->runtime_dir, &self->runtime_lock, err);
}

/* With --stdio only if a port was asked for. */
static bool wants_http(const struct daemon *self)
{
	return !self->is_stdio || config_is_flag(&self->config, "port");
}

static int open_http(struct daemon *self, struct err *err)
{
	const struct config *config = &self->config;
	bool name = strcasecmp(config->host, "localhost") == 0;
	const struct http_config http = {
	    .address = name ? "127.0.0.1" : config->host,
	    .port = (int)config->port,
	    .allowed_hosts = config->allowed_hosts,
	    .tls = {config->tls_cert, config->tls_key},
	    .guard = tokens_wanted(config) ? tokens_admit : NULL,
	    .guard_arg = &self->tokens,
	    .body_max = BODY_MAX,
	    .queue_max = (size_t)config->result_limit,
	    .connections_max = CONNECTIONS_MAX,
	    .comment_s = KEEP_ALIVE_S,
	    .subprotocols = websocket_subprotocols(),
	    .token_subprotocol = WEBSOCKET_TOKEN,
	};

	self->streamable = streamable_create(self->loop, self->server, self->workspaces,
					     config, &self->sessions);
	self->routes[0] = streamable_route(self->streamable, "/mcp");
	self->websockets = (struct websockets){&self->channels, config};
	websocket_add(&self->websockets, &self->routes[0]);
	self->routes[1] = websocket_route(&self->websockets, "/ws");
	self->routes[2] = health_route(self->workspaces);
	return http_create(&self->http, self->loop, &http, self->routes,
			   COUNT_OF(self->routes), err);
}

/* The key is there already. */
static void plan_stores(struct daemon *self)
{
	struct store_place *stores = &self->place.stores;
	uint64_t most = config_namespace_max(&self->config, self->state_dir);

	self->place.namespace_max = most;
	stores->loop = self->loop;
	stores->paths = &self->paths;
	stores->state_dir = self->state_dir;
	stores->keep = (size_t)self->config.snapshot_keep;
	stores->max_bytes =
	    self->config.snapshot_max ? (uint64_t)self->config.snapshot_max : 2 * most;
}

static int check_settings(struct daemon *self, struct err *err)
{
	const struct config *config = &self->config;

	if (wants_http(self) && (config_check_exposure(config, err) < 0 ||
				 config_check_tls(config, err) < 0 ||
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
	    (wants_http(self) && header_check(self->loop, err) < 0) ||
	    watch_signals(self, err) < 0)
		return -1;
	self->server = server_create(&self->config);
	self->channels.server = self->server;
	return 0;
}

static int open_walls(struct daemon *self, struct err *err)
{
	if (walls_decide(&self->walls, &self->config, &self->paths, self->kernel_env,
			 self->runtime_dir, self->state_dir, err) < 0)
		return -1;
	return wants_http(self)
		   ? config_check_users(&self->config, walls_apart(&self->walls), err)
		   : 0;
}

static int open_workspaces(struct daemon *self, struct err *err)
{
	if (launch_find(&self->paths, err) < 0 ||
	    check_python(&self->paths, &self->config, self->env, err) < 0)
		return -1;
	self->kernel_env = launch_env(self->paths.python, self->env);
	launch_adopt_orphans();
	if ((self->state_lock < 0 && open_state(self, err) < 0) ||
	    open_directories(self, err) < 0 || open_walls(self, err) < 0)
		return -1;
	limits_open(&self->limits, self->loop, &self->config, &self->walls);
	self->place.config = &self->config;
	self->place.journal = self->journal;
	self->place.kernels = (struct kernel_place){.loop = self->loop,
						    .paths = &self->paths,
						    .walls = &self->walls,
						    .limits = &self->limits,
						    .env = self->kernel_env,
						    .runtime_dir = self->runtime_dir};
	plan_stores(self);
	self->workspaces = workspaces_create(&self->place);
	return 0;
}

/* Of what was set, and does not do what was surely meant. */
static void warn_of_settings(const struct config *config)
{
	bool has_header = config->user_header[0] != '\0';

	if (has_header && !config->proxy_secret[0] && !tokens_wanted(config))
		log_warn("vivarium",
			 "whoever reaches this port can name any user in %s; set "
			 "VIVARIUM_PROXY_SECRET",
			 config->user_header);
	if (has_header && config->tokens_file[0] && !config->token[0])
		log_warn("vivarium",
			 "%s has no effect beside VIVARIUM_TOKENS_FILE: the token "
			 "names the user",
			 config_name(config, "user-header"));
	if (config_name(config, "token")[0] == '-')
		log_warn("vivarium",
			 "a token that was given as --token was to be seen by others "
			 "on this machine; use VIVARIUM_TOKEN");
	if (tokens_wanted(config) && !config_is_loopback(config->host) &&
	    !config->tls_cert[0])
		log_warn("vivarium",
			 "tokens cross the network unencrypted; set VIVARIUM_TLS_CERT, "
			 "or let a proxy speak HTTPS");
	if (!has_header && config->proxy_secret[0])
		log_warn("vivarium",
			 "%s has no effect without VIVARIUM_USER_HEADER: nothing asks "
			 "for it",
			 config_name(config, "proxy-secret"));
}

static void tell_ready(const struct daemon *self)
{
	const struct config *config = &self->config;
	bool v6 = strchr(config->host, ':') != NULL;

	log_info("vivarium", "version %s, work directory %s, kernels by %s",
		 VIVARIUM_VERSION, config->workdir, self->paths.python);
	if (self->http)
		warn_of_settings(config);
	walls_log(&self->walls);
	limits_log(&self->limits);
	if (self->http)
		log_info("vivarium", "ready http%s://%s%s%s:%d/mcp",
			 config->tls_cert[0] ? "s" : "", v6 ? "[" : "", config->host,
			 v6 ? "]" : "", http_port(self->http));
	else
		log_info("vivarium", "ready on standard input and output");
}

/* From here on this process is the daemon of the work directory. */
static int open_house(struct daemon *self, struct err *err)
{
	const struct door_owner owner = {.left = on_guests_left, .arg = self};

	if (open_workspaces(self, err) < 0)
		return -1;
	if (wants_http(self) && open_http(self, err) < 0)
		return -1;
	self->channels.workspaces = self->workspaces;
	if (door_open(&self->door, self->loop, self->state_dir, &self->channels, &owner,
		      err) < 0)
		return -1;
	if (self->http)
		watch_files(self);
	tell_ready(self);
	return 0;
}

static void close_workspaces(struct daemon *self)
{
	self->channels.workspaces = NULL;
	workspaces_destroy(&self->workspaces);
	limits_close(&self->limits);
	self->limits = (struct limits){0};
}

/* May be opened again after it, but for HTTP, which needs the loop's end. */
static void close_house(struct daemon *self)
{
	close_workspaces(self);
	journal_close(&self->journal);
	sessions_close(&self->sessions);
	if (self->runtime_dir[0])
		state_runtime_close(self->runtime_dir, &self->runtime_lock);
	self->runtime_dir[0] = '\0';
	close_fd(&self->state_lock);
	walls_finish(&self->walls);
	launch_env_destroy(&self->kernel_env);
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
	close_workspaces(self);
	loop_destroy(&self->loop);
	http_destroy(&self->http);
	close_house(self);
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
	return err->kind == ERR_CONFIG || err->kind == ERR_BUSY ? EXIT_BAD_SETTING
								: EXIT_CANNOT_START;
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

	if (start(self, &err) < 0 || open_house(self, &err) < 0)
		return fail(self, &err);
	return run(self);
}

/* ---- standard input and output ---- */

static int settle(void *arg, struct err *err)
{
	struct daemon *self = arg;

	if (self->draining)
		return err_set(err, ERR_LIMIT, "Vivarium is stopping");
	if (open_state(self, err) == 0 && open_house(self, err) == 0)
		return 0;
	close_house(self);
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
					.state_dir = self->state_dir,
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

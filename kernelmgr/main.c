// SPDX-License-Identifier: MIT
/*
 * main - puts the rooms together, serves until a signal says stop, and takes them
 * apart in the reverse order.  The one file that sees everything.
 */
#include <errno.h>
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
#include "mcp/server.h"
#include "mcp/streamable.h"
#include "mcp/tools.h"
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
	struct streamable *streamable;
	struct http *http;
	struct http_route routes[2];
	struct loop_watch *signals;
	int signal_fd; /* borrowed from signals */
	struct loop_timer look, grace, stop;
	bool draining;
};

/* ---- stopping ---- */

static void stop(void *arg)
{
	struct daemon *self = arg;

	loop_stop(self->loop);
}

static void look_whether_done(void *arg)
{
	struct daemon *self = arg;

	if (!workspaces_busy(self->workspaces) && !http_busy(self->http))
		stop(self);
	else
		loop_timer_start(self->loop, &self->look, LOOK_US, look_whether_done,
				 self);
}

static void end_grace(void *arg)
{
	struct daemon *self = arg;

	workspaces_interrupt(self->workspaces);
}

static void on_signal(void *arg)
{
	struct daemon *self = arg;
	struct signalfd_siginfo info;

	if (read(self->signal_fd, &info, sizeof info) != sizeof info)
		return;
	if (self->draining) /* the supervisors see our end and end their kernels */
		_exit(128 + (int)info.ssi_signo);
	self->draining = true;
	log_info("vivarium", "signal %u: stopping; once more stops at once",
		 info.ssi_signo);
	http_drain(self->http);
	workspaces_drain(self->workspaces);
	loop_timer_start(self->loop, &self->grace, GRACE_US, end_grace, self);
	loop_timer_start(self->loop, &self->stop, STOP_US, stop, self);
	look_whether_done(self);
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

static int open_directories(struct daemon *self, struct err *err)
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
	if (state_lock(self->state_dir, &self->state_lock, err) < 0 ||
	    state_secret(self->state_dir, "session.key", self->sessions.key,
			 sizeof self->sessions.key, err) < 0 ||
	    state_secret(self->state_dir, "snapshot.key", self->place.stores.key,
			 sizeof self->place.stores.key, err) < 0 ||
	    sessions_open(&self->sessions, self->state_dir, err) < 0 ||
	    journal_open(&self->journal, self->state_dir, err) < 0)
		return -1;
	return state_runtime_open(self->runtime_dir, &self->runtime_lock, err);
}

static int open_doors(struct daemon *self, struct err *err)
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
	};

	self->workspaces = workspaces_create(&self->place);
	self->server = server_create(config);
	self->streamable = streamable_create(self->loop, self->server, self->workspaces,
					     config, &self->sessions);
	self->routes[0] = streamable_route(self->streamable, "/mcp");
	self->routes[1] = health_route(self->workspaces);
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

static int start(struct daemon *self, char *const env[], struct err *err)
{
	if (config_check_exposure(&self->config, err) < 0 ||
	    config_check_tls(&self->config, err) < 0 ||
	    config_check_outside(&self->config, err) < 0 ||
	    tokens_open(&self->tokens, &self->config, err) < 0 ||
	    tools_check(&self->config, err) < 0 || launch_find(&self->paths, err) < 0 ||
	    check_python(&self->paths, &self->config, env, err) < 0 ||
	    loop_create(&self->loop, READ_SIZE, err) < 0 ||
	    header_check(self->loop, err) < 0)
		return -1;
	self->kernel_env = launch_env(self->paths.python, env);
	launch_adopt_orphans();
	if (open_directories(self, err) < 0 ||
	    walls_decide(&self->walls, &self->config, &self->paths, self->kernel_env,
			 self->runtime_dir, self->state_dir, err) < 0 ||
	    config_check_users(&self->config, walls_apart(&self->walls), err) < 0 ||
	    watch_signals(self, err) < 0)
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
	if (open_doors(self, err) < 0)
		return -1;
	watch_files(self);
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
	server_destroy(&self->server);
	if (self->streamable)
		streamable_destroy(&self->streamable);
	workspaces_destroy(&self->workspaces);
	limits_close(&self->limits);
	journal_close(&self->journal);
	sessions_close(&self->sessions);
	loop_destroy(&self->loop);
	http_destroy(&self->http);
	if (self->runtime_dir[0])
		state_runtime_close(self->runtime_dir, &self->runtime_lock);
	close_fd(&self->state_lock);
	walls_finish(&self->walls);
	launch_env_destroy(&self->kernel_env);
	tokens_close(&self->tokens);
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

static int serve(struct daemon *self, char *const env[])
{
	struct err err;

	self->runtime_lock = self->state_lock = -1;
	raise_file_limit();
	prctl(PR_SET_DUMPABLE, 0); /* what we know is not for our kernels */
	if (start(self, env, &err) < 0) {
		log_error("vivarium", "cannot start: %s", err.msg);
		finish(self);
		return err.kind == ERR_CONFIG ? EXIT_BAD_SETTING : EXIT_CANNOT_START;
	}
	log_info("vivarium", "version %s, work directory %s, kernels by %s",
		 VIVARIUM_VERSION, self->config.workdir, self->paths.python);
	warn_of_settings(&self->config);
	walls_log(&self->walls);
	limits_log(&self->limits);
	bool v6 = strchr(self->config.host, ':') != NULL;
	log_info("vivarium", "ready http%s://%s%s%s:%d/mcp",
		 self->config.tls_cert[0] ? "s" : "", v6 ? "[" : "", self->config.host,
		 v6 ? "]" : "", http_port(self->http));
	loop_run(self->loop);
	finish(self);
	log_info("vivarium", "stopped");
	return 0;
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
		return serve(&self, environ);
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

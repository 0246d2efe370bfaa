// SPDX-License-Identifier: MIT
#include "kernelmgr/main_house.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "api/health.h"
#include "kernelmgr/check.h"
#include "kernelmgr/state.h"
#include "wire/log.h"
#include "wire/mem.h"

enum {
	BODY_MAX = 4 << 20,
	KEEP_ALIVE_S = 15, /* between the comments on an event stream */
	CONNECTIONS_MAX = 1024,
};

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

int house_open_state(struct daemon *self, struct err *err)
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
	if (state_own(self->own_dir, self->state_dir, err) < 0)
		return -1;
	return state_lock(self->state_dir, self->is_stdio, &self->state_lock, err);
}

static int open_directories(struct daemon *self, struct err *err)
{
	if (state_secret(self->own_dir, "session.key", self->sessions.key,
			 sizeof self->sessions.key, err) < 0 ||
	    state_secret(self->own_dir, "snapshot.key", self->place.stores.key,
			 sizeof self->place.stores.key, err) < 0 ||
	    sessions_open(&self->sessions, self->own_dir, err) < 0 ||
	    server_remember(self->server, self->own_dir, err) < 0 ||
	    journal_open(&self->journal, self->own_dir, err) < 0)
		return -1;
	return state_runtime_open(self->runtime_dir, &self->runtime_lock, err);
}

bool house_wants_http(const struct daemon *self)
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
					     config, &self->sessions, &self->channels);
	self->routes[0] = streamable_route(self->streamable, "/mcp");
	self->websockets = (struct websockets){&self->channels, config};
	websocket_add(&self->websockets, &self->routes[0]);
	self->routes[1] = websocket_route(&self->websockets, "/ws");
	self->routes[2] = health_route(self->workspaces);
	self->routes[3] = streamable_route(self->streamable, "/sse");
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

static int open_walls(struct daemon *self, struct err *err)
{
	if (walls_decide(&self->walls, &self->config, &self->paths, self->kernel_env,
			 self->runtime_dir, self->state_dir, err) < 0)
		return -1;
	return house_wants_http(self)
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
	if ((self->state_lock < 0 && house_open_state(self, err) < 0) ||
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
	self->place.changed = server_files_changed;
	self->place.changed_arg = self->server;
	self->workspaces = workspaces_create(&self->place);
	return 0;
}

/* Of what was set, and does not do what was surely meant. */
static void warn_of_settings(const struct daemon *self)
{
	const struct config *config = &self->config;
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
	if (config->user[0] && !self->is_stdio)
		log_warn("vivarium",
			 "%s has no effect without --stdio: over HTTP nobody is that "
			 "user",
			 config_name(config, "user"));
}

static void tell_ready(const struct daemon *self)
{
	const struct config *config = &self->config;
	bool v6 = strchr(config->host, ':') != NULL;

	log_info("vivarium", "version %s, work directory %s, kernels by %s",
		 VIVARIUM_VERSION, config->workdir, self->paths.python);
	if (self->http)
		warn_of_settings(self);
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
int house_open(struct daemon *self, void (*on_left)(void *arg), struct err *err)
{
	const struct door_owner owner = {.left = on_left, .arg = self};

	if (open_workspaces(self, err) < 0)
		return -1;
	if (house_wants_http(self) && open_http(self, err) < 0)
		return -1;
	self->channels.workspaces = self->workspaces;
	server_use_key(self->server, self->sessions.key);
	if (door_open(&self->door, self->loop, self->own_dir, &self->channels, &owner,
		      err) < 0)
		return -1;
	if (self->http)
		watch_files(self);
	tell_ready(self);
	return 0;
}

void house_close_workspaces(struct daemon *self)
{
	self->channels.workspaces = NULL;
	workspaces_destroy(&self->workspaces);
	limits_close(&self->limits);
	self->limits = (struct limits){0};
}

void house_close(struct daemon *self)
{
	house_close_workspaces(self);
	journal_close(&self->journal);
	sessions_close(&self->sessions);
	if (self->runtime_dir[0])
		state_runtime_close(self->runtime_dir, &self->runtime_lock);
	self->runtime_dir[0] = '\0';
	close_fd(&self->state_lock);
	walls_finish(&self->walls);
	launch_env_destroy(&self->kernel_env);
}

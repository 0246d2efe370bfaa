/*
 * main_house - what makes a process the daemon of its work directory: the state with
 * its lock, the workspaces, and the doors to them.  A part of main.c.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef KERNELMGR_MAIN_HOUSE_H
#define KERNELMGR_MAIN_HOUSE_H

#include <limits.h>
#include <stdbool.h>

#include "kernelmgr/config.h"
#include "kernelmgr/launch.h"
#include "kernelmgr/tokens.h"
#include "kernelmgr/workspaces.h"
#include "mcp/channel.h"
#include "mcp/door.h"
#include "mcp/server.h"
#include "mcp/stdio.h"
#include "mcp/streamable.h"
#include "mcp/websocket.h"
#include "wire/filewatch.h"
#include "wire/http.h"

struct daemon {
	struct config config;
	struct launch_paths paths;
	char state_dir[PATH_MAX], own_dir[PATH_MAX], runtime_dir[PATH_MAX];
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
	struct http_route routes[4];
	struct loop_watch *signals;
	int signal_fd; /* borrowed from signals */
	struct loop_timer look, grace, stop;
	bool is_stdio, draining, signalled;
	char *const *env; /* borrowed */
};

/* With --stdio HTTP is spoken only if a port was asked for. */
bool house_wants_http(const struct daemon *self);
/* Once it succeeds the work directory is ours; ERR_BUSY: it is another's. */
int house_open_state(struct daemon *self, struct err *err) must_check;
/* The rest, with the state or without.  on_left: the door's last guest has gone. */
int house_open(struct daemon *self, void (*on_left)(void *arg),
	       struct err *err) must_check;
/* Before the loop's end. */
void house_close_workspaces(struct daemon *self);
/* May be opened again after it, but for HTTP, which needs the loop's end. */
void house_close(struct daemon *self);

#endif

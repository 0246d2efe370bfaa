/*
 * wishes - what sessions and conversations up to 2025-11-25 have asked to be told: the
 * level of log messages, changed files, another list of files.  Of a bounded number of
 * them and a bounded size, since they come and go.  A session that is known after a
 * restart finds its wishes there again, also when the daemon was killed.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MCP_WISHES_H
#define MCP_WISHES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "kernelmgr/notes.h"
#include "wire/err.h"

enum {
	WISHES_MAX = 1024, /* sessions; the one silent for longest goes */
	WISHES_URIS_MAX = 128,
	WISHES_URI_SIZE = 4096,
	WISHES_BYTES_MAX = 4 << 20, /* of URIs of all; who is silent for longest goes */
	WISHES_KEPT_S =
	    30 * 24 * 3600, /* that a session may be silent between daemons */
};

struct wish;
struct workspace;
struct server_context;

struct wishes {                          /* embed it; wishes_init() first */
	TAILQ_HEAD(wish_list, wish) all; /* wish::link, the oldest first */
	size_t count, bytes;
	struct notes notes; /* of those that last, for the next daemon */
};

void wishes_init(struct wishes *self);
/* Remembers from now on in dir, and knows what was remembered there before. */
int wishes_open(struct wishes *self, const char *dir, struct err *err) must_check;
void wishes_finish(struct wishes *self);

/* The least level of log messages that the session wants; LOG_NONE. */
int wishes_level(struct wishes *self, uint64_t session);
void wishes_set_level(struct wishes *self, const struct server_context *context,
		      int level);
/* Fails if it is no URI for that. */
int wishes_check_uri(const json_t *uri, struct err *err) must_check;
int wishes_too_many(struct err *err); /* -1 */
int wishes_subscribe(struct wishes *self, const struct server_context *context,
		     const json_t *uri, struct err *err) must_check;
void wishes_unsubscribe(struct wishes *self, uint64_t session, const json_t *uri);
/* It has been given the list of files, and so wants to know when that is another. */
void wishes_listed(struct wishes *self, const struct server_context *context);
void wishes_forget(struct wishes *self, uint64_t session);

/* Files of a branch are of the workspace that it comes from, too: NAME@BRANCH. */
bool wishes_is_of(const struct workspace *workspace, const char *home);
/* Calls each() with every session that wants to know of it.  uri: that was changed;
 * NULL: the list of files is another. */
void wishes_each(const struct wishes *self, const struct workspace *workspace,
		 const char *uri, void (*each)(uint64_t session, void *arg), void *arg);

#endif

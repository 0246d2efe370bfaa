/*
 * audience - who is told what happens: sessions and conversations what they wished, and
 * each `subscriptions/listen`, of which there are a bounded number, what it asked for.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MCP_AUDIENCE_H
#define MCP_AUDIENCE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "mcp/session.h"
#include "mcp/wishes.h"
#include "wire/buf.h"
#include "wire/err.h"

/* Of `subscriptions/listen`: in all, of one user's. */
enum { AUDIENCE_MAX = 1024, AUDIENCE_OF_ONE_MAX = 64 };

struct workspace;
struct server_context;
struct listen;

struct teller { /* a transport; embed it */
	SLIST_ENTRY(teller) link;
	/* Tells a session or conversation of its own; message is borrowed. */
	void (*tell)(void *arg, uint64_t session, json_t *message);
	/* All that have begun with initialize. */
	void (*tell_all)(void *arg, json_t *message);
	/* Appends whole lines about answers to this user that reached nobody.  Or NULL.
	 */
	void (*tell_unread)(void *arg, const struct workspace *home, struct buf *out);
	void *arg;
};

struct audience { /* embed it; audience_init() first */
	struct wishes wishes;
	TAILQ_HEAD(, listen) listens; /* listen::link */
	size_t listen_count;
	SLIST_HEAD(, teller) tellers; /* teller::link, borrowed */
	bool over;                    /* listens end as soon as they begin */
};

void audience_init(struct audience *self);
/* Unanswered. */
void audience_finish(struct audience *self);

/* ---- subscriptions/listen (2026-07-28) ---- */

struct listen_start {
	const struct server_context *context; /* borrowed */
	json_t *id, *filter; /* borrowed; filter: params.notifications */
	json_t *tasks;       /* borrowed: ids of the user's own, or NULL */
	bool lists_change;   /* those of tools and prompts */
	/* What is put on a result before it goes out. */
	json_t *(*dress)(json_t *result, enum mcp_revision revision);
	void (*answer)(json_t *message, void *arg); /* when it ends; consumes message */
	void *arg;
};
/* Acknowledges, first of all, and tells until it ends.  Fails if it cannot. */
int audience_listen(struct audience *self, const struct listen_start *start,
		    struct err *err) must_check;
/* Ends those of this arg. */
void audience_hang_up(struct audience *self, const void *arg);
/* Ends all, also those to come. */
void audience_close(struct audience *self);

/* ---- what happened ---- */

/* uris: an array of those that were changed, borrowed; list: some came or went. */
void audience_files(struct audience *self, const struct workspace *workspace,
		    const json_t *uris, bool list);
/* What is known of a task (a DetailedTask, consumed) of this user is another.  arg: of
 * the only one to tell; NULL: all that want to know. */
void audience_task(struct audience *self, const struct workspace *workspace,
		   json_t *task, const void *arg);
/* The list of "tools" or "prompts" is another. */
void audience_list(struct audience *self, const char *what);

#endif

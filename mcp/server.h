/*
 * server - MCP itself, whatever carries it: takes one message, answers one message.
 * All revisions; what differs between them is in the methods' table and in few lines.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MCP_SERVER_H
#define MCP_SERVER_H

#include <jansson.h>
#include <stdbool.h>

#include "kernelmgr/config.h"
#include "kernelmgr/workspaces.h"
#include "mcp/audience.h"
#include "mcp/outlet.h"
#include "mcp/rpc.h"
#include "mcp/session.h"

struct server;
/* The answer to a request; consumed.  Comes once. */
typedef void server_answer_fn(json_t *message, void *arg);

/* Borrows both until destroyed. */
struct server *server_create(const struct config *config, struct loop *loop);
/* What clients keep for it (requestState) is sealed with a key made from this one, of
 * ASKS_KEY_SIZE bytes; before that with one of this process's own. */
void server_use_key(struct server *self, const unsigned char *secret);
/* What sessions wish to be told is remembered from now on in dir. */
int server_remember(struct server *self, const char *dir, struct err *err) must_check;
/* Requests still open end unanswered. */
void server_destroy(struct server **self);

struct server_context { /* who asks */
	enum mcp_revision revision;
	/* Serial of the session or conversation; 0: none.  Requests are cancelled, and
	 * questions answered, within theirs only. */
	uint64_t session;
	bool lasts;           /* that is known after a restart, too */
	unsigned client;      /* CLIENT_*, of the session; the request's own since
				 2026-07-28 */
	struct outlet outlet; /* the way back besides the answer */
	/* set by the server */
	struct server *server;
	bool structure;         /* results have one, besides their text */
	int log_level;          /* that is wanted; LOG_NONE */
	json_t *progress_token; /* NULL: no progress is wanted */
	struct workspaces *workspaces;
	struct workspace *workspace; /* NULL: nobody's; then tools answer refusal */
	struct err refusal;
};

/* Answers a request, perhaps before this returns.  Borrows rpc for the time of this
 * call. */
void server_request(struct server *self, const struct rpc *rpc,
		    const struct server_context *context, server_answer_fn *answer,
		    void *arg);
void server_notification(struct server *self, const struct rpc *rpc,
			 const struct server_context *context);

/* A response to a request of ours came. */
void server_response(struct server *self, const json_t *message, uint64_t session);
/* A session or conversation has ended. */
void server_left(struct server *self, uint64_t session);

/* For workspace_place: arg is the server. */
void server_files_changed(const struct workspace *workspace,
			  const struct files_change *change, void *arg);
/* The list of "tools" or "prompts" is another. */
void server_list_changed(struct server *self, const char *what);
/* Appends whole lines that name the results which did not reach their client. */
void server_tell_unread(const struct server *self, const struct workspace *home,
			struct buf *out);
/* Who has something to tell by it; teller is borrowed. */
void server_add_teller(struct server *self, struct teller *teller);
/* Ends what has no end of its own. */
void server_drain(struct server *self);
/* The same for what this arg waits for. */
void server_hang_up(struct server *self, const void *arg);

/* Whether a request of this method is known in the revision. */
bool server_has_method(const char *method, enum mcp_revision revision);
/* A request of 2026-07-28 over HTTP whose headers do not repeat its arguments: its
 * answer (caller owns), or NULL.  header(): see tools_header_mismatch(). */
json_t *server_check_headers(const struct server *self, const struct rpc *rpc,
			     bool (*header)(void *arg, const char *name,
					    struct buf *out),
			     void *arg);
/* False for what is answered without a workspace: how to talk, and which tools there
 * are. */
bool server_needs_workspace(const char *method);
/* Asks all that this arg still waits for to stop; the answers still come. */
void server_cancel(struct server *self, const void *arg);
/* Who waits for this arg has left: results that can be are kept for him.  How many
 * answers will not come. */
size_t server_abandon(struct server *self, const void *arg);

/* What `initialize` agrees on: the revision the client asks for if we speak it, else
 * our newest.  Fails if params are not what the schema demands. */
int server_negotiate(const struct rpc *rpc, enum mcp_revision *out,
		     struct err *err) must_check;

#endif

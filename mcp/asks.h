/*
 * asks - what a request has to know of its client before it can be answered: of the
 * user (elicitation), of the client's model (sampling), where its files are (roots).
 *
 * One way to write it for both eras: the code that answers looks for the answers, puts
 * the questions that it lacks, and is run again when there is more.  In 2026-07-28 that
 * is a new request of the client's, which carries the answers of this round and the
 * state that was sealed into the round before; in older revisions (tools only) the
 * questions are requests on the stream of the one that waits, and all rounds are in
 * memory.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MCP_ASKS_H
#define MCP_ASKS_H

#include <jansson.h>
#include <stdbool.h>

#include "mcp/rpc.h"
#include "mcp/session.h"

enum ask_kind { ASK_USER, ASK_MODEL, ASK_ROOTS };
enum {
	ASKS_KEY_SIZE = 32,
	ASKS_STATE_S = 3600 /* a user may be at lunch */,
	ASKS_ROUNDS_MAX = 10
};

struct asks_key {
	unsigned char bytes[ASKS_KEY_SIZE];
};

struct asks { /* embed it; zero: nothing is known and nothing can be asked */
	enum mcp_revision revision;
	unsigned client;            /* CLIENT_* */
	const struct asks_key *key; /* borrowed; of the sealed state */
	const char *method,
	    *workspace;  /* borrowed: for what and whom a state is good */
	json_t *params;  /* owned: the request's */
	json_t *answers; /* owned: name -> result of the client */
	json_t *state;   /* owned: what the round before kept, or NULL */
	json_t *wanted;  /* owned: name -> {method, params}, of this round */
	int rounds;      /* so far, in older revisions */
};

/* Of 2026-07-28, once the rest is filled in: takes the answers and the state that the
 * params bring.  Fails with ERR_ARGUMENT for a state that is not ours, not for this, or
 * too old. */
int asks_read(struct asks *self, struct err *err) must_check;

bool asks_can(const struct asks *self, enum ask_kind kind);
/* The answer of that name if it is one of this kind, or NULL.  Borrows. */
json_t *asks_answer(const struct asks *self, enum ask_kind kind, const char *name);
/* What the user filled in, as the question that wanted it has it; NULL: nothing (yet),
 * or not the fields of schema (an ElicitRequest's requestedSchema). */
json_t *asks_content(const struct asks *self, const char *name, const json_t *schema);
/* Puts a question, if the client can be asked this.  params is consumed. */
void asks_want(struct asks *self, enum ask_kind kind, const char *name, json_t *params);
/* The params of a question to the user; schema is consumed. */
json_t *asks_form(const char *message, json_t *schema);

/* Older revisions: takes the first question out; name and params are the caller's.
 * False: there is none left. */
bool asks_next(struct asks *self, char **name, json_t **params, const char **method);
/* The client has answered it with this result (borrowed). */
void asks_put(struct asks *self, const char *name, json_t *result);
/* Of 2026-07-28: the InputRequiredResult of the questions put.  state: what the next
 * round is to know, consumed, or NULL.  Caller owns. */
json_t *asks_result(struct asks *self, json_t *state);
/* That the client cannot be asked what must be known: -32021. */
void asks_refuse(enum ask_kind kind, struct rpc_refusal *refusal);
void asks_finish(struct asks *self);

#endif

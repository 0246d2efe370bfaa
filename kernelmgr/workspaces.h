/*
 * workspaces - all of them, by name, and the one rule by which a request belongs to
 * one: never by its connection or session, which come and go.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef KERNELMGR_WORKSPACES_H
#define KERNELMGR_WORKSPACES_H

#include <stdbool.h>
#include <stddef.h>

#include "kernelmgr/workspace.h"
#include "wire/err.h"

enum { WORKSPACES_MAX = 4096 /* in memory; each costs a descriptor */ };
#define PRINCIPAL_SECRET_HEADER "x-vivarium-proxy-secret"

struct workspaces;

/* Borrows place until destroyed. */
struct workspaces *workspaces_create(struct workspace_place *place);
void workspaces_destroy(struct workspaces **self);

/* One header of a request as a door found it. */
struct claim {
	enum {
		CLAIM_ABSENT,
		CLAIM_ONE,
		CLAIM_UNREADABLE /* twice, or too long */
	} state;
	const char *value; /* when there is one */
};

/* The workspace that a request belongs to, made if new; users.h says where it lies. The
 * name is the one of the request's token (named), and if that is "", the one in the
 * user header; without such a header configured it is the workspace of all.  Fails in
 * words that name the header and what to do. */
int workspaces_principal(struct workspaces *self, const char *named,
			 const struct claim *user, const struct claim *secret,
			 struct workspace **out, struct err *err) must_check;
/* The one of who is on this machine as the user that runs us, and names a user himself,
 * or "": the one of all, whatever header is configured. */
int workspaces_local(struct workspaces *self, const char *name, struct workspace **out,
		     struct err *err) must_check;
/* The branch of that name of a workspace, opened if it is not; "": the workspace
 * itself.  Fails with the branches there are. */
int workspaces_branch(struct workspaces *self, struct workspace *of, const char *name,
		      struct workspace **out, struct err *err) must_check;
/* True if a workspace of this name is open. */
bool workspaces_has(const struct workspaces *self, const char *name);

/* For the way out: see workspace.h. */
void workspaces_drain(struct workspaces *self);
void workspaces_interrupt(struct workspaces *self);
bool workspaces_busy(const struct workspaces *self);

struct workspaces_count {
	size_t workspaces, kernels, calls;
};
struct workspaces_count workspaces_count(const struct workspaces *self);
/* Around their kernels. */
const struct walls *workspaces_walls(const struct workspaces *self);

#endif

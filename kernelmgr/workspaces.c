// SPDX-License-Identifier: MIT
#include "kernelmgr/workspaces.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernelmgr/branches.h"
#include "kernelmgr/proof.h"
#include "kernelmgr/users.h"
#include "kernelmgr/viewer.h"
#include "wire/mem.h"

enum { SHOWN = 60 /* characters of a bad name that are repeated */ };

struct workspaces {
	struct workspace_place *place; /* borrowed */
	struct workspace **all;        /* owned, in the order they came */
	size_t count;
};

struct workspaces *workspaces_create(struct workspace_place *place)
{
	struct workspaces *self = xcalloc(1, sizeof *self);

	self->place = place;
	return self;
}

void workspaces_destroy(struct workspaces **self)
{
	struct workspaces *dead = take(self);

	if (!dead)
		return;
	proof_finish(dead->place);
	viewer_finish(dead->place);
	for (size_t i = 0; i < dead->count; i++)
		workspace_destroy(&dead->all[i]);
	free(dead->all);
	free(dead);
}

static struct workspace *find(const struct workspaces *self, const char *name)
{
	for (size_t i = 0; i < self->count; i++)
		if (strcmp(workspace_name(self->all[i]), name) == 0)
			return self->all[i];
	return NULL;
}

bool workspaces_has(const struct workspaces *self, const char *name)
{
	return find(self, name) != NULL;
}

static int make(struct workspaces *self, const char *name, const char *dir,
		struct workspace **out, struct err *err)
{
	if (self->count == WORKSPACES_MAX)
		return err_set(err, ERR_LIMIT,
			       "there are %d workspaces already; no new one can be "
			       "opened until Vivarium is restarted",
			       WORKSPACES_MAX);
	if (workspace_create(out, self->place, name, dir, err) < 0)
		return -1;
	self->all = xrealloc(self->all, (self->count + 1) * sizeof(struct workspace *));
	self->all[self->count++] = *out;
	return 0;
}

/* Equal in constant time, whatever the lengths. */
static bool same_secret(const char *a, const char *b)
{
	unsigned char x[32], y[32];

	crypto_generichash(x, sizeof x, (const unsigned char *)a, strlen(a), NULL, 0);
	crypto_generichash(y, sizeof y, (const unsigned char *)b, strlen(b), NULL, 0);
	return sodium_memcmp(x, y, sizeof x) == 0;
}

static int check_secret(const struct config *config, const struct claim *secret,
			struct err *err)
{
	if (!config->proxy_secret[0] ||
	    (secret->state == CLAIM_ONE &&
	     same_secret(secret->value, config->proxy_secret)))
		return 0;
	return err_set(err, ERR_REQUEST,
		       "the header X-Vivarium-Proxy-Secret is %s, and %s counts only "
		       "beside it; let the proxy send both",
		       secret->state == CLAIM_ABSENT ? "missing" : "wrong",
		       config->user_header);
}

static int check_user(const struct config *config, const struct claim *user,
		      struct err *err)
{
	struct err why;

	if (user->state == CLAIM_ABSENT)
		return err_set(err, ERR_REQUEST,
			       "the request has no header %s, which names the user "
			       "(VIVARIUM_USER_HEADER); let the client send it with "
			       "every call",
			       config->user_header);
	if (user->state == CLAIM_UNREADABLE)
		return err_set(err, ERR_REQUEST,
			       "the header %s came twice or is too long; send it once, "
			       "at most 64 characters",
			       config->user_header);
	if (strstr(user->value, "{{") || strstr(user->value, "}}"))
		return err_set(
		    err, ERR_ARGUMENT,
		    "the header %s is '%.*s': the client did not fill in its "
		    "placeholder",
		    config->user_header, SHOWN, user->value);
	if (users_check_name(user->value, &why) < 0)
		return err_set(err, ERR_REQUEST, "the header %s is '%.*s'; %s",
			       config->user_header, SHOWN, user->value, why.msg);
	return 0;
}

static int find_all(struct workspaces *self, struct workspace **out, struct err *err)
{
	char dir[PATH_MAX];

	if ((*out = find(self, USERS_ALL)))
		return workspace_renew(*out, err);
	if (users_find_all(dir, self->place->config, err) < 0)
		return -1;
	return make(self, USERS_ALL, dir, out, err);
}

/* Not inside the workspace of all, which sees the whole work directory if nobody had a
 * name when it was opened. */
static int find_user(struct workspaces *self, const char *name, struct workspace **out,
		     struct err *err)
{
	const struct config *config = self->place->config;
	const struct workspace *all = find(self, USERS_ALL);
	char dir[PATH_MAX];

	if ((*out = find(self, name)))
		return workspace_renew(*out, err);
	if (all && strcmp(workspace_dir(all), config->workdir) == 0)
		return err_set(err, ERR_CONFIG,
			       "here the whole work directory is the workspace of "
			       "those without a name, and is in use; for %.20s choose "
			       "another (--workdir), or leave VIVARIUM_USER out",
			       name);
	if (users_find(dir, config, name, err) < 0)
		return -1;
	return make(self, name, dir, out, err);
}

int workspaces_principal(struct workspaces *self, const char *named,
			 const struct claim *user, const struct claim *secret,
			 struct workspace **out, struct err *err)
{
	const struct config *config = self->place->config;

	if (named[0])
		return find_user(self, named, out, err);
	if (!config->user_header[0])
		return find_all(self, out, err);
	if (check_secret(config, secret, err) < 0 || check_user(config, user, err) < 0)
		return -1;
	return find_user(self, user->value, out, err);
}

int workspaces_local(struct workspaces *self, const char *name, struct workspace **out,
		     struct err *err)
{
	struct err why;

	if (!name[0])
		return find_all(self, out, err);
	if (users_check_name(name, &why) < 0)
		return err_set(err, ERR_CONFIG, "'%.*s' is no user's name: %s", SHOWN,
			       name, why.msg);
	return find_user(self, name, out, err);
}

int workspaces_branch(struct workspaces *self, struct workspace *of, const char *name,
		      struct workspace **out, struct err *err)
{
	const struct config *config = self->place->config;
	owned(buf_finish) struct buf names = {0};
	struct branch_place place;

	*out = of;
	if (!name[0])
		return 0;
	if (branch_find_place(&place, config, workspace_name(of), name, err) < 0)
		return -1;
	if (branch_is_there(&place)) {
		if ((*out = find(self, place.name)))
			return workspace_renew(*out, err);
		return make(self, place.name, place.dir, out, err);
	}
	branch_list(config, workspace_name(of), &names);
	return err_set(err, ERR_ARGUMENT, "there is no branch '%s'; branches: %.120s",
		       name, buf_str(&names));
}

void workspaces_drain(struct workspaces *self)
{
	for (size_t i = 0; i < self->count; i++)
		workspace_drain(self->all[i]);
}

void workspaces_interrupt(struct workspaces *self)
{
	for (size_t i = 0; i < self->count; i++)
		workspace_interrupt(self->all[i]);
}

bool workspaces_busy(const struct workspaces *self)
{
	for (size_t i = 0; i < self->count; i++)
		if (workspace_busy(self->all[i]))
			return true;
	return self->place->proof != NULL;
}

const struct walls *workspaces_walls(const struct workspaces *self)
{
	return self->place->kernels.walls;
}

struct workspaces_count workspaces_count(const struct workspaces *self)
{
	struct workspaces_count count = {.workspaces = self->count};

	for (size_t i = 0; i < self->count; i++) {
		count.kernels += workspace_has_kernel(self->all[i]);
		count.calls += workspace_calls(self->all[i]);
	}
	return count;
}

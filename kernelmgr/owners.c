// SPDX-License-Identifier: MIT
#include "kernelmgr/owners.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernelmgr/idmap.h"
#include "kernelmgr/nolinks.h"
#include "kernelmgr/notes.h"
#include "wire/mem.h"

enum {
	OWNERS_MAX = 4096,
	FAR_ID = 1800000000, /* the first where all ids are ours: far from people's */
	NEAR_ID = 20000,     /* the first in a container's range */
	NAME_SIZE = 192,
};

struct owner {
	SLIST_ENTRY(owner) link;
	uid_t id;
	char name[NAME_SIZE];
};

struct owners {
	struct notes notes;
	SLIST_HEAD(, owner) list;
	uid_t first, next;
};

/* ---- the file ---- */

static struct owner *keep(struct owners *self, uid_t id, const char *name)
{
	struct owner *owner = xcalloc(1, sizeof *owner);

	owner->id = id;
	snprintf(owner->name, sizeof owner->name, "%s", name);
	SLIST_INSERT_HEAD(&self->list, owner, link);
	if (id >= self->next)
		self->next = id + 1;
	return owner;
}

static void read_line(const char *line, void *arg)
{
	unsigned id;
	int at = 0;

	if (sscanf(line, "%u %n", &id, &at) == 1 && at > 0 && line[at])
		keep(arg, (uid_t)id, line + at);
}

static void write_all(FILE *to, void *arg)
{
	const struct owners *self = arg;
	const struct owner *owner;

	SLIST_FOREACH(owner, &self->list, link)
	fprintf(to, "%u %s\n", (unsigned)owner->id, owner->name);
}

/* ---- what this process may do ---- */

/* All ids to give away from this one on are in the namespace. */
static bool has_ids(uid_t first)
{
	struct idmap_range range;

	return idmap_find(first, &range) &&
	       range.count - (first - range.inside) > (unsigned)OWNERS_MAX;
}

int owners_open(struct owners **out, const char *dir, struct err *err)
{
	owned(owners_close) struct owners *self = xcalloc(1, sizeof *self);

	SLIST_INIT(&self->list);
	self->first = has_ids(FAR_ID) ? FAR_ID : has_ids(NEAR_ID) ? NEAR_ID : 0;
	self->next = self->first;
	if (geteuid() != 0)
		return err_set(err, ERR_CONFIG, "the daemon is not root");
	if (!self->first)
		return err_set(err, ERR_CONFIG,
			       "this container has no range of user ids to give away");
	if (notes_open(&self->notes, dir, "owners", read_line, write_all, self, err) <
	    0)
		return -1;
	*out = take(&self);
	return 0;
}

void owners_close(struct owners **self)
{
	struct owners *dead = take(self);
	struct owner *owner;

	if (!dead)
		return;
	notes_close(&dead->notes);
	while ((owner = SLIST_FIRST(&dead->list))) {
		SLIST_REMOVE_HEAD(&dead->list, link);
		free(owner);
	}
	free(dead);
}

int owners_find(struct owners *self, const char *workspace, uid_t *out, struct err *err)
{
	struct owner *owner;

	SLIST_FOREACH(owner, &self->list, link)
	if (strcmp(owner->name, workspace) == 0) {
		*out = owner->id;
		return 0;
	}
	if (self->next >= self->first + OWNERS_MAX)
		return err_set(err, ERR_LIMIT,
			       "%d workspaces have user ids already: no more here",
			       OWNERS_MAX);
	*out = keep(self, self->next, workspace)->id;
	notes_add(&self->notes, "%u %s", (unsigned)*out, workspace);
	return 0;
}

/* ---- giving ---- */

static int join(gid_t group, struct err *err)
{
	gid_t groups[OWNERS_MAX + 256];
	int count = getgroups((int)COUNT_OF(groups) - 1, groups);

	for (int i = 0; i < count; i++)
		if (groups[i] == group)
			return 0;
	if (count < 0)
		return err_set(err, ERR_SYSTEM, "ask for the groups");
	groups[count] = group;
	if (setgroups((size_t)count + 1, groups) < 0)
		return err_set(err, ERR_SYSTEM, "join group %u", (unsigned)group);
	return 0;
}

static int open_the_way(const char *dir, const char *root, struct err *err)
{
	char above[PATH_MAX];
	struct stat st;

	snprintf(above, sizeof above, "%s", dir);
	while (strlen(above) > strlen(root)) {
		*strrchr(above, '/') = '\0';
		owned(close_fd) int fd = nolinks_open(above, O_RDONLY | O_DIRECTORY);
		if (fd < 0 || fstat(fd, &st) < 0 ||
		    ((st.st_mode & 011) != 011 && fchmod(fd, st.st_mode | 011) < 0))
			return err_set(err, ERR_SYSTEM, "let users pass through %.150s",
				       above);
	}
	return 0;
}

int owners_give(uid_t owner, const char *dir, const char *root, struct err *err)
{
	owned(close_fd) int fd = -1;

	if (join((gid_t)owner, err) < 0)
		return -1;
	if ((mkdir(dir, 0700) < 0 && errno != EEXIST) ||
	    (fd = nolinks_open(dir, O_RDONLY | O_DIRECTORY)) < 0 ||
	    fchown(fd, (uid_t)-1, (gid_t)owner) < 0 || fchmod(fd, 02770) < 0)
		return err_set(err, ERR_SYSTEM, "give %.150s to group %u", dir,
			       (unsigned)owner);
	return open_the_way(dir, root, err);
}

// SPDX-License-Identifier: MIT
#include "kernelmgr/cgroup.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernelmgr/cgroup_find.h"
#include "wire/mem.h"

#define PREFIX "vivarium."
#define LEAF "daemon" /* where this process goes in version 2 */

enum {
	SHARES_OF_ONE = 1024, /* version 1: what one process gets */
	WEIGHT_OF_ONE = 100,  /* version 2 */
	WEIGHT_MAX = 10000,
	PERIOD_US = 100 * 1000,
};

static const char *const names[CGROUP_KINDS] = {"memory", "pids", "cpu"};

/* ---- files ---- */

/* 0, or -1 and errno. */
static int put(const char *dir, const char *name, const char *text)
{
	char path[PATH_MAX + 64];

	snprintf(path, sizeof path, "%s/%s", dir, name);
	owned(close_fd) int fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd >= 0 && write(fd, text, strlen(text)) >= 0 ? 0 : -1;
}

static int put_number(const char *dir, const char *name, int64_t value)
{
	char text[32];

	snprintf(text, sizeof text, "%lld", (long long)value);
	return put(dir, name, text);
}

/* The number in a file; or behind a key, where its lines are "key number". */
static uint64_t get(const char *dir, const char *name, const char *key)
{
	char path[PATH_MAX + 64], line[128];
	size_t len = strlen(key);
	uint64_t value = 0;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	FILE *file = fopen(path, "re");
	while (file && fgets(line, sizeof line, file))
		if (strncmp(line, key, len) == 0 && (!len || line[len] == ' '))
			value = strtoull(line + len, NULL, 10);
	if (file)
		fclose(file);
	return value;
}

static bool has_file(const char *dir, const char *name)
{
	char path[PATH_MAX + 64];

	snprintf(path, sizeof path, "%s/%s", dir, name);
	return access(path, F_OK) == 0;
}

/* ---- what dead daemons left ---- */

static void remove_base(const char *base)
{
	char path[PATH_MAX + 272];
	DIR *dir = opendir(base);

	if (!dir)
		return;
	for (struct dirent *entry; (entry = readdir(dir));) {
		snprintf(path, sizeof path, "%s/%s", base, entry->d_name);
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
			rmdir(path);
	}
	closedir(dir);
	rmdir(base);
}

static void remove_stale(const char *own)
{
	char path[PATH_MAX + 272];
	DIR *dir = opendir(own);

	if (!dir)
		return;
	for (struct dirent *entry; (entry = readdir(dir));) {
		const char *pid = entry->d_name + strlen(PREFIX);

		if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) != 0 ||
		    !isdigit((unsigned char)*pid) ||
		    kill((pid_t)strtol(pid, NULL, 10), 0) == 0 || errno != ESRCH)
			continue;
		snprintf(path, sizeof path, "%s/%s", own, entry->d_name);
		remove_base(path);
	}
	closedir(dir);
}

/* ---- version 2 ---- */

/* Those of the kinds that are on then; new gets those that were not before. */
static unsigned switch_on(const char *dir, unsigned kinds, unsigned *new)
{
	unsigned on = 0;
	char word[16];

	for (int kind = 0; kind < CGROUP_KINDS; kind++) {
		bool was = cgroup_lists(dir, "cgroup.subtree_control", names[kind]);

		snprintf(word, sizeof word, "+%s", names[kind]);
		if (!(kinds & 1u << kind) ||
		    (!was && put(dir, "cgroup.subtree_control", word) < 0))
			continue;
		on |= 1u << kind;
		if (!was)
			*new |= 1u << kind;
	}
	return on;
}

static void switch_off(const char *dir, unsigned kinds)
{
	char word[16];

	for (int kind = 0; kind < CGROUP_KINDS; kind++) {
		snprintf(word, sizeof word, "-%s", names[kind]);
		if (kinds & 1u << kind)
			put(dir, "cgroup.subtree_control", word);
	}
}

/* A group with processes in it can have no limited groups below it, but for the root,
 * the only one without a type: this process goes into one of its own. */
static bool move_down(struct cgroup_tree *tree)
{
	char leaf[PATH_MAX + 16];

	snprintf(leaf, sizeof leaf, "%s/" LEAF, tree->base);
	tree->moved = (mkdir(leaf, 0755) == 0 || errno == EEXIST) &&
		      put(leaf, "cgroup.procs", "0") == 0;
	return tree->moved;
}

static void move_up(struct cgroup_tree *tree)
{
	switch_off(tree->base, tree->kinds);
	switch_off(tree->own, tree->switched_on);
	tree->switched_on = 0;
	if (tree->moved)
		put(tree->own, "cgroup.procs", "0");
	tree->moved = false;
}

/* ---- opening ---- */

static bool make_base(struct cgroup_tree *tree)
{
	int len = snprintf(tree->base, sizeof tree->base, "%s/" PREFIX "%d", tree->own,
			   (int)getpid());

	remove_stale(tree->own);
	remove_base(tree->base); /* of a dead one with this process's number */
	return len < (int)sizeof tree->base && mkdir(tree->base, 0755) == 0;
}

/* All kernels together get what as many others as there are processors get. */
static void weigh(const struct cgroup_tree *tree)
{
	int64_t count = sysconf(_SC_NPROCESSORS_ONLN), weight = WEIGHT_OF_ONE * count;

	if (!(tree->kinds & 1u << CGROUP_CPU))
		return;
	if (tree->v2)
		put_number(tree->base, "cpu.weight",
			   weight < WEIGHT_MAX ? weight : WEIGHT_MAX);
	else
		put_number(tree->base, "cpu.shares", SHARES_OF_ONE * count);
}

static bool open_v1(struct cgroup_tree *tree)
{
	if (!make_base(tree))
		return false;
	weigh(tree);
	return true;
}

/* move: this process is in the group that gets others below. */
static bool try_v2(struct cgroup_tree *tree, bool move)
{
	unsigned below = 0, kinds;

	if (!make_base(tree))
		return false;
	if (!move || !has_file(tree->own, "cgroup.type") || move_down(tree))
		below = switch_on(tree->own, tree->kinds, &tree->switched_on);
	kinds = switch_on(tree->base, below, &(unsigned){0});
	if (!kinds) {
		move_up(tree);
		remove_base(tree->base);
		return false;
	}
	tree->kinds = kinds;
	weigh(tree);
	return true;
}

/* Who is started from a shell is in a scope with it.  The slice above has no processes;
 * out of a service, whose limits are meant for us, there is no such way. */
static bool leave_scope(struct cgroup_tree *tree)
{
	static const char scope[] = ".scope";
	size_t len = strlen(tree->own);

	if (len < strlen(scope) || strcmp(tree->own + len - strlen(scope), scope) != 0)
		return false;
	*strrchr(tree->own, '/') = '\0';
	for (int kind = 0; kind < CGROUP_KINDS; kind++) /* it may have more */
		if (cgroup_lists(tree->own, "cgroup.controllers", names[kind]))
			tree->kinds |= 1u << kind;
	return true;
}

static void open_tree(struct cgroups *self, struct cgroup_tree *tree)
{
	bool open =
	    tree->v2 ? try_v2(tree, true) || (leave_scope(tree) && try_v2(tree, false))
		     : open_v1(tree);

	if (open)
		return;
	tree->kinds = 0;
	if (!self->why[0])
		snprintf(self->why, sizeof self->why,
			 "the daemon's control group cannot be written to%s",
			 tree->v2 ? ", or has other processes in it" : "");
}

void cgroups_open(struct cgroups *out, const char *proc)
{
	*out = (struct cgroups){0};
	for (int kind = 0; kind < CGROUP_KINDS; kind++) {
		struct cgroup_tree found = {.kinds = 1u << kind};
		size_t at = 0;

		if (!cgroup_find(proc, names[kind], found.own, &found.v2)) {
			if (!out->why[0])
				snprintf(out->why, sizeof out->why,
					 "the daemon sees no control group for %s",
					 names[kind]);
			continue;
		}
		while (at < out->count && strcmp(out->trees[at].own, found.own) != 0)
			at++;
		if (at == out->count)
			out->trees[out->count++] = found;
		else
			out->trees[at].kinds |= found.kinds;
	}
	for (size_t i = 0; i < out->count; i++)
		open_tree(out, &out->trees[i]);
}

void cgroups_close(struct cgroups *self)
{
	for (size_t i = 0; i < self->count; i++) {
		struct cgroup_tree *tree = &self->trees[i];

		if (!tree->kinds)
			continue;
		if (tree->v2)
			move_up(tree);
		remove_base(tree->base);
	}
	self->count = 0;
}

const struct cgroup_tree *cgroups_tree(const struct cgroups *self,
				       enum cgroup_kind kind)
{
	for (size_t i = 0; i < self->count; i++)
		if (self->trees[i].kinds & 1u << kind)
			return &self->trees[i];
	return NULL;
}

/* ---- one kernel ---- */

void cgroup_path(const struct cgroup_tree *tree, unsigned number, char out[PATH_MAX])
{
	snprintf(out, PATH_MAX, "%.4000s/k%u", tree->base, number);
}

/* Swap counts too, where there is any. */
static int limit_memory(const char *dir, bool v2, int64_t most)
{
	if (put_number(dir, v2 ? "memory.max" : "memory.limit_in_bytes", most) < 0)
		return -1;
	if (v2)
		put(dir, "memory.swap.max", "0");
	else
		put_number(dir, "memory.memsw.limit_in_bytes", most);
	return 0;
}

static int limit_cpu(const char *dir, bool v2, int64_t us)
{
	char text[64];

	snprintf(text, sizeof text, "%lld %d", (long long)us, PERIOD_US);
	if (v2)
		return put(dir, "cpu.max", text);
	return put_number(dir, "cpu.cfs_period_us", PERIOD_US) < 0 ||
		       put_number(dir, "cpu.cfs_quota_us", us) < 0
		   ? -1
		   : 0;
}

static int limit(const struct cgroup_tree *tree, const char *dir,
		 const struct cgroup_values *values)
{
	if (tree->kinds & 1u << CGROUP_MEMORY && values->memory &&
	    limit_memory(dir, tree->v2, values->memory) < 0)
		return -1;
	if (tree->kinds & 1u << CGROUP_PIDS && values->pids &&
	    put_number(dir, "pids.max", values->pids) < 0)
		return -1;
	if (tree->kinds & 1u << CGROUP_CPU && values->cpu_us &&
	    limit_cpu(dir, tree->v2, values->cpu_us) < 0)
		return -1;
	return 0;
}

/* A supervisor that the daemon has let go cannot tell that from the daemon's end, and
 * removes what is above too if its kernel's group was the last one. */
static void remake_base(const struct cgroup_tree *tree)
{
	if (mkdir(tree->base, 0755) < 0)
		return;
	if (tree->v2)
		switch_on(tree->base, tree->kinds, &(unsigned){0});
	weigh(tree);
}

static bool make_group(const struct cgroup_tree *tree, const char *dir)
{
	if (mkdir(dir, 0755) == 0 || errno == EEXIST)
		return true;
	if (errno != ENOENT)
		return false;
	remake_base(tree);
	return mkdir(dir, 0755) == 0;
}

int cgroups_make(const struct cgroups *self, unsigned number,
		 const struct cgroup_values *values, struct err *err)
{
	char dir[PATH_MAX];

	for (size_t i = 0; i < self->count; i++) {
		const struct cgroup_tree *tree = &self->trees[i];

		if (!tree->kinds)
			continue;
		cgroup_path(tree, number, dir);
		if (!make_group(tree, dir) || limit(tree, dir, values) < 0) {
			err_set(err, ERR_SYSTEM, "set limits in %.150s", dir);
			cgroups_remove(self, number);
			return -1;
		}
	}
	return 0;
}

bool cgroups_remove(const struct cgroups *self, unsigned number)
{
	char dir[PATH_MAX];
	bool all = true;

	for (size_t i = 0; i < self->count; i++) {
		if (!self->trees[i].kinds)
			continue;
		cgroup_path(&self->trees[i], number, dir);
		if (rmdir(dir) < 0 && errno != ENOENT)
			all = false;
	}
	return all;
}

void cgroups_use(const struct cgroups *self, unsigned number, struct cgroup_use *out)
{
	const struct cgroup_tree *memory = cgroups_tree(self, CGROUP_MEMORY);
	const struct cgroup_tree *pids = cgroups_tree(self, CGROUP_PIDS);
	char dir[PATH_MAX];

	*out = (struct cgroup_use){0};
	if (memory) {
		cgroup_path(memory, number, dir);
		out->peak = get(
		    dir, memory->v2 ? "memory.peak" : "memory.max_usage_in_bytes", "");
		out->ended =
		    get(dir, memory->v2 ? "memory.events" : "memory.oom_control",
			"oom_kill");
	}
	if (pids) {
		cgroup_path(pids, number, dir);
		out->not_started = get(dir, "pids.events", "max");
	}
}

uint64_t cgroup_own_memory(const char *proc)
{
	char dir[PATH_MAX];
	uint64_t least = 0;
	bool v2;

	if (!cgroup_find(proc, names[CGROUP_MEMORY], dir, &v2))
		return 0;
	for (char *slash; (slash = strrchr(dir, '/')) && slash != dir; *slash = '\0') {
		uint64_t most =
		    get(dir, v2 ? "memory.max" : "memory.limit_in_bytes", "");

		if (most && (!least || most < least)) /* "max" reads as 0 */
			least = most;
	}
	return least;
}

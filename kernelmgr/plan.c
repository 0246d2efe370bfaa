// SPDX-License-Identifier: MIT
#include "kernelmgr/plan.h"

#include <stdlib.h>
#include <string.h>

enum { WORDS_MAX = 3 };

static const struct {
	const char *name;
	int what;
} limits[] = {
    {"core", RLIMIT_CORE},   {"cpu", RLIMIT_CPU},       {"data", RLIMIT_DATA},
    {"fsize", RLIMIT_FSIZE}, {"nofile", RLIMIT_NOFILE}, {"nproc", RLIMIT_NPROC},
};

static bool read_limit(struct plan *out, const char *name, const char *value)
{
	char *end;

	if (strcmp(name, "shm") == 0 || strcmp(name, "tmp") == 0) {
		*(name[0] == 's' ? &out->shm : &out->tmp) = value;
		return true;
	}
	for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
		if (strcmp(name, limits[i].name) != 0)
			continue;
		if (out->limit_count == PLAN_LIMITS_MAX)
			return false;
		struct plan_limit *limit = &out->limits[out->limit_count++];
		limit->what = limits[i].what;
		limit->most = strtoull(value, &end, 10);
		return *end == '\0';
	}
	return false;
}

static bool read_number(const char *text, long *out)
{
	char *end;

	*out = strtol(text, &end, 10);
	return end != text && *end == '\0' && *out >= 0;
}

static bool read_mount(struct plan *out, char *const words[WORDS_MAX])
{
	static const char *const kinds[] = {[PLAN_RO] = "ro",
					    [PLAN_RW] = "rw",
					    [PLAN_OPT] = "opt",
					    [PLAN_OWN] = "own",
					    [PLAN_LINK] = "link"};

	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
		if (strcmp(words[0], kinds[i]) != 0)
			continue;
		if (out->mount_count == PLAN_MOUNTS_MAX)
			return false;
		out->mounts[out->mount_count++] =
		    (struct plan_mount){.kind = (enum plan_kind)i,
					.from = words[1],
					.to = words[2],
					.owners = -1,
					.tree = -1};
		return true;
	}
	return false;
}

static bool read_two(struct plan *out, char *const words[WORDS_MAX])
{
	if (strcmp(words[0], "tier") == 0) {
		out->tier = words[1][0];
		return strchr("NUL0", out->tier) && out->tier && !words[1][1];
	}
	if (strcmp(words[0], "net") == 0) {
		out->own_net = strcmp(words[1], "own") == 0;
		out->no_internet = strcmp(words[1], "none") == 0;
		return out->own_net || out->no_internet;
	}
	if (strcmp(words[0], "cwd") == 0) {
		out->cwd = words[1];
		return true;
	}
	if (strcmp(words[0], "forwarder") == 0) {
		out->forwarder = words[1];
		return true;
	}
	if (strcmp(words[0], "group") == 0) {
		if (out->group_count == PLAN_GROUPS_MAX)
			return false;
		out->groups[out->group_count++] = words[1];
		return true;
	}
	if (strcmp(words[0], "guard") == 0)
		return (out->guard = strcmp(words[1], "connect") == 0);
	if (strcmp(words[0], "modes") == 0)
		return (out->all_modes = strcmp(words[1], "all") == 0);
	return strcmp(words[0], "port") == 0 && read_number(words[1], &out->port);
}

static bool read_line(struct plan *out, char *const words[WORDS_MAX])
{
	long uid, gid;

	if (!words[1])
		return false;
	if (!words[2])
		return read_two(out, words);
	if (strcmp(words[0], "limit") == 0)
		return read_limit(out, words[1], words[2]);
	if (strcmp(words[0], "proxy") == 0) {
		out->proxy_host = words[1];
		out->proxy_port = words[2];
		return true;
	}
	bool become = strcmp(words[0], "become") == 0;
	if (!become && strcmp(words[0], "appear") != 0)
		return read_mount(out, words);
	if (!read_number(words[1], &uid) || !read_number(words[2], &gid))
		return false;
	out->become = become;
	out->uid = (uid_t)uid;
	out->gid = (gid_t)gid;
	return true;
}

const char *plan_read(struct plan *out, char *text)
{
	char *line;

	*out = (struct plan){.tier = '0', .shm = "50%", .tmp = "50%"};
	while ((line = strsep(&text, "\n"))) {
		char *words[WORDS_MAX], *rest = line;

		if (!*line)
			continue;
		for (int i = 0; i < WORDS_MAX; i++)
			words[i] = strsep(&rest, "\t");
		if (rest || !read_line(out, words))
			return line;
	}
	if (out->forwarder && (!out->proxy_host || !out->own_net))
		return "forwarder";
	return NULL;
}

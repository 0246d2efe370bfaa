// SPDX-License-Identifier: MIT
/* What follows from the settings: real paths, and limits that depend on others. */
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "kernelmgr/config.h"

void config_real_path(char out[PATH_MAX], const char *path)
{
	char start[PATH_MAX];
	size_t len = strlen(path);

	snprintf(start, sizeof start, "%s", path);
	while (!realpath(len ? start : ".", out)) {
		while (len && start[len - 1] == '/')
			len--;
		while (len && start[len - 1] != '/')
			len--;
		start[len] = '\0';
	}
	size_t at = strlen(out);
	const char *rest = path + len + strspn(path + len, "/");
	if (*rest)
		snprintf(out + at, PATH_MAX - at, "%s%s", at == 1 ? "" : "/", rest);
}

bool config_is_inside(const char *path, const char *dir)
{
	size_t len = strlen(dir);

	return strncmp(path, dir, len) == 0 &&
	       (path[len] == '/' || path[len] == '\0' || strcmp(dir, "/") == 0);
}

size_t config_output_chars(const struct config *self)
{
	int64_t room = self->result_limit / 4 * 3 / (4 * 2 * 6);

	return (size_t)(self->output_limit < room ? self->output_limit : room);
}

uint64_t config_namespace_max(const struct config *self, const char *dir)
{
	const uint64_t most = 4ULL << 30;
	struct statvfs disk;

	if (self->namespace_max)
		return (uint64_t)self->namespace_max;
	if (statvfs(dir, &disk) < 0)
		return most;
	uint64_t quarter = (uint64_t)disk.f_bavail * disk.f_frsize / 4;
	return quarter < most ? quarter : most;
}

static bool lists(const char *list, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = list; *at; at += strspn(at, CONFIG_TOOLS_BETWEEN)) {
		size_t n = strcspn(at, CONFIG_TOOLS_BETWEEN);

		if (n == len && strncmp(at, name, n) == 0)
			return true;
		at += n;
	}
	return false;
}

bool config_saves(const struct config *self)
{
	return self->persist && self->durability != DURABILITY_OFF;
}

bool config_offers_tool(const struct config *self, const char *name)
{
	return lists(self->tools, name) ||
	       (strchr(self->tools, '+') && lists(CONFIG_TOOLS, name));
}

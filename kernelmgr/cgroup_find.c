// SPDX-License-Identifier: MIT
#include "kernelmgr/cgroup_find.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/mem.h"

/* One of the words of "a,b,c" or "a b c\n". */
static bool has_word(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = list; *at; at += strspn(at, ", \n")) {
		size_t n = strcspn(at, ", \n");

		if (n == len && strncmp(at, word, n) == 0)
			return true;
		at += n;
	}
	return false;
}

/* The path in the line "ID:CONTROLLERS:PATH" of the hierarchy; version 2 has no
 * controllers there. */
static bool find_path(const char *proc, const char *controller, bool v2,
		      char out[PATH_MAX])
{
	char path[PATH_MAX + 16], *line = NULL;
	size_t room = 0;
	bool found = false;

	snprintf(path, sizeof path, "%s/cgroup", proc);
	FILE *file = fopen(path, "re");
	while (file && !found && getline(&line, &room, file) > 0) {
		char *rest = line;

		line[strcspn(line, "\n")] = '\0';
		strsep(&rest, ":");
		char *controllers = strsep(&rest, ":");
		found =
		    rest && (v2 ? !*controllers : has_word(controllers, controller));
		if (found)
			snprintf(out, PATH_MAX, "%s", rest);
	}
	free(line);
	if (file)
		fclose(file);
	return found;
}

struct mount {
	char root[PATH_MAX], at[PATH_MAX]; /* what of it is mounted, and where */
};

/* "36 35 0:31 ROOT AT OPTIONS [MORE]... - TYPE SOURCE OPTIONS" */
static bool read_mount(char *line, const char *type, const char *controller,
		       struct mount *out)
{
	char *rest = strstr(line, " - "), options[256], found[32];

	if (!rest || sscanf(rest, " - %31s %*s %255s", found, options) != 2 ||
	    strcmp(found, type) != 0 || (controller && !has_word(options, controller)))
		return false;
	return sscanf(line, "%*s %*s %*s %4095s %4095s", out->root, out->at) == 2;
}

static bool find_mount(const char *proc, const char *type, const char *controller,
		       struct mount *out)
{
	char path[PATH_MAX + 16], *line = NULL;
	size_t room = 0;
	bool found = false;

	snprintf(path, sizeof path, "%s/mountinfo", proc);
	FILE *file = fopen(path, "re");
	while (file && !found && getline(&line, &room, file) > 0)
		found = read_mount(line, type, controller, out);
	free(line);
	if (file)
		fclose(file);
	return found;
}

/* The group of this process in a mounted hierarchy. */
static bool find_group(const char *proc, const char *controller, bool v2,
		       char out[PATH_MAX])
{
	char path[PATH_MAX];
	struct mount mount;

	if (!find_mount(proc, v2 ? "cgroup2" : "cgroup", v2 ? NULL : controller,
			&mount) ||
	    !find_path(proc, controller, v2, path))
		return false;
	size_t root = strcmp(mount.root, "/") == 0 ? 0 : strlen(mount.root);
	if (strncmp(path, mount.root, root) != 0 || strstr(path, "/.."))
		return false; /* it lies outside of what is mounted */
	const char *rest = path + root;
	return snprintf(out, PATH_MAX, "%s%s", mount.at,
			strcmp(rest, "/") == 0 ? "" : rest) < PATH_MAX;
}

bool cgroup_lists(const char *group, const char *name, const char *controller)
{
	char path[PATH_MAX + 64], list[512] = "";

	snprintf(path, sizeof path, "%s/%s", group, name);
	FILE *file = fopen(path, "re");
	if (!file)
		return false;
	bool read = fgets(list, sizeof list, file) != NULL;
	fclose(file);
	return read && has_word(list, controller);
}

bool cgroup_find(const char *proc, const char *controller, char out[PATH_MAX], bool *v2)
{
	*v2 = find_group(proc, controller, true, out) &&
	      cgroup_lists(out, "cgroup.controllers", controller);
	return *v2 || find_group(proc, controller, false, out);
}

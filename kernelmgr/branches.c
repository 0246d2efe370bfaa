// SPDX-License-Identifier: MIT
#include "kernelmgr/branches.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "wire/mem.h"

enum {
	LISTED_MAX = 20,
	SHOWN = 40, /* characters of a bad name that are repeated */
};

bool branch_name_is_good(const char *name)
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyz"
				   "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	size_t len = strlen(name);

	return len >= 1 && len < BRANCH_NAME_SIZE && name[0] != '.' &&
	       strspn(name, good) == len;
}

const char *branch_of(const char *workspace)
{
	const char *at = strchr(workspace, '@');

	return at ? at + 1 : "";
}

int branch_find_place(struct branch_place *out, const struct config *config,
		      const char *workspace, const char *branch, struct err *err)
{
	int root = (int)strcspn(workspace, "@");

	if (!branch_name_is_good(branch))
		return err_set(err, ERR_ARGUMENT,
			       "'%.*s' cannot name a branch; a name has 1 to %d of "
			       "A-Z a-z 0-9 . _ - and does not start with a dot",
			       SHOWN, branch, BRANCH_NAME_SIZE - 1);
	snprintf(out->name, sizeof out->name, "%.*s@%s", root, workspace, branch);
	if (snprintf(out->dir, sizeof out->dir, "%s/" BRANCHES_DIR "/%s",
		     config->workdir, out->name) >= (int)sizeof out->dir ||
	    snprintf(out->partial, sizeof out->partial,
		     "%s/" BRANCHES_DIR "/.%s.partial", config->workdir,
		     out->name) >= (int)sizeof out->partial)
		return err_set(err, ERR_CONFIG, "VIVARIUM_WORKDIR is too long");
	return 0;
}

bool branch_is_there(const struct branch_place *self)
{
	struct stat status;

	return lstat(self->dir, &status) == 0 && S_ISDIR(status.st_mode);
}

void branch_list(const struct config *config, const char *workspace, struct buf *out)
{
	owned(free_text) char *path = xasprintf("%s/" BRANCHES_DIR, config->workdir);
	size_t root = strcspn(workspace, "@"), count = 0;
	DIR *dir = opendir(path);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		const char *name = entry->d_name;

		if (strncmp(name, workspace, root) != 0 || name[root] != '@' ||
		    !branch_name_is_good(name + root + 1))
			continue;
		if (count++ < LISTED_MAX)
			buf_printf(out, "%s%s", count > 1 ? ", " : "", name + root + 1);
	}
	if (dir)
		closedir(dir);
	if (count > LISTED_MAX)
		buf_printf(out, ", +%zu more", count - LISTED_MAX);
	if (!count)
		buf_text(out, "none");
}

// SPDX-License-Identifier: MIT
#include "kernelmgr/users.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "kernelmgr/files.h"
#include "kernelmgr/names.h"
#include "kernelmgr/nolinks.h"
#include "wire/log.h"
#include "wire/mem.h"

#define USERS_DIR "users"
#define ALL_DIR "@all" /* no user's name */

int users_check_name(const char *name, struct err *err)
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyz"
				   "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	size_t len = strlen(name);

	if (len < 1 || len > USER_NAME_MAX || name[0] == '.' ||
	    strspn(name, good) != len)
		return err_set(err, ERR_CONFIG,
			       "a user's name has 1 to %d of A-Z a-z 0-9 . _ - and "
			       "does not start with a dot",
			       USER_NAME_MAX);
	if (strcmp(name, USERS_ALL) == 0)
		return err_set(err, ERR_CONFIG,
			       "'%s' is the workspace of those without a name; choose "
			       "another",
			       name);
	return 0;
}

static int find_dir(char out[PATH_MAX], const struct config *config, const char *name,
		    struct err *err)
{
	if (snprintf(out, PATH_MAX, "%s/" USERS_DIR "/%s", config->workdir, name) >=
	    PATH_MAX)
		return err_set(err, ERR_CONFIG, "VIVARIUM_WORKDIR is too long");
	return 0;
}

/* True if there is more in it than users and what list_files leaves out. */
static bool has_files(const char *workdir)
{
	DIR *dir = opendir(workdir);
	const struct dirent *entry;
	bool found = false;

	while (dir && !found && (entry = readdir(dir)))
		found =
		    entry->d_name[0] != '.' && strcmp(entry->d_name, USERS_DIR) != 0;
	if (dir)
		closedir(dir);
	return found;
}

static bool is_there(const char *dir)
{
	owned(close_fd) int fd = nolinks_open(dir, O_PATH | O_DIRECTORY);

	return fd >= 0;
}

/* Whoever would look for what lay in the work directory itself is told. */
static int begin(const char *all, const struct config *config, struct err *err)
{
	owned(files_close) struct files *made = NULL;

	if (is_there(all))
		return 0;
	if (files_open_real(&made, all, err) < 0)
		return -1;
	if (has_files(config->workdir))
		log_warn("vivarium",
			 "there are users here now: the workspace of all is %s, and "
			 "what else lies in %s is in no workspace; mv FILES %s/ brings "
			 "it back",
			 all, config->workdir, all);
	return 0;
}

int users_find_all(char out[PATH_MAX], const struct config *config, struct err *err)
{
	if (find_dir(out, config, ALL_DIR, err) < 0)
		return -1;
	if (config->user_header[0] || config->tokens_file[0])
		return begin(out, config, err);
	if (!is_there(out))
		snprintf(out, PATH_MAX, "%s", config->workdir);
	return 0;
}

int users_find(char out[PATH_MAX], const struct config *config, const char *name,
	       struct err *err)
{
	char all[PATH_MAX];

	if (find_dir(all, config, ALL_DIR, err) < 0 || begin(all, config, err) < 0)
		return -1;
	return find_dir(out, config, name, err);
}

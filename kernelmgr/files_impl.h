/* files_impl - what the files*.c share.  Nobody else includes it.
 * SPDX-License-Identifier: MIT */
#ifndef KERNELMGR_FILES_IMPL_H
#define KERNELMGR_FILES_IMPL_H

#include <sys/stat.h>

#include "kernelmgr/files.h"

enum { FILES_LABEL = 100 }; /* bytes of a path inside a message, which is short */

struct files {
	int fd; /* owned */
};

struct files_label { /* a path as it is shown in a message */
	char text[FILES_LABEL + sizeof "..."];
};

struct files_label files_label(const char *path, size_t size);
/* Fails for a path that can be none. */
int files_check_path(const char *path, size_t size, const char *shown,
		     struct err *err) must_check;
/* files_open_beneath() below another directory, also for what is to be created. */
int files_open_at(int dir, const char *path, int flags, unsigned mode,
		  uint64_t resolve);
/* Says what errno means after an open; -1. */
int files_refuse(const char *shown, struct err *err);
/* Opens a regular file, whose status goes to *status; returns the descriptor, which
 * the caller owns. */
int files_open_regular(const struct files *self, const char *path, size_t size,
		       struct stat *status, struct err *err) must_check;

#endif

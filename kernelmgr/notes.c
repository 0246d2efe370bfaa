// SPDX-License-Identifier: MIT
#include "kernelmgr/notes.h"

#include <stdarg.h>
#include <string.h>

#include "wire/log.h"
#include "wire/mem.h"

enum { REWRITE_AT = 256 * 1024 /* bytes that were added */ };

static int rewrite(struct notes *self, struct err *err)
{
	char partial[PATH_MAX + 8];

	snprintf(partial, sizeof partial, "%s.new", self->path);
	FILE *file = fopen(partial, "we");
	if (!file)
		return err_set(err, ERR_SYSTEM, "write %.150s", partial);
	if (self->file)
		fclose(self->file);
	self->file = file;
	self->write(file, self->arg);
	if (fflush(file) != 0 || rename(partial, self->path) < 0)
		return err_set(err, ERR_SYSTEM, "write %.150s", self->path);
	self->added = 0;
	self->written = ftell(file);
	return 0;
}

static void read_old(FILE *old, notes_read_fn *read, void *arg)
{
	owned(free_text) char *line = NULL;
	size_t room = 0;
	ssize_t len;

	while ((len = getline(&line, &room, old)) > 0) {
		if (line[len - 1] != '\n')
			continue; /* torn by the end of its writer */
		line[len - 1] = '\0';
		read(line, arg);
	}
}

int notes_open(struct notes *self, const char *dir, const char *name,
	       notes_read_fn *read, notes_write_fn *write, void *arg, struct err *err)
{
	self->write = write;
	self->arg = arg;
	if (snprintf(self->path, sizeof self->path, "%s/%s", dir, name) >=
	    (int)sizeof self->path)
		return err_set(err, ERR_CONFIG, "the path is too long");
	FILE *old = fopen(self->path, "re");
	if (old) {
		read_old(old, read, arg);
		fclose(old);
	}
	return rewrite(self, err);
}

void notes_close(struct notes *self)
{
	if (self->file)
		fclose(self->file);
	self->file = NULL;
}

/* The page cache keeps what is written when the daemon is killed, so no sync: after a
 * loss of power the newest lines may be missing. */
void notes_add(struct notes *self, const char *fmt, ...)
{
	struct err err;
	va_list ap;

	if (!self->file)
		return;
	va_start(ap, fmt);
	int len = vfprintf(self->file, fmt, ap);
	va_end(ap);
	if (len < 0 || fputc('\n', self->file) == EOF || fflush(self->file) != 0)
		log_warn("notes", "cannot write %s", self->path);
	else
		self->added += len + 1;
	/* what counts may be much: it is not to be written for each few lines */
	if (self->added > REWRITE_AT + self->written && rewrite(self, &err) < 0)
		log_warn("notes", "%s", err.msg);
}

// SPDX-License-Identifier: MIT
#include "wire/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *or_exit(void *p)
{
	static const char words[] = "vivarium: out of memory\n";

	if (p)
		return p;
	if (write(STDERR_FILENO, words, sizeof words - 1) < 0)
		_exit(71);
	_exit(71); /* EX_OSERR */
}

void *xcalloc(size_t count, size_t size)
{
	return or_exit(calloc(count, size));
}

void *xrealloc(void *old, size_t size)
{
	return or_exit(realloc(old, size));
}

char *xstrdup(const char *text)
{
	return text ? or_exit(strdup(text)) : NULL;
}

char *xasprintf(const char *fmt, ...)
{
	char *out = NULL;
	va_list ap;

	va_start(ap, fmt);
	int len = vasprintf(&out, fmt, ap);
	va_end(ap);
	return or_exit(len < 0 ? NULL : out);
}

void free_text(char **p)
{
	free(*p);
	*p = NULL;
}

void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/*
 * mem - allocation of small objects that cannot be done without: when memory is
 * out, the program says so and exits.  Sizes that a peer controls are checked
 * against their configured limit before they get here.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef WIRE_MEM_H
#define WIRE_MEM_H

#include <stddef.h>

/* Zeroed memory for count objects of size bytes.  Caller owns. */
void *xcalloc(size_t count, size_t size)
    __attribute__((malloc, returns_nonnull, alloc_size(1, 2)));
void *xrealloc(void *old, size_t size) __attribute__((returns_nonnull, alloc_size(2)));
/* Caller owns.  NULL in, NULL out. */
char *xstrdup(const char *text);
char *xasprintf(const char *fmt, ...)
    __attribute__((format(printf, 1, 2), malloc, returns_nonnull));

/* For owned(): frees the pointer at *p and clears it. */
void free_text(char **p);
/* For owned(): closes the descriptor at *fd if it is one, and sets it to -1. */
void close_fd(int *fd);

/* Elements of an array (not of a pointer). */
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#endif

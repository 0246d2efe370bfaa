/*
 * connfile - the connection information of a kernel (jupyter_client docs,
 * "Connection files"), which our kernels read from an inherited memory file: no
 * argument, environment variable or file ever holds the key.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef WIRE_CONNFILE_H
#define WIRE_CONNFILE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/err.h"

/* Sockets are <runtime_dir>/k-<port>, made by the kernel relative to runtime_dir. */
enum connfile_port { CONN_SHELL = 1, CONN_IOPUB, CONN_STDIN, CONN_CONTROL, CONN_HB };

struct connfile_snapshot {
	const char *store;      /* directory of the saved states; the kernel reads it */
	const char *spool;      /* the kernel writes here; same file system */
	bool always;            /* a cell's answer waits until it is on disk */
	uint64_t generation;    /* the last number used */
	uint64_t namespace_max; /* bytes; 0: no limit */
	const char *manifest;   /* in store: what to begin with; NULL: nothing */
	const json_t *skip;     /* names not to restore; NULL: none */
	const json_t *older;    /* generations beside it that have names of it; NULL */
	const char *moved_from; /* where the files were, if they are copies; NULL */
};

struct connfile {
	const char *key;         /* 64 hex digits */
	const char *runtime_dir; /* absolute, mode 0700, the kernel's own */
	int64_t peer_pid;        /* the only process whose connections are taken */
	int stream_split;        /* characters of one stream message at most */
	int summary_max;         /* bytes of the namespace summary at most */
	long long cell;          /* execution count that the next cell gets */
	const struct connfile_snapshot *snapshot; /* NULL: nothing is saved */
};

/* A sealed memory file with the JSON in it, at its start.  Caller owns the fd. */
int connfile_memfd(const struct connfile *self, struct err *err) must_check;
/* The path of one socket, for connecting; fails if it is over the 107
 * bytes that a UNIX socket's name can have. */
int connfile_path(char *out, size_t size, const char *runtime_dir,
		  enum connfile_port port, struct err *err) must_check;

#endif

/*
 * err - why something failed, as a value on the caller's stack.  Nothing to
 * release; works when memory is short.  Fallible functions return 0 (or a count)
 * and -1, take `struct err *` last, and leave it untouched on success.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef WIRE_ERR_H
#define WIRE_ERR_H

#include <stdio.h>

/* One row per kind of failure: enum name, wire name, JSON-RPC code, and what the
 * caller should do next ("" where the message says it all).  The README's error
 * table is printed from these rows. */
#define ERR_KINDS(X)                                                                   \
	X(ERR_OK, "ok", 0, "")                                                         \
	X(ERR_SYSTEM, "system", -32603, "Try again; if it persists, read the log.")    \
	X(ERR_PARSE, "parse", -32700, "Send one valid JSON-RPC 2.0 message as UTF-8.") \
	X(ERR_REQUEST, "request", -32600, "Correct the request and send it again.")    \
	X(ERR_METHOD, "method", -32601, "Use a method that this server offers.")       \
	X(ERR_ARGUMENT, "argument", -32602, "Correct the argument and call again.")    \
	X(ERR_LIMIT, "limit", -32603, "Ask for less, or raise the limit it names.")    \
	X(ERR_KERNEL, "kernel", -32603, "Call again: the next call starts a kernel.")  \
	X(ERR_BUSY, "busy", -32603,                                                    \
	  "Stop the one that is named, or wait until it ends.")                        \
	X(ERR_DECLINED, "declined", -32603, "Ask the user what to do instead.")        \
	X(ERR_CONFIG, "config", -32603, "Correct the setting and start again.")

enum err_kind {
#define X(id, name, rpc, advice) id,
	ERR_KINDS(X)
#undef X
	    ERR_KIND_COUNT
};

struct err {
	enum err_kind kind;
	int os; /* errno when kind is ERR_SYSTEM, else 0 */
	char msg[240];
};

#define must_check __attribute__((warn_unused_result))
#define owned(destroy) __attribute__((cleanup(destroy)))

/* Records the failure and returns -1, so that `return err_set(...)` is the whole
 * failure path.  ERR_SYSTEM appends the text of errno. */
int err_set(struct err *err, enum err_kind kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
#ifdef __clang_analyzer__ /* sees one file at a time: has to be told of the -1 */
#define err_set(...) ((void)err_set(__VA_ARGS__), -1)
#endif
/* Puts context before the message, keeps kind and cause.  Returns -1. */
int err_wrap(struct err *err, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
const char *err_name(enum err_kind kind);
/* JSON-RPC 2.0 section 5.1 code. */
int err_rpc_code(enum err_kind kind);
const char *err_advice(enum err_kind kind);
/* The rows as a Markdown table, for the README. */
void err_markdown(FILE *to);

/* Hands over ownership: the value leaves, NULL stays. */
#define take(p)                                                                        \
	__extension__({                                                                \
		__typeof__(*(p)) taken_ = *(p);                                        \
		*(p) = NULL;                                                           \
		taken_;                                                                \
	})

#endif

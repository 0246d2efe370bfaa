// SPDX-License-Identifier: MIT
#include "wire/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	int rpc;
	const char *advice;
} kinds[] = {
#define X(id, name, rpc, advice) [id] = {name, rpc, advice},
    ERR_KINDS(X)
#undef X
};

const char *err_name(enum err_kind kind)
{
	return kinds[kind].name;
}

int err_rpc_code(enum err_kind kind)
{
	return kinds[kind].rpc;
}

const char *err_advice(enum err_kind kind)
{
	return kinds[kind].advice;
}

#undef err_set /* see err.h */
int err_set(struct err *err, enum err_kind kind, const char *fmt, ...)
{
	int os = errno;
	va_list ap;

	err->kind = kind;
	err->os = kind == ERR_SYSTEM ? os : 0;
	va_start(ap, fmt);
	int len = vsnprintf(err->msg, sizeof err->msg, fmt, ap);
	va_end(ap);
	if (err->os && len >= 0 && (size_t)len < sizeof err->msg)
		snprintf(err->msg + len, sizeof err->msg - (size_t)len, ": %s",
			 strerror(err->os));
	return -1;
}

int err_wrap(struct err *err, const char *fmt, ...)
{
	char prefix[sizeof err->msg], whole[sizeof err->msg];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(prefix, sizeof prefix, fmt, ap);
	va_end(ap);
	if (snprintf(whole, sizeof whole, "%s: %s", prefix, err->msg) < 0)
		return -1;
	memcpy(err->msg, whole, sizeof whole);
	return -1;
}

void err_markdown(FILE *to)
{
	fprintf(to, "| kind | JSON-RPC code | what to do |\n|---|---|---|\n");
	for (int i = ERR_OK + 1; i < ERR_KIND_COUNT; i++)
		fprintf(to, "| %s | %d | %s |\n", kinds[i].name, kinds[i].rpc,
			kinds[i].advice);
}

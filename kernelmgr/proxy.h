/*
 * proxy - the proxy of the daemon's environment, which with VIVARIUM_NETWORK=proxy is
 * all that kernels reach; and what their environment says of it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef KERNELMGR_PROXY_H
#define KERNELMGR_PROXY_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/err.h"

enum { PROXY_HOST_SIZE = 256, PROXY_CREDENTIALS_SIZE = 512 };

struct proxy {
	char host[PROXY_HOST_SIZE]; /* "": none; without brackets */
	uint16_t port;
	char credentials[PROXY_CREDENTIALS_SIZE]; /* "name:password", encoded; "" */
};

/* True for http_proxy and the like, in small letters or capitals; also NAME=value. */
bool proxy_is_variable(const char *name);
/* Reads http://[NAME:PASSWORD@]HOST:PORT. */
bool proxy_read(struct proxy *out, const char *url);
/* The one that http_proxy, https_proxy and their capitals name, if any does.  Fails if
 * one cannot be read, or two differ; never shows a password. */
int proxy_find(struct proxy *out, char *const env[], struct err *err) must_check;
/* A name becomes an address, for those who can ask nobody.  May take seconds. */
void proxy_resolve(struct proxy *self);
/* NAME=http://... for each variable, at env; the last is no_proxy.  Returns how many,
 * at most PROXY_VARIABLES.  Caller owns the texts. */
enum { PROXY_VARIABLES = 6 };
int proxy_env(const struct proxy *self, char *env[PROXY_VARIABLES]);

#endif

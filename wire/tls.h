/*
 * tls - certificate and key for the HTTP layer, checked before lws sees them: it says
 * little of what is wrong.  The only file pair that calls OpenSSL.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef WIRE_TLS_H
#define WIRE_TLS_H

#include "wire/err.h"

struct ssl_ctx_st; /* SSL_CTX */
struct ssl_st;     /* SSL */

struct tls_files {        /* embed it; borrowed */
	const char *cert; /* PEM, the chain behind it; NULL or "": no TLS */
	const char *key;  /* PEM, without a passphrase */
};

/* Reads both, and says which of them is missing, unreadable, no PEM, of the other
 * not the match, or out of date. */
int tls_check(const struct tls_files *files, struct err *err) must_check;
/* What lws does not set: TLS 1.2 at least, no sessions kept, buffers given back. */
void tls_harden(struct ssl_ctx_st *context);
/* Takes what the files have now, for connections to come; on failure nothing has
 * changed. */
int tls_reload(struct ssl_ctx_st *context, const struct tls_files *files,
	       struct err *err) must_check;
/* Tells the peer that nothing more comes. */
void tls_say_end(struct ssl_st *connection);

#endif

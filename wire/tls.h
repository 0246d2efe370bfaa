/*
 * tls - certificate and key for the HTTP layer: checked before lws sees them, since it
 * says little of what is wrong, and handed to each connection anew, so that they may
 * change.  The only file pair that calls OpenSSL.
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

struct tls;

/* Reads both, and says which of them is missing, unreadable, no PEM, not the match of
 * the other, or out of date.  Borrows the names. */
int tls_open(struct tls **out, const struct tls_files *files,
	     struct err *err) must_check;
void tls_close(struct tls **self);
/* Has this context (of lws) show the certificate that is in force, and sets what lws
 * does not: TLS 1.2 at least, no sessions kept, buffers given back.  Borrowed by it. */
void tls_attach(struct tls *self, struct ssl_ctx_st *context);
/* Takes what the files have now, for connections to come; on failure nothing has
 * changed. */
int tls_reload(struct tls *self, struct err *err) must_check;

/* Tells the peer that nothing more comes. */
void tls_say_end(struct ssl_st *connection);

#endif

// SPDX-License-Identifier: MIT
#include "wire/tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wire/mem.h"
#include "wire/words.h"

struct tls {
	struct tls_files files; /* borrowed */
	SSL_CTX *current;       /* owned: holds what was read last, and serves nobody */
};

static void free_context(SSL_CTX **context)
{
	SSL_CTX_free(take(context));
}

/* Else OpenSSL would ask for it on the terminal. */
static int refuse_passphrase(char *buf, int size, int writing, void *asked)
{
	(void)buf, (void)size, (void)writing;
	*(bool *)asked = true;
	return -1;
}

static int blame(const char *path, const char *what, struct err *err)
{
	unsigned long code = ERR_peek_last_error();
	const char *reason = code ? ERR_reason_error_string(code) : NULL;

	ERR_clear_error(); /* what is left would be taken for another connection's */
	return err_set(err, ERR_CONFIG, "%.120s %s%s%s%s", path, what,
		       reason ? " (" : "", reason ? reason : "", reason ? ")" : "");
}

static int check_readable(const char *path, struct err *err)
{
	if (access(path, R_OK) == 0)
		return 0;
	return err_set(err, ERR_CONFIG, "%.150s: %s", path, strerror(errno));
}

static int check_date(SSL_CTX *context, const char *path, struct err *err)
{
	const X509 *cert = SSL_CTX_get0_certificate(context);
	const ASN1_TIME *end = X509_get0_notAfter(cert);
	struct tm tm = {0};
	char when[TIME_TEXT];

	if (X509_cmp_current_time(X509_get0_notBefore(cert)) > 0)
		return err_set(err, ERR_CONFIG,
			       "%.120s is not valid yet; is the clock right?", path);
	if (X509_cmp_current_time(end) > 0)
		return 0;
	ASN1_TIME_to_tm(end, &tm);
	time_text(when, timegm(&tm));
	return err_set(err, ERR_CONFIG, "%.120s is valid no longer: it ended at %s",
		       path, when);
}

static bool is_mismatch(unsigned long code)
{
	return ERR_GET_LIB(code) == ERR_LIB_X509 &&
	       (ERR_GET_REASON(code) == X509_R_KEY_VALUES_MISMATCH ||
		ERR_GET_REASON(code) == X509_R_KEY_TYPE_MISMATCH);
}

static int load(SSL_CTX *context, const struct tls_files *files, struct err *err)
{
	bool asked = false;

	if (check_readable(files->cert, err) < 0 || check_readable(files->key, err) < 0)
		return -1;
	ERR_clear_error();
	SSL_CTX_set_default_passwd_cb(context, refuse_passphrase);
	SSL_CTX_set_default_passwd_cb_userdata(context, &asked);
	if (SSL_CTX_use_certificate_chain_file(context, files->cert) != 1)
		return blame(files->cert, "holds no certificate in PEM", err);
	bool has_key =
	    SSL_CTX_use_PrivateKey_file(context, files->key, SSL_FILETYPE_PEM) == 1;
	SSL_CTX_set_default_passwd_cb_userdata(context, NULL);
	if (asked)
		return blame(files->key, "has a passphrase: give a key without", err);
	if (!has_key && !is_mismatch(ERR_peek_last_error()))
		return blame(files->key, "holds no private key in PEM", err);
	/* one of another kind stands beside the certificate, without a complaint */
	if (!has_key || SSL_CTX_check_private_key(context) != 1)
		return blame(files->key, "is not the certificate's key", err);
	return 0;
}

static int read_files(SSL_CTX **out, const struct tls_files *files, struct err *err)
{
	owned(free_context) SSL_CTX *context = SSL_CTX_new(TLS_server_method());

	if (!context)
		return err_set(err, ERR_LIMIT, "OpenSSL has no memory");
	if (load(context, files, err) < 0 || check_date(context, files->cert, err) < 0)
		return -1;
	*out = take(&context);
	return 0;
}

int tls_open(struct tls **out, const struct tls_files *files, struct err *err)
{
	owned(tls_close) struct tls *self = xcalloc(1, sizeof *self);

	self->files = *files;
	if (read_files(&self->current, files, err) < 0)
		return -1;
	*out = take(&self);
	return 0;
}

void tls_close(struct tls **self)
{
	struct tls *dead = take(self);

	if (!dead)
		return;
	SSL_CTX_free(dead->current);
	free(dead);
}

int tls_reload(struct tls *self, struct err *err)
{
	SSL_CTX *fresh = NULL;

	if (read_files(&fresh, &self->files, err) < 0)
		return -1;
	SSL_CTX_free(self->current);
	self->current = fresh;
	return 0;
}

/* In the handshake.  The context of lws cannot just load the new files: one of another
 * kind of key would stand beside the old one, and be shown or not as clients like. */
static int show_current(SSL *connection, void *arg)
{
	const struct tls *self = arg;
	STACK_OF(X509) *chain = NULL;

	SSL_certs_clear(connection);
	SSL_CTX_get0_chain_certs(self->current, &chain);
	return SSL_use_certificate(connection,
				   SSL_CTX_get0_certificate(self->current)) == 1 &&
	       SSL_use_PrivateKey(connection, SSL_CTX_get0_privatekey(self->current)) ==
		   1 &&
	       (!chain || SSL_set1_chain(connection, chain) == 1);
}

void tls_attach(struct tls *self, SSL_CTX *context)
{
	SSL_CTX_set_cert_cb(context, show_current, self);
	SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
	SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
	SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
}

void tls_say_end(SSL *connection)
{
	SSL_shutdown(connection);
	ERR_clear_error();
}

// SPDX-License-Identifier: MIT
/*
 * config_check - which settings do not go together: who could come in, or read what
 * keeps others out.
 */
#include "kernelmgr/config.h"

#include <string.h>
#include <strings.h>

#include "wire/gate.h"
#include "wire/mem.h"
#include "wire/words.h"

enum { SETTING_NAME_SIZE = 64 };

int config_check_exposure(const struct config *self, struct err *err)
{
	char host[SETTING_NAME_SIZE];

	if (config_is_loopback(self->host) || self->anonymous || self->token[0] ||
	    self->tokens_file[0])
		return 0;
	snprintf(host, sizeof host, "%s", config_name(self, "host"));
	return err_set(err, ERR_CONFIG,
		       "%s=%s lets other machines run code here; set VIVARIUM_TOKEN or "
		       "VIVARIUM_TOKENS_FILE, or VIVARIUM_ANONYMOUS=1 if the network "
		       "keeps strangers out, or use 127.0.0.1",
		       host, self->host);
}

static int check_secret(const struct config *self, struct err *err)
{
	size_t len = strlen(self->proxy_secret);

	if (!len || len >= CONFIG_SECRET_MIN)
		return 0;
	return err_set(
	    err, ERR_CONFIG,
	    "%s has %zu character%s, which can be guessed; it needs at least "
	    "%d",
	    config_name(self, "proxy-secret"), len, plural_s(len), CONFIG_SECRET_MIN);
}

int config_check_users(const struct config *self, bool kernels_apart, struct err *err)
{
	if (check_secret(self, err) < 0)
		return -1;
	if (!self->user_header[0] || self->proxy_secret[0] || self->token[0] ||
	    self->tokens_file[0] || kernels_apart)
		return 0;
	return err_set(err, ERR_CONFIG,
		       "%s=%s, but code in a kernel could call this port and name "
		       "another user; set VIVARIUM_PROXY_SECRET, which the proxy sends "
		       "along, or VIVARIUM_TOKENS_FILE",
		       config_name(self, "user-header"), self->user_header);
}

/* A pattern or an URL would let nobody in, without a word. */
int config_check_hosts(const struct config *self, struct err *err)
{
	const char *bad;
	size_t len = gate_find_bad(self->allowed_hosts, &bad);

	if (!len)
		return 0;
	return err_set(err, ERR_CONFIG,
		       "%s names '%.*s', which no request's Host is; give each name "
		       "alone, such as py.example.org",
		       config_name(self, "allowed-hosts"), (int)(len < 80 ? len : 80),
		       bad);
}

int config_check_conformance(const struct config *self, struct err *err)
{
	char host[SETTING_NAME_SIZE];

	if (!self->conformance || config_is_loopback(self->host))
		return 0;
	snprintf(host, sizeof host, "%s", config_name(self, "host"));
	return err_set(err, ERR_CONFIG,
		       "%s=%s is reached by other machines, which %s is not for; use "
		       "127.0.0.1",
		       host, self->host, config_name(self, "conformance"));
}

int config_check_tls(const struct config *self, struct err *err)
{
	bool has_cert = self->tls_cert[0] != '\0', has_key = self->tls_key[0] != '\0';
	char set[SETTING_NAME_SIZE];

	if (has_cert == has_key)
		return 0;
	snprintf(set, sizeof set, "%s",
		 config_name(self, has_cert ? "tls-cert" : "tls-key"));
	return err_set(err, ERR_CONFIG, "%s needs %s beside it", set,
		       config_name(self, has_cert ? "tls-key" : "tls-cert"));
}

int config_check_outside(const struct config *self, struct err *err)
{
	const struct {
		const char *option, *path;
	} files[] = {{"tokens-file", self->tokens_file},
		     {"tls-cert", self->tls_cert},
		     {"tls-key", self->tls_key}};
	char workdir[PATH_MAX], path[PATH_MAX];

	config_real_path(workdir, self->workdir);
	for (size_t i = 0; i < COUNT_OF(files); i++) {
		if (!files[i].path[0])
			continue;
		config_real_path(path, files[i].path);
		if (!config_is_inside(path, workdir))
			continue;
		return err_set(err, ERR_CONFIG,
			       "%s=%.100s lies inside the work directory, where code "
			       "could change it",
			       config_name(self, files[i].option), files[i].path);
	}
	return 0;
}

bool config_is_loopback(const char *host)
{
	return strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0 ||
	       strcasecmp(host, "localhost") == 0;
}

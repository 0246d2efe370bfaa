// SPDX-License-Identifier: MIT
#include "kernelmgr/proxy.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "kernelmgr/launch.h"
#include "wire/mem.h"

/* The first four name the one proxy. */
static const char *const names[] = {
    "http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ftp_proxy",
    "all_proxy",  "no_proxy",    "FTP_PROXY",  "ALL_PROXY",   "NO_PROXY"};
enum { NAMING = 4 };

bool proxy_is_variable(const char *name)
{
	size_t len = strcspn(name, "=");

	for (size_t i = 0; i < COUNT_OF(names); i++)
		if (strlen(names[i]) == len && strncmp(names[i], name, len) == 0)
			return true;
	return false;
}

/* Copies len bytes if they fit and hold nothing that could end a line or a word. */
static bool copy(char *out, size_t size, const char *from, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (from[i] <= ' ' || from[i] == 0x7f)
			return false;
	if (len >= size)
		return false;
	memcpy(out, from, len);
	out[len] = '\0';
	return true;
}

static bool read_port(const char *text, uint16_t *out)
{
	char *end;
	long port = strtol(text, &end, 10);

	*out = (uint16_t)port;
	return *text >= '0' && *text <= '9' && port > 0 && port < 65536 &&
	       strcmp(end, *end == '/' ? "/" : "") == 0;
}

bool proxy_read(struct proxy *out, const char *url)
{
	const char *at = url + strlen("http://");

	*out = (struct proxy){0};
	if (strncasecmp(url, "http://", strlen("http://")) != 0)
		return false;
	const char *sign = memrchr(at, '@', strcspn(at, "/"));
	if (sign &&
	    !copy(out->credentials, sizeof out->credentials, at, (size_t)(sign - at)))
		return false;
	if (sign)
		at = sign + 1;
	bool brackets = *at == '[';
	size_t len = strcspn(at += brackets, brackets ? "]" : ":/");
	if (len == 0 || !copy(out->host, sizeof out->host, at, len))
		return false;
	at += len + (brackets && at[len]);
	return *at == ':' && read_port(at + 1, &out->port);
}

int proxy_find(struct proxy *out, char *const env[], struct err *err)
{
	*out = (struct proxy){0};
	for (int i = 0; i < NAMING; i++) {
		const char *value = launch_env_get(env, names[i]);
		struct proxy found;

		if (!value || !*value)
			continue;
		if (!proxy_read(&found, value))
			return err_set(err, ERR_CONFIG,
				       "%s is not http://HOST:PORT or "
				       "http://NAME:PASSWORD@HOST:PORT, the only kind "
				       "of proxy that kernels can be kept to",
				       names[i]);
		if (out->host[0] &&
		    (strcasecmp(out->host, found.host) != 0 || out->port != found.port))
			return err_set(err, ERR_CONFIG,
				       "%s names another proxy than the variables "
				       "before it: kernels can be kept to one only",
				       names[i]);
		if (!out->credentials[0])
			*out = found;
	}
	return 0;
}

/* "localhost" is often the address of version 6 first, where few proxies listen. */
void proxy_resolve(struct proxy *self)
{
	static const int families[] = {AF_INET, AF_INET6};
	char address[PROXY_HOST_SIZE];
	struct addrinfo *found;

	for (size_t i = 0; i < COUNT_OF(families); i++) {
		const struct addrinfo hints = {.ai_family = families[i],
					       .ai_socktype = SOCK_STREAM};

		if (getaddrinfo(self->host, NULL, &hints, &found) != 0)
			continue;
		bool known = getnameinfo(found->ai_addr, found->ai_addrlen, address,
					 sizeof address, NULL, 0, NI_NUMERICHOST) == 0;
		freeaddrinfo(found);
		if (known) {
			memcpy(self->host, address, sizeof address);
			return;
		}
	}
}

int proxy_env(const struct proxy *self, char *env[PROXY_VARIABLES])
{
	bool brackets = strchr(self->host, ':') != NULL;
	int count = 0;

	if (!self->host[0])
		return 0;
	for (; count < NAMING; count++)
		env[count] = xasprintf(
		    "%s=http://%s%s%s%s%s:%d", names[count], self->credentials,
		    self->credentials[0] ? "@" : "", brackets ? "[" : "", self->host,
		    brackets ? "]" : "", self->port);
	env[count++] = xstrdup("no_proxy=localhost,127.0.0.1,::1");
	env[count++] = xstrdup("NO_PROXY=localhost,127.0.0.1,::1");
	return count;
}

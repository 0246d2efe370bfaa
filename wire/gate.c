// SPDX-License-Identifier: MIT
#include "wire/gate.h"

#include <arpa/inet.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char digits[] = "0123456789";
static const char hex_digits[] = "0123456789abcdefABCDEF";
static const char label_chars[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";

enum { HOST_MAX = 253, LABEL_MAX = 63, PORT_DIGITS_MAX = 5, PORT_MAX = 65535 };

/* True if text is "" or ":8080". */
static bool is_port(const char *text)
{
	size_t len;

	if (!*text)
		return true;
	if (*text++ != ':')
		return false;
	len = strspn(text, digits);
	return len > 0 && len <= PORT_DIGITS_MAX && text[len] == '\0' && *text != '0' &&
	       strtol(text, NULL, 10) <= PORT_MAX;
}

/* Copies the name out of "name:port", brackets of IPv6 included. */
static bool cut_port(const char *host, char *out)
{
	const char *end = host + strcspn(host, ":");

	if (*host == '[') {
		end = strchr(host, ']');
		if (!end)
			return false;
		end++;
	}
	size_t len = (size_t)(end - host);
	if (!len || len > HOST_MAX || !is_port(end))
		return false;
	memcpy(out, host, len);
	out[len] = '\0';
	return true;
}

/* 2130706433 and 0x7f000001 are 127.0.0.1 to a browser, 0x is 0.0.0.0. */
static bool is_number(const char *label)
{
	if (label[strspn(label, digits)] == '\0')
		return true;
	return label[0] == '0' && (label[1] | 0x20) == 'x' &&
	       label[2 + strspn(label + 2, hex_digits)] == '\0';
}

static bool is_single_label(const char *name)
{
	size_t len = strspn(name, label_chars);

	return len > 0 && len <= LABEL_MAX && name[len] == '\0' && !is_number(name);
}

static bool is_loopback(const char *name)
{
	struct in_addr address;

	if (strcasecmp(name, "localhost") == 0 || strcmp(name, "[::1]") == 0)
		return true;
	/* inet_pton() takes four decimal parts without leading zeros, nothing else */
	return inet_pton(AF_INET, name, &address) == 1 &&
	       ntohl(address.s_addr) >> 24 == 127;
}

/* True if name is text[0..len), which may lack the brackets of an IPv6 address. */
static bool is_same(const char *name, const char *text, size_t len)
{
	size_t name_len = strlen(name);

	if (name_len == len && strncasecmp(name, text, len) == 0)
		return true;
	return name[0] == '[' && name_len == len + 2 && memchr(text, ':', len) &&
	       strncasecmp(name + 1, text, len) == 0;
}

/* The user may have written "name:port" as it stands in a URL. */
static size_t without_port(const char *text, size_t len)
{
	const char *colon = memrchr(text, ':', len);

	if (!colon || (memchr(text, ':', len) != colon && colon[-1] != ']'))
		return len;
	for (const char *at = colon + 1; at < text + len; at++)
		if (!strchr(digits, *at))
			return len;
	return (size_t)(colon - text);
}

/* Of the names configured. */
static const char separators[] = ", \t\r\n";

static bool is_listed(const char *list, const char *name)
{
	while (*(list += strspn(list, separators))) {
		size_t len = strcspn(list, separators);

		if (is_same(name, list, without_port(list, len)))
			return true;
		list += len;
	}
	return false;
}

size_t gate_find_bad(const char *allowed, const char **out)
{
	static const char in_names[] = "abcdefghijklmnopqrstuvwxyz0123456789-._:[]"
				       "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

	for (*out = allowed; *(*out += strspn(*out, separators));) {
		size_t len = strcspn(*out, separators);

		if (strspn(*out, in_names) < len)
			return len;
		*out += len;
	}
	return 0;
}

bool gate_allows_host(const struct gate *self, const char *host)
{
	char name[HOST_MAX + 1];

	if (!cut_port(host, name))
		return false;
	if (is_loopback(name) || is_single_label(name))
		return true;
	if (self->address && is_same(name, self->address, strlen(self->address)))
		return true;
	return self->allowed && is_listed(self->allowed, name);
}

bool gate_allows_origin(const struct gate *self, const char *origin)
{
	static const char *const schemes[] = {"http://", "https://"};

	for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
		size_t len = strlen(schemes[i]);

		if (strncasecmp(origin, schemes[i], len) == 0)
			return gate_allows_host(self, origin + len);
	}
	return false;
}

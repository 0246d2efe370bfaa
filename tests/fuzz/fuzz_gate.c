// SPDX-License-Identifier: MIT
/*
 * Host and Origin.  Input: three lines: the address listened on, the names allowed,
 * what the client says.
 */
#include "wire/gate.h"

#include <ctype.h>
#include <strings.h>

#include "fuzz.h"

static const char separators[] = ", \t\r\n";

/* What comes before the port, brackets included.  Caller owns. */
static char *name_of(const char *host)
{
	const char *bracket = *host == '[' ? strchr(host, ']') : NULL;
	size_t len = bracket ? (size_t)(bracket - host) + 1 : strcspn(host, ":");
	struct input input = {(const uint8_t *)host, len};

	return input_copy(&input, len, true);
}

static bool is_plain_label(const char *name)
{
	bool hex = strncasecmp(name, "0x", 2) == 0, number = !hex;

	for (const char *at = name; *at; at++) {
		if (!isascii(*at) || (!isalnum(*at) && *at != '-' && *at != '_'))
			return false;
		number = number && isdigit(*at);
		hex = hex && (at < name + 2 || isxdigit(*at));
	}
	return *name && !number && !hex;
}

static bool is_plain_loopback(const char *name)
{
	int at = 0;

	if (strcasecmp(name, "localhost") == 0 || strcmp(name, "[::1]") == 0)
		return true;
	sscanf(name, "127.%*3[0-9].%*3[0-9].%*3[0-9]%n", &at);
	return at && !name[at];
}

/* True if text has the name, not as a part of a longer one. */
static bool mentions(const char *text, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = text; (at = strcasestr(at, name)); at++)
		if ((at == text || strchr(separators, at[-1])) &&
		    (!at[len] || strchr(separators, at[len]) || at[len] == ':'))
			return true;
	return false;
}

/* The address of [address]. */
static bool mentions_inside(const char *text, const char *name)
{
	owned(free_text) char *inside = xstrdup(*name == '[' ? name + 1 : "]");

	inside[strlen(inside) - 1] = '\0';
	return *inside && mentions(text, inside);
}

static bool may_pass(const char *name, const char *address, const char *allowed)
{
	return is_plain_label(name) || is_plain_loopback(name) ||
	       mentions(address, name) || mentions(allowed, name) ||
	       mentions_inside(address, name) || mentions_inside(allowed, name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	owned(free_text) char *address = input_line(&input);
	owned(free_text) char *allowed = input_line(&input);
	owned(free_text) char *host = input_line(&input);
	owned(free_text) char *name = name_of(host);
	owned(free_text) char *origin = xasprintf("https://%s", host);
	owned(free_text) char *with_port = xasprintf("%s:8080", name);
	const struct gate gate = {address, allowed}, bare = {0};
	bool passes = gate_allows_host(&gate, host);

	MUST(!passes || may_pass(name, address, allowed));
	MUST(!gate_allows_host(&bare, host) || (passes && may_pass(name, "", "")));
	MUST(gate_allows_origin(&gate, origin) == passes);
	MUST(!gate_allows_origin(&gate, host) || strstr(host, "://"));
	if (passes) {
		MUST(gate_allows_host(&gate, name)); /* ports are ignored */
		MUST(gate_allows_host(&gate, with_port));
	}
	return 0;
}

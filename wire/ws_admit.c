/*
 * ws_admit - which upgrades become WebSockets.  The others get a plain HTTP answer that
 * says why: nothing of lws's own is sent yet.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "wire/http_impl.h"
#include "wire/mem.h"

enum {
	KEY_LENGTH = 24, /* 16 bytes in base64 */
	PROTOCOLS_MAX = 512,
	TEXT_SIZE = 256,
};

struct refusal {
	int status;
	char text[TEXT_SIZE];
	const char *headers;
};

static bool refuse(struct refusal *out, int status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static bool refuse(struct refusal *out, int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(out->text, sizeof out->text, fmt, ap);
	va_end(ap);
	out->status = status;
	return false;
}

/* Written raw: lws is between protocols. */
static void answer(struct lws *wsi, const struct refusal *refusal)
{
	unsigned char room[LWS_PRE + 1024];
	owned(free_text) char *body = http_error_body(refusal->text);
	int len =
	    snprintf((char *)room + LWS_PRE, sizeof room - LWS_PRE,
		     "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\n"
		     "%sContent-Length: %zu\r\nConnection: close\r\n\r\n%s",
		     refusal->status, http_status_text(refusal->status),
		     refusal->headers ? refusal->headers : "", strlen(body), body);

	if (len > 0 && (size_t)len < sizeof room - LWS_PRE)
		lws_write(wsi, room + LWS_PRE, (size_t)len, LWS_WRITE_HTTP);
}

/* ---- subprotocols ---- */

/* The next of a comma list, NULL at its end; *list moves on. */
static char *next_of(char **list)
{
	char *word, *end;

	do {
		word = strsep(list, ",");
		if (!word)
			return NULL;
		word += strspn(word, " \t");
		end = word + strlen(word);
		while (end > word && (end[-1] == ' ' || end[-1] == '\t'))
			*--end = '\0';
	} while (!*word);
	return word;
}

static bool is_known(const struct http *http, const char *protocol)
{
	for (const char *const *known = http->config.subprotocols; known && *known;
	     known++)
		if (strcmp(*known, protocol) == 0)
			return true;
	return false;
}

/* Who offers none gets none; lws takes the first one that it knows. */
static bool check_protocols(struct http *http, struct lws *wsi, struct refusal *out)
{
	char offered[PROTOCOLS_MAX], *rest = offered, *word;
	int len = header_copy(wsi, "sec-websocket-protocol", offered, sizeof offered);

	if (len == HEADER_ABSENT)
		return true;
	while (len > 0 && (word = next_of(&rest)))
		if (is_known(http, word))
			return true;
	return refuse(out, 400,
		      "none of the subprotocols offered is known here; offer '%s'",
		      http->config.subprotocols ? http->config.subprotocols[0] : "");
}

/* Browsers cannot send Authorization: they hide the token among the subprotocols. */
static bool has_token_there(struct http *http, struct lws *wsi, struct pass *pass)
{
	char offered[PROTOCOLS_MAX], any[2], *rest = offered, *word;
	const char *prefix = http->config.token_subprotocol;
	bool is_good = false;

	if (!prefix ||
	    header_copy(wsi, "authorization", any, sizeof any) != HEADER_ABSENT ||
	    header_copy(wsi, "sec-websocket-protocol", offered, sizeof offered) <= 0)
		return false;
	while (!is_good && (word = next_of(&rest)))
		is_good = strncmp(word, prefix, strlen(prefix)) == 0 &&
			  http->config.guard(http->config.guard_arg,
					     word + strlen(prefix), pass);
	explicit_bzero(offered, sizeof offered);
	return is_good;
}

/* ---- the rest ---- */

static const struct http_route *find_route(const struct http *http, struct lws *wsi)
{
	char *path;
	int len, method = lws_http_get_uri_and_method(wsi, &path, &len);

	for (size_t i = 0; method >= 0 && i < http->route_count; i++)
		if ((int)strlen(http->routes[i].path) == len &&
		    strncmp(http->routes[i].path, path, (size_t)len) == 0)
			return &http->routes[i];
	return NULL;
}

/* What makes of it something else than the request that we would take it for. */
static bool check_framing(struct lws *wsi, struct refusal *out)
{
	char name[64], any[2];

	if (header_is_lost(wsi, name, sizeof name))
		return refuse(out, 400,
			      "the header '%s' hides the one that follows it from this "
			      "server; rename it or leave it out",
			      name);
	if (header_copy(wsi, "content-length", any, sizeof any) != HEADER_ABSENT ||
	    header_copy(wsi, "transfer-encoding", any, sizeof any) != HEADER_ABSENT)
		return refuse(out, 400, "an upgrade has no body");
	return true;
}

static bool check_handshake(struct lws *wsi, struct refusal *out)
{
	char value[64], *path;
	int len;

	if (lws_http_get_uri_and_method(wsi, &path, &len) != LWSHUMETH_GET)
		return refuse(out, 400, "a WebSocket begins with GET");
	if (header_copy(wsi, "sec-websocket-version", value, sizeof value) != 2 ||
	    strcmp(value, "13") != 0) {
		out->headers = "Sec-WebSocket-Version: 13\r\n";
		return refuse(out, 426, "Sec-WebSocket-Version must be 13");
	}
	if (header_copy(wsi, "sec-websocket-key", value, sizeof value) != KEY_LENGTH)
		return refuse(out, 400, "Sec-WebSocket-Key must be 16 bytes in base64");
	return true;
}

static bool admit(struct http *http, struct lws *wsi, const char *upgrade,
		  struct pass *pass, const struct http_route **route,
		  struct refusal *out)
{
	out->status = exchange_gate(http, wsi, out->text, sizeof out->text);
	if (out->status)
		return false;
	if (!check_framing(wsi, out))
		return false;
	if (http->config.guard && !exchange_guard(http, wsi, pass) &&
	    !has_token_there(http, wsi, pass))
		return refuse(out, 401, "%s", exchange_no_token(wsi));
	*route = find_route(http, wsi);
	if (strcasecmp(upgrade, "websocket") != 0 || (*route && !(*route)->ws))
		return refuse(out, 501,
			      "Upgrade: %s is not offered here; send plain HTTP/1.1 "
			      "requests",
			      upgrade);
	if (!*route)
		return refuse(out, 404, "there is no WebSocket at this path");
	if (http->draining)
		return refuse(out, 503, "this server is stopping");
	return check_handshake(wsi, out) && check_protocols(http, wsi, out);
}

int ws_on_upgrade(struct http *http, struct lws *wsi, const char *upgrade)
{
	const struct http_route *route = NULL;
	struct refusal refusal = {0};
	struct pass pass;

	if (!admit(http, wsi, upgrade, &pass, &route, &refusal)) {
		answer(wsi, &refusal);
		return -1;
	}
	ws_begin(http, wsi, route, http->config.guard ? &pass : NULL);
	return 0;
}

/*
 * exchange_admit - the checks that every request passes before a route sees it, and
 * the words in which each refusal says what is wrong and what to do instead.
 *
 * SPDX-License-Identifier: MIT
 */
#include "wire/http_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	LENGTH_DIGITS_MAX = 15, /* of Content-Length */
	QUOTE_MAX = 80,         /* bytes of a peer's text that we say back */
	TOKEN_HEADER_MAX = 512,
};

static const char allow_for_unknown[] = "GET, POST, DELETE";

static bool refuse_framing(struct exchange *self, int status, const char *text)
{
	self->keep_alive = false;
	/* lws waits for a body it was not promised: linger, don't complete */
	self->body_due = self->body_due || status == 411;
	http_error(self, status, "", "%s", text);
	return false;
}

static bool must_have_body(const struct exchange *self)
{
	return strcmp(self->method, "POST") == 0 || strcmp(self->method, "PUT") == 0 ||
	       strcmp(self->method, "PATCH") == 0;
}

static void read_version(struct exchange *self)
{
	char version[12];
	int len = header_copy(self->wsi, "http-version", version, sizeof version);

	self->chunked_out = len == 8 && strcmp(version, "HTTP/1.1") == 0;
	self->keep_alive =
	    self->chunked_out && !header_has(self->wsi, "connection", "close");
	self->expects_continue = header_has(self->wsi, "expect", "100-continue");
}

static bool refuse_lost_header(struct exchange *self, const char *name)
{
	char text[256];

	snprintf(
	    text, sizeof text,
	    "the header '%s' hides the one that follows it from this server; rename "
	    "it or leave it out",
	    name);
	self->body_due = true; /* who knows */
	return refuse_framing(self, 400, text);
}

bool exchange_read_framing(struct exchange *self)
{
	char value[24], coding[64];
	int len = header_copy(self->wsi, "content-length", value, sizeof value);

	read_version(self);
	if (header_is_lost(self->wsi, coding, sizeof coding))
		return refuse_lost_header(self, coding);
	if (header_copy(self->wsi, "transfer-encoding", coding, sizeof coding) !=
	    HEADER_ABSENT) {
		/* with another method lws takes the chunks for the next request */
		if (strcasecmp(coding, "chunked") != 0 || len != HEADER_ABSENT ||
		    strcmp(self->method, "POST") != 0)
			return refuse_framing(
			    self, 400,
			    "Transfer-Encoding must be 'chunked', with POST and "
			    "without "
			    "Content-Length; send a Content-Length instead");
		self->chunked_in = self->body_due = true;
		return true;
	}
	if (len == HEADER_ABSENT) {
		if (must_have_body(self))
			return refuse_framing(self, 411,
					      "this method needs a Content-Length or "
					      "Transfer-Encoding: chunked");
		return true;
	}
	/* lws would let "-5", "0x5", "5, 5" and two of them pass through atoll() */
	if (len <= 0 || len > LENGTH_DIGITS_MAX ||
	    value[strspn(value, "0123456789")] != '\0')
		return refuse_framing(self, 400,
				      "Content-Length must be one decimal number");
	self->body_left = strtoull(value, NULL, 10);
	self->body_due = self->body_left > 0;
	return true;
}

static int gate_refuses(char *text, size_t size, const char *name, const char *value,
			const char *advice)
{
	snprintf(text, size, "%s '%.*s%s' is not allowed here; %s", name, QUOTE_MAX,
		 value, strlen(value) > QUOTE_MAX ? "..." : "", advice);
	return 403;
}

/* "GET http://elsewhere/ HTTP/1.1" has two authorities, and which counts is a matter of
 * opinion.  lws refuses it as well, but not beside an Upgrade. */
static bool has_authority_of_its_own(struct lws *wsi)
{
	char *target;
	int len;

	return lws_http_get_uri_and_method(wsi, &target, &len) >= 0 &&
	       (len < 1 || target[0] != '/');
}

int exchange_gate(struct http *http, struct lws *wsi, char *text, size_t size)
{
	char value[512];
	int len = header_copy(wsi, "host", value, sizeof value);

	if (len == HEADER_ABSENT || len == 0) {
		snprintf(text, size, "the request has no Host header; send one");
		return 400;
	}
	if (has_authority_of_its_own(wsi)) {
		snprintf(text, size,
			 "the request's target is no path; send a path, "
			 "and the server's name in Host");
		return 403;
	}
	/* two Hosts come as "a,b", which is no name; one that is too long comes as ""
	 */
	if (!gate_allows_host(&http->gate, value))
		return gate_refuses(text, size, "Host", value,
				    "use localhost or 127.0.0.1, or add it to "
				    "VIVARIUM_ALLOWED_HOSTS");
	if (header_copy(wsi, "origin", value, sizeof value) == HEADER_ABSENT ||
	    gate_allows_origin(&http->gate, value))
		return 0;
	return gate_refuses(text, size, "Origin", value,
			    "use a page from localhost, or add its host name to "
			    "VIVARIUM_ALLOWED_HOSTS");
}

const char *exchange_no_token(struct lws *wsi)
{
	char any[2];

	return header_copy(wsi, "authorization", any, sizeof any) == HEADER_ABSENT
		   ? "this server wants a token in the header Authorization; the one "
		     "who runs it has it"
		   : "what the header Authorization has is none of this server's "
		     "tokens; the one who runs it has one";
}

bool exchange_guard(struct http *http, struct lws *wsi, struct pass *out)
{
	static const char scheme[] = "Bearer ";
	char value[TOKEN_HEADER_MAX];
	bool is_good = false;

	/* two of them come as "a, b", which is no token */
	if (header_copy(wsi, "authorization", value, sizeof value) > 0 &&
	    strncasecmp(value, scheme, strlen(scheme)) == 0) {
		const char *token = value + strlen(scheme);

		is_good = http->config.guard(http->config.guard_arg,
					     token + strspn(token, " "), out);
	}
	explicit_bzero(value, sizeof value);
	return is_good;
}

/* True if the comma list has the method. */
static bool has_method(const char *methods, const char *method)
{
	size_t len = strlen(method);

	for (const char *at = methods; (at = strstr(at, method)); at += len)
		if ((at == methods || at[-1] == ' ' || at[-1] == ',') &&
		    (at[len] == '\0' || at[len] == ',' || at[len] == ' '))
			return true;
	return false;
}

static bool refuse_method(struct exchange *self)
{
	const char *methods = self->route ? self->route->methods : allow_for_unknown;
	char allow[128];

	snprintf(allow, sizeof allow, "Allow: %s\r\n", methods);
	http_error(self, 405, allow, "%s is not offered at '%.*s'; use %s",
		   self->method, QUOTE_MAX, self->path, methods);
	return false;
}

static bool refuse_path(struct exchange *self)
{
	char known[256] = "";
	size_t at = 0;

	for (size_t i = 0; i < self->http->route_count && at < sizeof known; i++)
		at += (size_t)snprintf(known + at, sizeof known - at, "%s%s",
				       i ? ", " : "", self->http->routes[i].path);
	http_error(self, 404, "", "there is nothing at '%.*s%s'; this server has %s",
		   QUOTE_MAX, self->path, strlen(self->path) > QUOTE_MAX ? "..." : "",
		   known);
	return false;
}

static void find_route(struct exchange *self)
{
	for (size_t i = 0; i < self->http->route_count && !self->route; i++)
		if (strcmp(self->http->routes[i].path, self->path) == 0)
			self->route = &self->http->routes[i];
}

static bool is_let_in(struct exchange *self)
{
	if (!self->http->config.guard)
		return true;
	self->has_pass = exchange_guard(self->http, self->wsi, &self->pass);
	return self->has_pass ||
	       (self->route && self->route->open && strcmp(self->method, "GET") == 0);
}

bool exchange_admit(struct exchange *self)
{
	char text[256];
	int status = exchange_gate(self->http, self->wsi, text, sizeof text);

	if (status) {
		http_error(self, status, "", "%s", text);
		return false;
	}
	find_route(self);
	if (strcmp(self->method, "HEAD") == 0)
		return refuse_method(self);
	if (strncmp(self->path, "/.well-known/", 13) == 0)
		return refuse_path(self);
	if (!is_let_in(self)) {
		http_error(self, 401, "", "%s", exchange_no_token(self->wsi));
		return false;
	}
	if (!self->route)
		return refuse_path(self);
	if (!has_method(self->route->methods, self->method))
		return refuse_method(self);
	if (self->body_left > self->http->config.body_max) {
		http_error(self, 413, "",
			   "a body of %llu bytes is over the limit of %zu bytes; send "
			   "less in one request",
			   self->body_left, self->http->config.body_max);
		return false;
	}
	return true;
}

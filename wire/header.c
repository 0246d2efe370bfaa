// SPDX-License-Identifier: MIT
#include "wire/header.h"

#include <libwebsockets.h>
#include <stdlib.h>
#include <string.h>

#include "wire/loop.h"
#include "wire/mem.h"

enum {
	NAME_MAX_LEN = 63,
	LIKENESSES_MAX = 8, /* texts in one head that read like one header's name */
	HIDE = 0x80,        /* turns a letter into what is in no name */
	/* lws keeps a head in one piece of memory of LOOP_HEAD_MAX bytes
	 * (header_check() looks at each start whether it still does): */
	URI_OFFSET = 9,  /* where the path begins in it (4.1 to 4.3) */
	NAME_OFFSET = 8, /* before a custom name: its length in 16 bits, and links */
};

struct token { /* a header that lws knows; its name is in lower case, with the colon */
	const char *name;
	size_t len;
	enum lws_token_indexes index;
};

static int by_name(const void *a, const void *b)
{
	const struct token *left = a, *right = b;

	if (left->len != right->len)
		return left->len < right->len ? -1 : 1;
	return memcmp(left->name, right->name, left->len);
}

struct tokens {
	struct token all[WSI_TOKEN_COUNT];
	size_t count;
};

static void sort_tokens(struct tokens *self)
{
	for (int i = 0; i < WSI_TOKEN_COUNT; i++) {
		enum lws_token_indexes index = (enum lws_token_indexes)i;
		const char *name = (const char *)lws_token_to_string(index);
		size_t len = name ? strlen(name) : 0;

		if (len && name[len - 1] == ':')
			self->all[self->count++] = (struct token){name, len, index};
	}
	qsort(self->all, self->count, sizeof *self->all, by_name);
}

/* lws tells only the name of a number, and every request asks for a dozen names. */
static const struct token *find_token(const char *key, size_t key_len)
{
	static struct tokens tokens;
	const struct token wanted = {.name = key, .len = key_len};

	if (!tokens.count)
		sort_tokens(&tokens);
	return bsearch(&wanted, tokens.all, tokens.count, sizeof wanted, by_name);
}

/* Of the blanks before the value lws skips the spaces only. */
static int trim(char *value, int len)
{
	int blanks = (int)strspn(value, " \t");

	if (blanks) {
		len -= blanks;
		memmove(value, value + blanks, (size_t)len + 1);
	}
	while (len > 0 && (value[len - 1] == ' ' || value[len - 1] == '\t'))
		value[--len] = '\0';
	return len;
}

/* The total length is 0 for "Origin:" as well, the first fragment's is not -1. */
static bool is_there(struct lws *wsi, enum lws_token_indexes token)
{
	char first[2];

	return lws_hdr_total_length(wsi, token) > 0 ||
	       lws_hdr_copy_fragment(wsi, first, sizeof first, token, 0) == 0;
}

static int copy_known(struct lws *wsi, enum lws_token_indexes token, char *out,
		      size_t size)
{
	if (lws_hdr_total_length(wsi, token) <= 0)
		return is_there(wsi, token) ? 0 : HEADER_ABSENT;
	int len = lws_hdr_copy(wsi, out, (int)size, token);
	return len < 0 ? HEADER_TOO_LONG : trim(out, len);
}

/* lws takes a line "GET /" for another path, wherever it stands in the head. */
static bool has_two_methods(struct lws *wsi)
{
	static const enum lws_token_indexes methods[] = {
	    WSI_TOKEN_GET_URI, WSI_TOKEN_POST_URI,  WSI_TOKEN_OPTIONS_URI,
	    WSI_TOKEN_PUT_URI, WSI_TOKEN_PATCH_URI, WSI_TOKEN_DELETE_URI,
	    WSI_TOKEN_CONNECT, WSI_TOKEN_HEAD_URI,
	};
	int count = 0;

	for (size_t i = 0; i < COUNT_OF(methods); i++)
		count += is_there(wsi, methods[i]);
	return count > 1;
}

/* The memory of the head from the path on, which is where we expect it only if it is
 * the only one.  False: it is not. */
static bool find_head(struct lws *wsi, char **path, char **end)
{
	int len;

	if (has_two_methods(wsi) || lws_http_get_uri_and_method(wsi, path, &len) < 0)
		return false;
	*end = *path + LOOP_HEAD_MAX - URI_OFFSET;
	return true;
}

/*
 * lws finds only the first of repeated headers that it does not know, and has no way
 * to ask for the next.  A header that names the user must not come twice: a proxy
 * that appends its own would lose to the client's.  So each text in the head that
 * reads like the name is hidden until lws finds none; the one hidden last was a real
 * one, and another is real if lws finds it when it alone is shown again.  The scan
 * ends in time: what lws found lies ahead, as the head is stored in order, URI first.
 */
static bool is_repeated(struct lws *wsi, const char *key, int key_len)
{
	char *at, *end, *hidden[LIKENESSES_MAX];
	int count = 0;
	bool again = false;

	if (!find_head(wsi, &at, &end))
		return true;
	for (; lws_hdr_custom_length(wsi, key, key_len) >= 0; at++) {
		at = memmem(at, (size_t)(end - at), key, (size_t)key_len);
		if (!at || count == LIKENESSES_MAX) {
			again = true;
			break;
		}
		*at = (char)(*at ^ HIDE);
		hidden[count++] = at;
	}
	for (int i = 0; i < count; i++) {
		*hidden[i] = (char)(*hidden[i] ^ HIDE);
		if (i == count - 1)
			break;
		again = again || lws_hdr_custom_length(wsi, key, key_len) >= 0;
		*hidden[i] = (char)(*hidden[i] ^ HIDE);
	}
	for (int i = 0; i < count - 1; i++)
		*hidden[i] = (char)(*hidden[i] ^ HIDE);
	return again;
}

static int copy_custom(struct lws *wsi, const char *key, int key_len, char *out,
		       size_t size)
{
	if (lws_hdr_custom_length(wsi, key, key_len) < 0)
		return HEADER_ABSENT;
	if (is_repeated(wsi, key, key_len))
		return HEADER_REPEATED;
	int len = lws_hdr_custom_copy(wsi, out, (int)size, key, key_len);
	return len < 0 ? HEADER_TOO_LONG : trim(out, len);
}

int header_copy(struct lws *wsi, const char *name, char *out, size_t size)
{
	char key[NAME_MAX_LEN + 2]; /* as lws has it: lower case, with the colon */
	int key_len = 0;

	out[0] = '\0';
	if (strcmp(name, "http-version") == 0) /* not a header: "HTTP/1.1" */
		return copy_known(wsi, WSI_TOKEN_HTTP, out, size);
	for (; key_len < NAME_MAX_LEN && name[key_len]; key_len++)
		key[key_len] = name[key_len] >= 'A' && name[key_len] <= 'Z'
				   ? (char)(name[key_len] | 0x20)
				   : name[key_len];
	key[key_len++] = ':';
	key[key_len] = '\0';
	const struct token *token = find_token(key, (size_t)key_len);
	if (token)
		return copy_known(wsi, token->index, out, size);
	return copy_custom(wsi, key, key_len, out, size);
}

bool header_has(struct lws *wsi, const char *name, const char *token)
{
	char value[512], *rest = value, *item;
	size_t len = strlen(token);

	if (header_copy(wsi, name, value, sizeof value) < 0)
		return false;
	while ((item = strsep(&rest, ","))) {
		item += strspn(item, " \t");
		if (strncasecmp(item, token, len) == 0 &&
		    strchr("; \t", item[len]) != NULL)
			return true;
	}
	return false;
}

/* The start of a custom header's name that ends before end and reaches over middle. */
static char *find_name(struct lws *wsi, char *first, char *middle, char *end)
{
	for (char *at = middle; at >= first; at--) {
		const unsigned char *stored = (unsigned char *)at - NAME_OFFSET;

		if ((stored[0] << 8 | stored[1]) == end - at &&
		    lws_hdr_custom_length(wsi, at, (int)(end - at)) >= 0)
			return at;
	}
	return NULL;
}

/*
 * When a header's name is the beginning of one that lws knows ("X-Auth" of
 * "X-Auth-Token"), or has no colon, lws reads on to the next colon and keeps all of
 * "x-auth: 1\r\ncontent-length:" as one custom name.  The header behind it is lost:
 * a length, an origin, a user's name.  No other name has a line's end in it.  What is
 * left in memory from an earlier head is told from this one's by asking lws.
 */
bool header_is_lost(struct lws *wsi, char *out, size_t size)
{
	char *uri, *at, *end;

	if (!find_head(wsi, &uri, &end)) {
		lws_strncpy(out, "another request line", size);
		return has_two_methods(wsi);
	}
	for (at = uri; (at = memchr(at, '\n', (size_t)(end - at))); at++) {
		char *colon = memchr(at, ':', (size_t)(end - at));
		if (!colon)
			return false;
		char *name = find_name(wsi, uri + NAME_OFFSET, at, colon + 1);
		if (name) {
			lws_strnncpy(out, name, strcspn(name, ":\r\n"), size);
			return true;
		}
		at = colon;
	}
	return false;
}

// SPDX-License-Identifier: MIT
#include "wire/header_check.h"

#include <libwebsockets.h>
#include <string.h>

#include "wire/header.h"
#include "wire/mem.h"
#include "wire/trial.h"

static const char plain[] = "GET /plain HTTP/1.1\r\nHost: a\r\nX-One: 1\r\n\r\n";
/* "X-Auth" is the beginning of a name that lws knows: see header_is_lost(). */
static const char bad[] = "GET /bad HTTP/1.1\r\nHost: a\r\nX-One: 1\r\nX-Two: 1\r\n"
			  "X-Two: 2\r\nX-Auth: 1\r\nContent-Length: 0\r\n\r\n";

/* Not found through the wsi: lws moves a request to the vhost of its Host header. */
static struct {
	struct loop *loop;
	int seen, right;
} check;

static bool is_one(struct lws *wsi, const char *name)
{
	char value[8];

	return header_copy(wsi, name, value, sizeof value) == 1 && value[0] == '1';
}

static bool sees_plain(struct lws *wsi)
{
	char name[64];

	return is_one(wsi, "X-One") && !header_is_lost(wsi, name, sizeof name);
}

/* A later lws may lose nothing; then both headers are there. */
static bool sees_bad(struct lws *wsi)
{
	char name[64], value[8];
	bool lost = header_is_lost(wsi, name, sizeof name);
	bool both = is_one(wsi, "X-Auth") &&
		    header_copy(wsi, "content-length", value, sizeof value) == 1;

	return is_one(wsi, "X-One") &&
	       header_copy(wsi, "X-Two", value, sizeof value) == HEADER_REPEATED &&
	       (lost ? strcmp(name, "x-auth") == 0 : both);
}

static int on_request(struct lws *wsi, enum lws_callback_reasons reason, void *user,
		      void *in, size_t len)
{
	(void)user;
	if (reason != LWS_CALLBACK_FILTER_HTTP_CONNECTION)
		return 0;
	bool is_bad = len == 4 && memcmp(in, "/bad", 4) == 0;
	check.right += is_bad ? sees_bad(wsi) : sees_plain(wsi);
	if (++check.seen == 2)
		loop_stop(check.loop);
	return -1; /* closes it */
}

int header_check(struct loop *loop, struct err *err)
{
	static struct trial trial = {.vhost = "check", .callback = on_request};
	static const struct trial_input inputs[] = {{plain, sizeof plain - 1},
						    {bad, sizeof bad - 1}};

	trial.loop = check.loop = loop;
	check.seen = check.right = 0;
	if (trial_run(&trial, inputs, COUNT_OF(inputs), err) < 0)
		return -1;
	if (check.right == 2)
		return 0;
	return err_set(err, ERR_LIMIT,
		       "libwebsockets %s keeps a request's headers in a way that this "
		       "program does not know, so some could go unseen; use 4.1 to 4.3",
		       lws_get_library_version());
}

// SPDX-License-Identifier: MIT
#include "wire/ws_mask.h"

#include "wire/log.h"
#include "wire/trial.h"

enum {
	/* Behind the 125 bytes that a control frame can have lws 4.1 keeps flags of the
	 * frame that is being read. */
	FLAGS_AT = 125,
	MASKED = 1 << 3,
	FRAMES = 8,
	UNMASKED = 0xAA, /* a bit for each second one of them */
};

#define VHOST "masks" /* lws looks for one of the Host header's name */

/* Masked, not masked, and so on: a mask of zeros, and what is binary or not final, must
 * not be taken for it. */
static const char input[] =
    "GET / HTTP/1.1\r\nHost: " VHOST "\r\nUpgrade: websocket\r\n"
    "Connection: Upgrade\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    "\x81\x81mask\x15\x81\x01x\x02\x81\0\0\0\0x\x80\x01x"
    "\x01\x81mask\x15\0\x01x\x80\x81\0\0\0\0x\x82\x01x";

static struct {
	struct loop *loop;
	unsigned seen, unmasked; /* frames; a bit for each */
} check;
static bool known; /* where to look */

static bool is_unmasked(struct lws *wsi)
{
	return !(lws_get_close_payload(wsi)[FLAGS_AT] & MASKED);
}

static int on_frame(struct lws *wsi, enum lws_callback_reasons reason, void *user,
		    void *in, size_t len)
{
	(void)user, (void)in, (void)len;
	if (reason == LWS_CALLBACK_RECEIVE)
		check.unmasked |= (unsigned)is_unmasked(wsi) << check.seen++;
	if (reason == LWS_CALLBACK_CLOSED && check.loop)
		loop_stop(check.loop);
	return 0;
}

int ws_mask_check(struct loop *loop, struct err *err)
{
	static struct trial trial = {.vhost = VHOST, .callback = on_frame};
	static const struct trial_input one = {input, sizeof input - 1};

	trial.loop = check.loop = loop;
	check.seen = check.unmasked = 0;
	int result = trial_run(&trial, &one, 1, err);
	check.loop = NULL; /* it is over, even if the connection is not */
	if (result < 0)
		return -1;
	known = check.seen == FRAMES && check.unmasked == UNMASKED;
	if (!known && check.seen != 1) /* it closes at the first of them by itself */
		log_warn("http",
			 "libwebsockets %s does not let see whether the frames of a "
			 "WebSocket are masked: those that are not are taken",
			 lws_get_library_version());
	return 0;
}

bool ws_mask_is_missing(struct lws *wsi)
{
	return known && is_unmasked(wsi);
}

/*
 * ws_mask - whether a client masks its frames, as it has to (RFC 6455, 5.1).  lws 4.1
 * takes both and does not say which it was, so its memory is looked at; the newest
 * closes such a connection by itself.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef WIRE_WS_MASK_H
#define WIRE_WS_MASK_H

#include <libwebsockets.h>
#include <stdbool.h>

#include "wire/err.h"
#include "wire/loop.h"

/* Lets lws read some frames and sees whether we look at the right place; if not, and
 * lws does not do it itself, it is logged, and all frames count as masked.  Runs the
 * loop, so nothing else may be in it yet. */
int ws_mask_check(struct loop *loop, struct err *err) must_check;
/* Inside LWS_CALLBACK_RECEIVE: of the frame that is being received. */
bool ws_mask_is_missing(struct lws *wsi);

#endif

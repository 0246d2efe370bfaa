/*
 * trial - lets lws read input of ours on a vhost of its own, to see whether it is the
 * lws that we know.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef WIRE_TRIAL_H
#define WIRE_TRIAL_H

#include <libwebsockets.h>

#include "wire/err.h"
#include "wire/loop.h"

enum { TRIAL_INPUTS_MAX = 4 };

struct trial {
	struct loop *loop;
	const char *vhost; /* a Host header of this name leads there */
	lws_callback_function *callback;
	struct lws_protocols protocols[2]; /* for lws, as long as the loop lives */
};

struct trial_input { /* all that comes on one connection */
	const char *text;
	size_t size;
};

/* Runs the loop until loop_stop(), or for five seconds; nothing else may be in it yet.
 * self has to stay for as long as the loop. */
int trial_run(struct trial *self, const struct trial_input *inputs, size_t count,
	      struct err *err) must_check;

#endif

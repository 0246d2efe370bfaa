/*
 * header_check - whether this libwebsockets keeps a request's head the way header.c
 * expects.  It looks into memory that lws does not document; with another layout it
 * would no longer see headers that are lost or come twice, and never say so.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef WIRE_HEADER_CHECK_H
#define WIRE_HEADER_CHECK_H

#include "wire/err.h"
#include "wire/loop.h"

/* Lets lws read two requests of ours and looks at them.  Runs the loop, so nothing else
 * may be in it yet. */
int header_check(struct loop *loop, struct err *err) must_check;

#endif

/*
 * ws - one WebSocket: whole text messages in and out, both bounded.  A route of http.h
 * that has a ws_handler takes upgrades; they pass the same gate and guard as requests,
 * and what is refused gets a plain HTTP answer before any 101.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef WIRE_WS_H
#define WIRE_WS_H

#include <stdbool.h>
#include <stddef.h>

enum { WS_OUT_MAX = 20 << 20 /* bytes that wait; an empty queue takes any message */ };

enum ws_close { /* RFC 6455, 7.4.1, and the registry */
		WS_PROTOCOL = 1002,
		WS_NO_TEXT = 1003,
		WS_NO_UTF8 = 1007,
		WS_POLICY = 1008,
		WS_TOO_BIG = 1009,
		WS_RESTART = 1012,
		WS_OVERLOAD = 1013,
};

struct ws;

struct ws_handler { /* every function gets what ws_set_data() was given */
	/* An upgrade that was let in; headers can be read here only.  arg: the route's
	 * ws_arg.
	 * gone() comes also if nothing becomes of it. */
	void (*open)(struct ws *ws, void *arg);
	void (*message)(struct ws *ws, const char *text, size_t size, void *data);
	/* The server is stopping: ws_close() it, now or when it has its answers. */
	void (*drain)(struct ws *ws, void *data);
	/* It has ended; never touch it again. */
	void (*gone)(struct ws *ws, void *data);
};

void ws_set_data(struct ws *self, void *data);
/* The user whose token it came with, or "". */
const char *ws_user(const struct ws *self);
/* Inside open() only; see http_header(). */
int ws_header(struct ws *self, const char *name, char *out, size_t size);
/* False: too much waits already and nothing was taken; never with must. */
bool ws_send(struct ws *self, const char *text, size_t size, bool must);
/* Bytes that are not out yet. */
size_t ws_waiting(const struct ws *self);
/* Closes once what was sent is out.  reason: at most 123 bytes, borrowed for ever. */
void ws_close(struct ws *self, enum ws_close code, const char *reason);

#endif

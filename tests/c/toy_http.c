/*
 * toy_http - a server that shows each use of http.h, for tests/e2e/test_http_layer.py.
 * Usage: toy_http [name=value...], names as in read_option().  Prints its port.
 *
 * SPDX-License-Identifier: MIT
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>
#include <sys/signalfd.h>

#include "wire/header.h"
#include "wire/http.h"
#include "wire/mem.h"

enum { DRAIN_MS = 700, TICK_MS = 50, FLOOD_EVENT = 16 * 1024, HELD_MAX = 16 };

/* One exchange that is answered later, from a timer. */
struct ticker {
	LIST_ENTRY(ticker) link;
	struct app *app;
	struct exchange *exchange;
	struct loop_timer timer;
	int left;
};

LIST_HEAD(ticker_list, ticker);

struct app {
	struct loop *loop;
	struct http *http;
	struct loop_watch *signals;
	struct loop_timer drain;
	struct ticker_list streams; /* ticker::link */
	int stream_count, gone, sockets;
	struct exchange *held[HELD_MAX]; /* answered by /release only */
	unsigned long long flooded;
	int later_ms;
};

static void ticker_destroy(struct ticker **self)
{
	struct ticker *dead = take(self);

	loop_timer_stop(&dead->timer);
	LIST_REMOVE(dead, link);
	dead->app->stream_count--;
	free(dead);
}

static void on_ticker_gone(struct exchange *exchange, void *arg)
{
	struct ticker *self = arg;

	(void)exchange;
	self->app->gone++;
	ticker_destroy(&self);
}

static struct ticker *ticker_create(struct app *app, struct exchange *exchange,
				    int left)
{
	struct ticker *self = xcalloc(1, sizeof *self);

	*self = (struct ticker){.app = app, .exchange = exchange, .left = left};
	LIST_INSERT_HEAD(&app->streams, self, link);
	app->stream_count++;
	http_on_gone(exchange, on_ticker_gone, self);
	return self;
}

static void tick(void *arg)
{
	struct ticker *self = arg;
	char event[64];
	int len = snprintf(event, sizeof event, "data: {\"left\":%d}\n\n", self->left);

	if (!http_stream_send(self->exchange, event, (size_t)len))
		return; /* full: drained starts us again */
	if (self->left-- > 0) {
		loop_timer_start(self->app->loop, &self->timer, TICK_MS * LWS_US_PER_MS,
				 tick, self);
		return;
	}
	http_stream_end(self->exchange);
	ticker_destroy(&self);
}

static void flood(void *arg)
{
	static char event[FLOOD_EVENT];
	struct ticker *self = arg;

	if (!event[0]) {
		memset(event, 'x', sizeof event);
		memcpy(event, "data: ", 6);
		memcpy(event + sizeof event - 2, "\n\n", 2);
	}
	while (http_stream_send(self->exchange, event, sizeof event))
		self->app->flooded += sizeof event;
}

static void tick_again(struct exchange *exchange, void *arg)
{
	(void)exchange;
	tick(arg);
}

static void flood_again(struct exchange *exchange, void *arg)
{
	(void)exchange;
	flood(arg);
}

static void start_stream(struct app *app, struct exchange *exchange, int ticks,
			 bool flooding)
{
	struct ticker *self = ticker_create(app, exchange, ticks);

	http_on_drained(exchange, flooding ? flood_again : tick_again, self);
	http_stream(exchange, "Mcp-Session-Id: s1\r\n");
	if (flooding)
		flood(self);
	else if (ticks > 0)
		loop_timer_start(app->loop, &self->timer, TICK_MS * LWS_US_PER_MS, tick,
				 self);
}

static void reply_json(struct exchange *exchange, int status, const char *text)
{
	http_reply(exchange, status, "Mcp-Session-Id: s1\r\n", "application/json", text,
		   strlen(text));
}

static void reply_late(void *arg)
{
	struct ticker *self = arg;

	reply_json(self->exchange, 200, "{\"late\":true}");
	ticker_destroy(&self);
}

static void on_later(struct exchange *exchange, void *arg)
{
	struct app *app = arg;
	struct ticker *self = ticker_create(app, exchange, 0);

	loop_timer_start(app->loop, &self->timer, app->later_ms * LWS_US_PER_MS,
			 reply_late, self);
}

static int held_count(const struct app *app)
{
	int count = 0;

	for (int i = 0; i < HELD_MAX; i++)
		count += app->held[i] != NULL;
	return count;
}

static void forget_held(struct exchange *exchange, void *arg)
{
	struct app *app = arg;

	app->gone++;
	for (size_t i = 0; i < HELD_MAX; i++)
		if (app->held[i] == exchange)
			app->held[i] = NULL;
}

static void on_hold(struct exchange *exchange, void *arg)
{
	struct app *app = arg;

	for (size_t i = 0; i < HELD_MAX; i++)
		if (!app->held[i]) {
			app->held[i] = exchange;
			http_on_gone(exchange, forget_held, app);
			return;
		}
	http_error(exchange, 503, "", "%d exchanges are held already", HELD_MAX);
}

static void on_release(struct exchange *exchange, void *arg)
{
	struct app *app = arg;

	for (size_t i = 0; i < HELD_MAX; i++)
		if (app->held[i])
			reply_json(take(&app->held[i]), 200, "{\"released\":true}");
	http_reply(exchange, 204, "", NULL, NULL, 0);
}

static void echo_headers(struct exchange *exchange)
{
	static const char *const names[] = {"mcp-session-id", "mcp-protocol-version",
					    "mcp-method",     "last-event-id",
					    "origin",         "X-User-ID",
					    "user-agent"};
	char text[2048], value[256];
	int at = 0;

	for (size_t i = 0; i < COUNT_OF(names); i++) {
		int len = http_header(exchange, names[i], value, sizeof value);

		at += snprintf(text + at, sizeof text - (size_t)at, "%s\"%s\":\"%s\"",
			       i ? "," : "{", names[i],
			       len == HEADER_REPEATED ? "(repeated)" : value);
	}
	snprintf(text + at, sizeof text - (size_t)at, "}");
	reply_json(exchange, 200, text);
}

static bool body_has(struct exchange *exchange, const char *text)
{
	size_t size;
	const char *body = http_body(exchange, &size);

	return memmem(body, size < 256 ? size : 256, text, strlen(text));
}

static void on_post(struct app *app, struct exchange *exchange)
{
	char text[128];
	size_t size;

	if (body_has(exchange, "\"ticks\"")) {
		start_stream(app, exchange, 3, false);
	} else if (body_has(exchange, "\"flood\"")) {
		start_stream(app, exchange, 0, true);
	} else if (body_has(exchange, "\"headers\"")) {
		echo_headers(exchange);
	} else if (body_has(exchange, "\"ping\"")) {
		reply_json(exchange, 200,
			   "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
	} else {
		http_body(exchange, &size);
		snprintf(text, sizeof text, "{\"size\":%zu}", size);
		reply_json(exchange, 200, text);
	}
}

static void begin_mcp(struct exchange *exchange, void *arg)
{
	char type[64];

	(void)arg;
	if (strcmp(http_method(exchange), "GET") == 0 &&
	    !http_accepts(exchange, "text/event-stream"))
		http_error(exchange, 406, "", "accept text/event-stream");
	else if (strcmp(http_method(exchange), "POST") == 0 &&
		 (http_header(exchange, "content-type", type, sizeof type) < 0 ||
		  strncasecmp(type, "application/json", 16) != 0))
		http_error(exchange, 415, "", "send application/json, not '%s'", type);
}

static void on_mcp(struct exchange *exchange, void *arg)
{
	if (strcmp(http_method(exchange), "POST") == 0)
		on_post(arg, exchange);
	else if (strcmp(http_method(exchange), "GET") == 0)
		start_stream(arg, exchange, 0, false);
	else
		reply_json(exchange, 200, "{}");
}

static void on_health(struct exchange *exchange, void *arg)
{
	struct app *app = arg;
	char text[128];

	snprintf(text, sizeof text,
		 "{\"streams\":%d,\"gone\":%d,\"busy\":%d,\"flooded\":%llu,"
		 "\"held\":%d,\"sockets\":%d}",
		 app->stream_count, app->gone, http_busy(app->http), app->flooded,
		 held_count(app), app->sockets);
	reply_json(exchange, 200, text);
}

/* ---- WebSockets: messages come back; a few mean something ---- */

static void on_ws_open(struct ws *ws, void *arg)
{
	struct app *app = arg;

	app->sockets++;
	ws_set_data(ws, app);
}

static void on_ws_message(struct ws *ws, const char *text, size_t size, void *data)
{
	int megabytes;

	(void)data;
	if (sscanf(text, "send %d MiB", &megabytes) == 1) {
		size_t wanted = (size_t)megabytes << 20;
		char *large = xcalloc(1, wanted);

		memset(large, 'z', wanted);
		if (!ws_send(ws, large, wanted, false))
			ws_send(ws, "full", 4, true);
		free(large);
	} else if (!ws_send(ws, text, size, false)) {
		ws_send(ws, "full", 4, true);
	}
}

static void on_ws_drain(struct ws *ws, void *data)
{
	(void)data;
	ws_close(ws, WS_RESTART, "stopping");
}

static void on_ws_gone(struct ws *ws, void *data)
{
	(void)ws;
	((struct app *)data)->sockets--;
}

static const struct ws_handler echo = {.open = on_ws_open,
				       .message = on_ws_message,
				       .drain = on_ws_drain,
				       .gone = on_ws_gone};

/* Ends in the middle of everything, on purpose. */
static void on_quit(struct exchange *exchange, void *arg)
{
	(void)exchange;
	loop_stop(((struct app *)arg)->loop);
}

static void stop(void *arg)
{
	loop_stop(((struct app *)arg)->loop);
}

static void on_signal(void *arg)
{
	struct app *app = arg;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigtimedwait(&set, NULL, &(struct timespec){0}); /* take it, then unblock */
	loop_unwatch(&app->signals); /* a second signal kills at once */
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	http_drain(app->http);
	loop_timer_start(app->loop, &app->drain, DRAIN_MS * LWS_US_PER_MS, stop, app);
}

static int watch_signals(struct app *app, struct err *err)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return err_set(err, ERR_SYSTEM, "watch signals");
	return loop_watch(app->loop, fd, on_signal, app, &app->signals, err);
}

static void read_option(struct http_config *config, struct app *app, char *option)
{
	const struct {
		const char *name;
		int *at;
	} numbers[] = {
	    {"port", &config->port},
	    {"connections_max", &config->connections_max},
	    {"body_timeout_s", &config->body_timeout_s},
	    {"idle_timeout_s", &config->idle_timeout_s},
	    {"stall_timeout_s", &config->stall_timeout_s},
	    {"comment_s", &config->comment_s},
	    {"ping_s", &config->ping_s},
	    {"later_ms", &app->later_ms},
	};
	char *value = strchr(option, '=');

	if (!value)
		return;
	*value++ = '\0';
	if (strcmp(option, "address") == 0)
		config->address = value;
	if (strcmp(option, "tls_cert") == 0)
		config->tls.cert = value;
	if (strcmp(option, "tls_key") == 0)
		config->tls.key = value;
	if (strcmp(option, "bodies_max") == 0)
		config->bodies_max = (size_t)atoi(value);
	if (strcmp(option, "allowed_hosts") == 0)
		config->allowed_hosts = value;
	for (size_t i = 0; i < COUNT_OF(numbers); i++)
		if (strcmp(option, numbers[i].name) == 0)
			*numbers[i].at = atoi(value);
}

int main(int argc, char **argv)
{
	struct err err;
	struct app app = {.later_ms = 100};
	static const char *const subprotocols[] = {"mcp", "mcp.version.1", NULL};
	struct http_config config = {.address = "127.0.0.1",
				     .subprotocols = subprotocols};
	const struct http_route routes[] = {
	    {"/mcp", "POST, GET, DELETE", begin_mcp, on_mcp, &app, false, &echo, &app},
	    {"/health", "GET", NULL, on_health, &app, false, NULL, NULL},
	    {"/later", "GET, POST", NULL, on_later, &app, false, NULL, NULL},
	    {"/hold", "GET, POST", NULL, on_hold, &app, false, NULL, NULL},
	    {"/release", "POST", NULL, on_release, &app, false, NULL, NULL},
	    {"/quit", "POST", NULL, on_quit, &app, false, NULL, NULL},
	};

	for (int i = 1; i < argc; i++)
		read_option(&config, &app, argv[i]);
	lws_set_log_level(0, NULL);
	if (loop_create(&app.loop, 64 * 1024, &err) < 0 ||
	    watch_signals(&app, &err) < 0 ||
	    http_create(&app.http, app.loop, &config, routes, COUNT_OF(routes), &err) <
		0) {
		fprintf(stderr, "%s\n", err.msg);
		loop_unwatch(&app.signals);
		loop_destroy(&app.loop);
		return 1;
	}
	printf("%d\n", http_port(app.http));
	fflush(stdout);
	loop_run(app.loop);
	loop_timer_stop(&app.drain);
	loop_unwatch(&app.signals);
	http_stop(app.http);
	const bool told =
	    app.stream_count == 0 && app.sockets == 0; /* and nobody is called later */
	loop_destroy(&app.loop);
	http_destroy(&app.http);
	return told ? 0 : 2;
}

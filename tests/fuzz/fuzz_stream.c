// SPDX-License-Identifier: MIT
/*
 * Event streams that break and are resumed.  Input: steps, a byte each, some with more:
 * streams begin, are sent to, lose their client, are asked for by ids that were given
 * out, changed or made up.  HTTP and the clock are played here.
 */
#include "mcp/event_id.h"
#include "mcp/stream.h"

#include <sodium.h>
#include <strings.h>

#include "fuzz.h"
#include "wire/buf.h"

#define LINE "an answer\n"
enum { STREAMS = 4, EXCHANGES = 64, IDS = 32, SESSIONS = 2 };

struct exchange {
	bool open, streams, full;
	exchange_fn *gone, *drained;
	void *gone_arg, *drained_arg;
	char name[64];          /* of the stream whose events it has seen; "" none */
	unsigned long long seq; /* of the last one */
};

static struct exchange exchanges[EXCHANGES];
static size_t begun;
static char ids[IDS][EVENT_ID_SIZE];
static size_t id_count;
static int64_t clock_us;
static struct loop_timer *timers[STREAMS * EXCHANGES];

/* ---- what wire/ has elsewhere ---- */

void http_on_gone(struct exchange *self, exchange_fn *fn, void *arg)
{
	self->gone = fn;
	self->gone_arg = arg;
}

void http_on_drained(struct exchange *self, exchange_fn *fn, void *arg)
{
	self->drained = fn;
	self->drained_arg = arg;
}

void http_stream(struct exchange *self, const char *headers)
{
	(void)headers;
	MUST(self->open && !self->streams);
	self->streams = true;
}

/* Events of one connection are of one stream, in order, each once. */
static void look_at(struct exchange *self, const char *event)
{
	char id[EVENT_ID_SIZE], name[64];
	unsigned long long seq;
	const char *at = strstr(event, "id: ");

	if (!at || sscanf(at, "id: %191s", id) != 1)
		return;
	MUST(sscanf(id, "%40[^_]_%llu", name, &seq) == 2);
	MUST(!self->name[0] || strcmp(self->name, name) == 0);
	MUST(!self->name[0] || seq > self->seq);
	memcpy(self->name, name, sizeof name);
	self->seq = seq;
	memcpy(ids[id_count++ % IDS], id, sizeof id);
}

bool http_stream_send(struct exchange *self, const void *text, size_t size)
{
	MUST(self->open && self->streams);
	if (self->full)
		return false;
	owned(buf_finish) struct buf event = {0};
	buf_add(&event, text, size);
	look_at(self, buf_str(&event));
	return true;
}

static void over(struct exchange *self)
{
	MUST(self->open);
	self->open = false;
	self->gone = self->drained = NULL;
}

void http_stream_end(struct exchange *self)
{
	MUST(self->streams);
	over(self);
}

void http_reply(struct exchange *self, int status, const char *headers,
		const char *type, const void *body, size_t size)
{
	(void)headers, (void)type, (void)body, (void)size;
	MUST(status == 204 && !self->streams);
	over(self);
}

void loop_timer_start(struct loop *self, struct loop_timer *timer, int64_t usec,
		      loop_fn *fn, void *arg)
{
	(void)self, (void)usec;
	size_t at = 0;

	timer->fn = fn;
	timer->arg = arg;
	for (size_t i = 0; i < COUNT_OF(timers); i++) {
		if (timers[i] == timer)
			return;
		if (!timers[i])
			at = i;
	}
	timers[at] = timer;
}

void loop_timer_stop(struct loop_timer *timer)
{
	for (size_t i = 0; i < COUNT_OF(timers); i++)
		if (timers[i] == timer)
			timers[i] = NULL;
}

int64_t loop_now_us(void)
{
	return clock_us;
}

static void pass_time(void)
{
	for (size_t i = 0; i < COUNT_OF(timers); i++) {
		struct loop_timer *timer = timers[i];

		timers[i] = NULL;
		if (timer)
			timer->fn(timer->arg);
	}
}

/* ---- the play ---- */

struct play {
	struct streams streams;
	size_t answers, unread; /* with a line about them; lines that were told */
	struct session sessions[SESSIONS];
	struct stream *open[STREAMS];
};

static struct exchange *new_exchange(void)
{
	struct exchange *exchange = &exchanges[begun++];

	*exchange = (struct exchange){.open = true};
	return exchange;
}

static void begin(struct play *self, size_t at, const struct session *session)
{
	json_auto_t *id = json_string("request");
	const struct stream_options options = {.session = session,
					       .request = at % 2 ? id : NULL,
					       .owner = session,
					       .headers = ""};

	if (!self->open[at])
		self->open[at] = stream_open(&self->streams, new_exchange(), &options);
}

static void say(struct play *self, size_t at, uint8_t size, bool must)
{
	owned(free_text) char *text = xcalloc(1, 256u * size + 1);
	memset(text, 'x', 256u * size);
	json_auto_t *message = json_pack("{ss}", "x", text);

	if (!self->open[at])
		return;
	if (must && size & 1) {
		stream_answer(self->open[at], message, xstrdup(LINE));
		self->answers++;
	} else {
		stream_send(self->open[at], message, must);
	}
}

/* Each answer is told at most once. */
static void tell_unread(struct play *self, const struct session *session)
{
	owned(buf_finish) struct buf lines = {0};

	streams_tell_unread(&self->streams, session, &lines);
	MUST(lines.size % strlen(LINE) == 0);
	self->unread += lines.size / strlen(LINE);
	MUST(self->unread <= self->answers);
	clock_us += STREAM_UNREAD_US / 2;
}

static void resume(struct play *self, struct input *input,
		   const struct session *session)
{
	size_t which = input_byte(input) % IDS;
	uint8_t at = input_byte(input), change = input_byte(input);
	char id[EVENT_ID_SIZE];
	struct exchange *exchange = new_exchange();

	memcpy(id, ids[which], sizeof id);
	if (at < strlen(id) && change)
		id[at] = (char)change;
	if (streams_resume(&self->streams, exchange, session, session, id) < 0)
		exchange->open = false;
	else if (exchange->name[0])
		MUST(strncasecmp(id, exchange->name, strlen(exchange->name)) == 0 ||
		     id[0] == 's');
}

static void change_exchange(uint8_t which, bool gone)
{
	struct exchange *self = &exchanges[which % EXCHANGES];

	if (!self->open || !self->streams)
		return;
	if (gone) {
		self->open = false;
		if (self->gone)
			self->gone(self, self->gone_arg);
		return;
	}
	self->full = !self->full;
	if (!self->full && self->drained)
		self->drained(self, self->drained_arg);
}

static void step(struct play *self, struct input *input)
{
	uint8_t what = input_byte(input);
	size_t at = (what >> 4) % STREAMS;
	const struct session *session = &self->sessions[(what >> 6) % SESSIONS];
	json_auto_t *note = json_pack("{ss}", "note", "n");

	switch (what & 15) {
	case 0:
	case 1:
		begin(self, at, session);
		break;
	case 2:
	case 3:
		say(self, at, input_byte(input), what & 1);
		break;
	case 4:
		stream_end(&self->open[at]);
		break;
	case 5:
		if (self->open[at])
			stream_disconnect(self->open[at]);
		break;
	case 6:
	case 7:
		change_exchange(input_byte(input), what & 1);
		break;
	case 8:
	case 9:
		resume(self, input, session);
		break;
	case 10:
		streams_stand(&self->streams, new_exchange(), session, session);
		break;
	case 11:
		streams_tell(&self->streams, session->serial, note);
		break;
	case 12:
		streams_tell_all(&self->streams, note);
		break;
	case 13:
		streams_forget(&self->streams, session->serial);
		break;
	case 14:
		pass_time();
		break;
	default:
		tell_unread(self, session);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct sessions keys;
	struct input input = {data, size};
	struct play play = {
	    .sessions = {{MCP_2025_11_25, 0, 1}, {MCP_2025_03_26, 0, 2}}};

	MUST(sodium_init() >= 0);
	streams_init(&play.streams);
	play.streams.sessions = &keys;
	play.streams.keep_us = 1;
	play.streams.keep_max = 100 * 1000;
	begun = id_count = 0;
	clock_us = 0;
	memset(exchanges, 0, sizeof exchanges);
	memset(timers, 0, sizeof timers);
	memset(ids, 0, sizeof ids);
	while (input.left && begun < EXCHANGES)
		step(&play, &input);
	for (size_t i = 0; i < STREAMS; i++)
		stream_end(&play.open[i]);
	streams_finish(&play.streams);
	MUST(play.streams.bytes == 0);
	for (size_t i = 0; i < COUNT_OF(timers); i++)
		MUST(!timers[i]);
	return 0;
}

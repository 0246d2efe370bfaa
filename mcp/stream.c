// SPDX-License-Identifier: MIT
#include "mcp/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mcp/event_id.h"
#include "mcp/rpc.h"
#include "wire/buf.h"
#include "wire/json.h"
#include "wire/mem.h"

enum {
	ENDED_MAX = 512,     /* streams that are over and only kept */
	RETRY_MS = 1000,     /* what clients are asked to wait before they come again */
	EVENT_OVERHEAD = 64, /* counted for each beside its text */
};

struct event {
	TAILQ_ENTRY(event) link;
	uint64_t seq;
	bool must;
	char *about; /* owned: a line that names the answer that it is, or NULL */
	size_t size;
	char text[];
};

struct stream {
	TAILQ_ENTRY(stream) link;
	struct streams *streams;   /* borrowed */
	struct exchange *exchange; /* NULL: nobody reads */
	struct event_id id;        /* of the newest event */
	bool resumable, primed; /* its events have ids; it begins with an empty one */
	uint64_t session;
	const void *owner;
	TAILQ_HEAD(, event) events; /* event::link */
	struct event *next;         /* the first that is not out; NULL: all are */
	size_t bytes, notes;        /* of events; of those that may be dropped */
	bool over;                  /* nothing more will be sent */
	int64_t rests_since;        /* with nobody who reads */
	void (*left)(void *arg);
	void *arg;
	struct loop_timer timer;
	struct kept_item kept; /* it is over and nobody reads it */
};

/* ---- events ---- */

static void event_drop(struct stream *self, struct event *event)
{
	size_t size = event->size + EVENT_OVERHEAD;

	if (self->next == event)
		self->next = TAILQ_NEXT(event, link);
	self->bytes -= size;
	self->streams->bytes -= size;
	kept_resize(&self->streams->kept, &self->kept, self->bytes);
	if (!event->must)
		self->notes -= size;
	TAILQ_REMOVE(&self->events, event, link);
	free_text(&event->about);
	free(event);
}

static void event_add(struct stream *self, const struct buf *text, bool must,
		      char *about)
{
	struct event *event = xrealloc(NULL, sizeof *event + text->size);
	size_t size = text->size + EVENT_OVERHEAD;

	*event = (struct event){
	    .seq = self->id.seq, .must = must, .about = about, .size = text->size};
	memcpy(event->text, text->data, text->size);
	TAILQ_INSERT_TAIL(&self->events, event, link);
	if (!self->next)
		self->next = event;
	self->bytes += size;
	self->streams->bytes += size;
	kept_resize(&self->streams->kept, &self->kept, self->bytes);
	if (!must)
		self->notes += size;
}

/* What is not out is not read. */
static void take_unread(struct stream *self)
{
	struct event *event;

	for (event = self->next; event; event = TAILQ_NEXT(event, link))
		if (event->about)
			unread_add(&self->streams->unread, self->owner,
				   take(&event->about));
}

static void stream_destroy(struct stream *self)
{
	struct event *event;

	take_unread(self);
	while ((event = TAILQ_FIRST(&self->events)))
		event_drop(self, event);
	kept_remove(&self->streams->kept, &self->kept);
	loop_timer_stop(&self->timer);
	TAILQ_REMOVE(&self->streams->all, self, link);
	free(self);
}

/* ---- what is kept ---- */

static void keep_within(struct streams *self)
{
	struct stream *oldest;

	while ((self->bytes > self->keep_max || self->kept.count > ENDED_MAX) &&
	       (oldest = kept_oldest_of_most(&self->kept)))
		stream_destroy(oldest);
}

static bool is_kept_only(const struct stream *self)
{
	return self->kept.owner != NULL;
}

static void on_kept_enough(void *arg)
{
	struct stream *self = arg;

	if (is_kept_only(self))
		stream_destroy(self);
}

/* Nobody reads it any more, for now. */
static void rest(struct stream *self)
{
	self->exchange = NULL;
	if (self->id.kind == KIND_STANDING)
		self->over = true; /* whoever comes back finds it so */
	if (self->over && !self->resumable) {
		stream_destroy(self);
		return;
	}
	if (self->over && !is_kept_only(self))
		kept_add(&self->streams->kept, &self->kept, self->owner, self->bytes,
			 self);
	self->rests_since = loop_now_us();
	loop_timer_start(self->streams->loop, &self->timer, self->streams->keep_us,
			 on_kept_enough, self);
	keep_within(self->streams);
}

/* ---- sending ---- */

static void on_gone(struct exchange *exchange, void *arg)
{
	struct stream *self = arg;

	(void)exchange;
	self->exchange = NULL;
	bool lost = !self->resumable || (!self->primed && !self->id.seq);
	if (!self->over && lost && self->left)
		self->left(self->arg); /* may end it */
	else if (self->resumable || self->over)
		rest(self);
}

/* May destroy it, if it is over. */
static void pump(struct stream *self)
{
	while (self->next) {
		struct event *event = self->next;

		if (!http_stream_send(self->exchange, event->text, event->size))
			return; /* on_drained() comes */
		self->next = TAILQ_NEXT(event, link);
		if (!self->resumable)
			event_drop(self, event);
	}
	if (!self->over)
		return;
	http_stream_end(self->exchange);
	rest(self);
}

static void on_drained(struct exchange *exchange, void *arg)
{
	(void)exchange;
	pump(arg);
}

static void attach(struct stream *self, struct exchange *exchange, const char *headers)
{
	self->exchange = exchange;
	kept_remove(&self->streams->kept, &self->kept);
	loop_timer_stop(&self->timer);
	http_on_gone(exchange, on_gone, self);
	http_on_drained(exchange, on_drained, self);
	http_stream(exchange, headers);
}

/* Its connection is closed in good order, and it goes on without. */
static void detach(struct stream *self)
{
	http_on_gone(self->exchange, NULL, NULL);
	http_stream_end(self->exchange);
	self->exchange = NULL;
}

/* Notes that were seen, or that nobody is there to see, make room for new ones. */
static bool make_room(struct stream *self)
{
	struct event *event, *after;

	for (event = TAILQ_FIRST(&self->events); event; event = after) {
		after = TAILQ_NEXT(event, link);
		if (self->notes <= STREAM_NOTES_MAX ||
		    (self->exchange && event == self->next))
			break;
		if (!event->must)
			event_drop(self, event);
	}
	return self->notes <= STREAM_NOTES_MAX;
}

static void send_event(struct stream *self, json_t *message, bool must, char *about)
{
	owned(buf_finish) struct buf text = {0};

	self->id.seq++;
	buf_text(&text, "event: message\n");
	if (self->resumable)
		event_id_write(&self->id, &text);
	buf_text(&text, "data: ");
	json_write(&text, message);
	buf_text(&text, "\n\n");
	event_add(self, &text, must, about);
	if (self->exchange && TAILQ_NEXT(self->next, link) == NULL)
		pump(self); /* else the ones before it wait already */
}

static bool has_reader(const struct stream *self)
{
	return self->exchange || self->resumable;
}

bool stream_send(struct stream *self, json_t *message, bool must)
{
	if (!has_reader(self) || (!must && !make_room(self)))
		return false;
	send_event(self, message, must, NULL);
	return true;
}

void stream_answer(struct stream *self, json_t *message, char *about)
{
	if (has_reader(self))
		send_event(self, message, true, about);
	else if (about)
		unread_add(&self->streams->unread, self->owner, about);
}

bool stream_disconnect(struct stream *self)
{
	if (!self->resumable || !self->exchange)
		return false;
	detach(self);
	rest(self);
	return true;
}

void stream_end(struct stream **self)
{
	struct stream *over = take(self);

	if (!over)
		return;
	over->over = true;
	over->left = NULL;
	if (over->exchange)
		pump(over);
	else
		rest(over);
}

/* ---- beginning ---- */

void streams_init(struct streams *self)
{
	*self = (struct streams){0};
	TAILQ_INIT(&self->all);
}

/* An empty event, so that the client knows where to go on before anything has come.
 * Before 2025-11-25 clients took its data for a message. */
static void prime(struct stream *self)
{
	owned(buf_finish) struct buf text = {0};

	if (!self->primed)
		return;
	event_id_write(&self->id, &text);
	buf_printf(&text, "retry: %d\ndata:\n\n", RETRY_MS);
	event_add(self, &text, false, NULL);
	pump(self);
}

static struct stream *create(struct streams *self, enum stream_kind kind,
			     const struct session *session)
{
	struct stream *stream = xcalloc(1, sizeof *stream);

	*stream = (struct stream){.streams = self,
				  .id.kind = kind,
				  .session = session->serial,
				  .resumable = session->serial != 0};
	stream->primed = kind == KIND_ANSWER && stream->resumable &&
			 session->revision >= MCP_2025_11_25;
	TAILQ_INIT(&stream->events);
	if (stream->resumable)
		event_id_name(&stream->id, self->sessions, session->serial);
	TAILQ_INSERT_TAIL(&self->all, stream, link);
	return stream;
}

struct stream *stream_open(struct streams *self, struct exchange *exchange,
			   const struct stream_options *options)
{
	struct stream *stream = create(self, KIND_ANSWER, options->session);
	owned(free_text) char *request =
	    options->request ? json_dumps(options->request, JSON_ENCODE_ANY) : NULL;

	if (request && strlen(request) <= EVENT_ID_REQUEST_MAX)
		memcpy(stream->id.request, request, strlen(request) + 1);
	stream->owner = options->owner;
	stream->left = options->left;
	stream->arg = options->arg;
	attach(stream, exchange, options->headers);
	prime(stream);
	return stream;
}

/* ---- what a session is told besides ---- */

static bool is_standing(const struct stream *self, uint64_t session)
{
	return self->id.kind == KIND_STANDING && self->session == session;
}

static void limit_standing(struct streams *self, uint64_t session)
{
	struct stream *stream, *oldest = NULL;
	int count = 0;

	TAILQ_FOREACH(stream, &self->all, link)
	{
		if (!is_standing(stream, session) || !stream->exchange)
			continue;
		oldest = oldest ? oldest : stream;
		count++;
	}
	if (count <= STREAM_STANDING_MAX)
		return;
	detach(oldest);
	rest(oldest);
}

/* The one that has something for the session that went to nobody, or a new one. */
static struct stream *standing_for(struct streams *self, const struct session *session,
				   const void *owner)
{
	struct stream *stream;

	TAILQ_FOREACH(stream, &self->all, link)
	if (is_standing(stream, session->serial) && !stream->exchange && stream->next)
		return stream;
	stream = create(self, KIND_STANDING, session);
	stream->owner = owner;
	return stream;
}

/* The newest is last, also of those that came back. */
static void stand(struct stream *self, struct exchange *exchange)
{
	TAILQ_REMOVE(&self->streams->all, self, link);
	TAILQ_INSERT_TAIL(&self->streams->all, self, link);
	self->over = false;
	attach(self, exchange, "");
	limit_standing(self->streams, self->session);
	pump(self);
}

void streams_stand(struct streams *self, struct exchange *exchange,
		   const struct session *session, const void *owner)
{
	stand(standing_for(self, session, owner), exchange);
}

/* The newest one that is read, else the newest one that somebody may come back to. */
static struct stream *primary(const struct streams *self, uint64_t session)
{
	struct stream *stream, *newest = NULL;

	TAILQ_FOREACH_REVERSE(stream, &self->all, stream_list, link)
	{
		if (!is_standing(stream, session))
			continue;
		if (stream->exchange)
			return stream;
		newest = newest ? newest : stream;
	}
	return newest;
}

void streams_tell(struct streams *self, uint64_t session, json_t *message)
{
	struct stream *stream = primary(self, session);

	if (stream)
		stream_send(stream, message, false);
}

void streams_tell_all(struct streams *self, json_t *message)
{
	struct stream *stream;

	TAILQ_FOREACH(stream, &self->all, link)
	if (stream->id.kind == KIND_STANDING &&
	    stream == primary(self, stream->session))
		stream_send(stream, message, false);
}

/* ---- coming back ---- */

static struct stream *find(const struct streams *self, const struct event_id *id,
			   uint64_t session)
{
	struct stream *stream;

	TAILQ_FOREACH(stream, &self->all, link)
	if (stream->resumable && stream->session == session &&
	    memcmp(stream->id.name, id->name, sizeof id->name) == 0)
		return stream;
	return NULL;
}

static void answer_nothing(struct exchange *exchange)
{
	http_reply(exchange, 204, "", NULL, "", 0);
}

/* Rather than let the client wait for ever. */
static void tell_lost(struct exchange *exchange, const char *request)
{
	json_auto_t *id = json_loads(request, JSON_DECODE_ANY, NULL);
	owned(buf_finish) struct buf text = {0};

	if (!json_is_string(id) && !json_is_integer(id)) {
		answer_nothing(exchange);
		return;
	}
	json_auto_t *message = rpc_error(
	    id, RPC_INTERNAL_ERROR,
	    "the answer to this request is not kept any more (Vivarium was restarted, "
	    "or it took too long to come back for it); what it did may be done: the "
	    "next call tells the state");
	buf_text(&text, "event: message\ndata: ");
	json_write(&text, message);
	buf_text(&text, "\n\n");
	http_stream(exchange, "");
	if (http_stream_send(exchange, text.data, text.size))
		http_stream_end(exchange);
}

static void go_on(struct stream *self, struct exchange *exchange, uint64_t seen)
{
	struct event *event;

	TAILQ_FOREACH(event, &self->events, link)
	if (event->seq > seen)
		break;
	if (self->exchange) /* the old connection is dead, or soon will be */
		detach(self);
	self->next = event;
	if (self->id.kind == KIND_STANDING) {
		stand(self, exchange);
	} else if (self->over && !event) {
		answer_nothing(exchange);
		rest(self);
	} else {
		attach(self, exchange, "");
		pump(self);
	}
}

int streams_resume(struct streams *self, struct exchange *exchange,
		   const struct session *session, const void *owner,
		   const char *event_id)
{
	struct event_id id;

	if (!event_id_read(&id, self->sessions, session->serial, event_id))
		return -1;
	struct stream *stream = find(self, &id, session->serial);
	if (stream && stream->owner != owner)
		return -1; /* sessions belong to nobody, what is said in them does */
	if (stream)
		go_on(stream, exchange, id.seq);
	else if (id.kind == KIND_STANDING)
		streams_stand(self, exchange, session, owner);
	else
		tell_lost(exchange, id.request);
	return 0;
}

/* ---- the end ---- */

void streams_tell_unread(struct streams *self, const void *owner, struct buf *out)
{
	int64_t before = loop_now_us() - STREAM_UNREAD_US;
	struct stream *stream;

	TAILQ_FOREACH(stream, &self->all, link)
	if (stream->owner == owner && is_kept_only(stream) &&
	    stream->rests_since <= before)
		take_unread(stream);
	unread_tell(&self->unread, owner, out);
}

void streams_forget(struct streams *self, uint64_t session)
{
	struct stream *stream, *next;

	for (stream = TAILQ_FIRST(&self->all); stream; stream = next) {
		next = TAILQ_NEXT(stream, link);
		if (!stream->resumable || stream->session != session)
			continue;
		if (stream->exchange)
			detach(stream);
		stream->resumable = false; /* nobody can come back */
		if (stream->over || stream->id.kind == KIND_STANDING)
			stream_destroy(stream);
	}
}

void streams_finish(struct streams *self)
{
	struct stream *stream;

	while ((stream = TAILQ_FIRST(&self->all)))
		stream_destroy(stream);
	unread_finish(&self->unread);
}

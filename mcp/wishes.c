// SPDX-License-Identifier: MIT
#include "mcp/wishes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mcp/server.h"
#include "wire/json.h"
#include "wire/mem.h"

enum { DAY_S = 24 * 3600, WORD_SIZE = 16 };

struct wish {
	TAILQ_ENTRY(wish) link;
	uint64_t session;
	bool lasts;      /* the session is known after a restart */
	long long heard; /* of it, by the clock; with lasts */
	int level;
	char *home; /* owned: the name of the workspace whose files it knows; NULL:
		       nobody's */
	bool listed;
	json_t *uris; /* owned: an object's keys, or NULL */
};

void wishes_init(struct wishes *self)
{
	*self = (struct wishes){0};
	TAILQ_INIT(&self->all);
}

/* ---- in memory ---- */

static struct wish *find(const struct wishes *self, uint64_t session)
{
	struct wish *wish;

	TAILQ_FOREACH(wish, &self->all, link)
	if (wish->session == session)
		return wish;
	return NULL;
}

static void drop_uris(struct wishes *self, struct wish *wish)
{
	const char *uri;
	json_t *value;

	json_object_foreach(wish->uris, uri, value)
	{
		self->bytes -= strlen(uri);
	}
	json_decref(wish->uris);
	wish->uris = NULL;
}

static void drop(struct wishes *self, struct wish *wish)
{
	TAILQ_REMOVE(&self->all, wish, link);
	self->count--;
	drop_uris(self, wish);
	free_text(&wish->home);
	free(wish);
}

/* The one of the session, now the youngest. */
static struct wish *find_or_make(struct wishes *self, uint64_t session, bool lasts)
{
	struct wish *wish = find(self, session);

	if (wish) {
		TAILQ_REMOVE(&self->all, wish, link);
	} else {
		if (self->count == WISHES_MAX)
			drop(self, TAILQ_FIRST(&self->all));
		wish = xcalloc(1, sizeof *wish);
		*wish = (struct wish){
		    .session = session, .lasts = lasts, .level = LOG_NONE};
		self->count++;
	}
	TAILQ_INSERT_TAIL(&self->all, wish, link);
	return wish;
}

/* What it knew was another user's. */
static void move(struct wishes *self, struct wish *wish, const char *home)
{
	drop_uris(self, wish);
	free_text(&wish->home);
	wish->listed = false;
	wish->home = xstrdup(home);
}

/* False: it is there already. */
static bool add_uri(struct wishes *self, struct wish *wish, const char *uri)
{
	if (!wish->uris)
		wish->uris = json_object();
	if (json_object_get(wish->uris, uri))
		return false;
	json_object_set_new(wish->uris, uri, json_true());
	self->bytes += strlen(uri);
	while (self->bytes > WISHES_BYTES_MAX && TAILQ_FIRST(&self->all) != wish)
		drop(self, TAILQ_FIRST(&self->all));
	return true;
}

static bool remove_uri(struct wishes *self, struct wish *wish, const char *uri)
{
	if (json_object_del(wish->uris, uri) < 0)
		return false;
	self->bytes -= strlen(uri);
	return true;
}

/* ---- for the next daemon ---- */

#define LINE "%016llx %lld %s %s"

static void note(struct wishes *self, struct wish *wish, const char *word,
		 const char *text)
{
	if (!wish->lasts)
		return;
	wish->heard = (long long)time(NULL);
	notes_add(&self->notes, LINE, (unsigned long long)wish->session, wish->heard,
		  word, text);
}

/* A URI may hold what would end the line. */
static void note_uri(struct wishes *self, struct wish *wish, const char *word,
		     const json_t *uri)
{
	owned(free_text) char *text = json_dumps(uri, JSON_ENCODE_ANY);

	note(self, wish, word, text);
}

static void note_level(struct wishes *self, struct wish *wish)
{
	char level[12];

	snprintf(level, sizeof level, "%d", wish->level);
	note(self, wish, "level", level);
}

static void read_uri(struct wishes *self, struct wish *wish, const char *text, bool add)
{
	json_auto_t *uri = json_loads(text, JSON_DECODE_ANY, NULL);
	struct err err;

	if (wishes_check_uri(uri, &err) < 0)
		return;
	if (!add)
		remove_uri(self, wish, json_string_value(uri));
	else if (json_object_size(wish->uris) < WISHES_URIS_MAX)
		add_uri(self, wish, json_string_value(uri));
}

static void read_line(const char *line, void *arg)
{
	struct wishes *self = arg;
	unsigned long long session;
	long long heard;
	char word[WORD_SIZE];
	int end = 0;

	if (sscanf(line, "%16llx %lld %15s%n", &session, &heard, word, &end) != 3 ||
	    line[end] != ' ')
		return;
	const char *text = line + end + 1;
	struct wish *wish = find_or_make(self, session, true);
	wish->heard = heard;
	if (strcmp(word, "level") == 0)
		wish->level =
		    text[0] >= '0' && text[0] <= '7' ? text[0] - '0' : LOG_NONE;
	else if (strcmp(word, "home") == 0)
		move(self, wish, text);
	else if (strcmp(word, "listed") == 0)
		wish->listed = true;
	else if (strcmp(word, "uri") == 0 || strcmp(word, "no-uri") == 0)
		read_uri(self, wish, text, word[0] == 'u');
	else if (strcmp(word, "over") == 0)
		drop(self, wish);
}

static void write_wish(FILE *to, const struct wish *wish)
{
	unsigned long long session = wish->session;
	const char *uri;
	json_t *value;

	if (wish->level != LOG_NONE)
		fprintf(to, "%016llx %lld level %d\n", session, wish->heard,
			wish->level);
	if (wish->home)
		fprintf(to, LINE "\n", session, wish->heard, "home", wish->home);
	if (wish->listed)
		fprintf(to, LINE "\n", session, wish->heard, "listed", "");
	json_object_foreach(wish->uris, uri, value)
	{
		json_auto_t *name = json_string(uri);
		owned(free_text) char *text = json_dumps(name, JSON_ENCODE_ANY);

		fprintf(to, LINE "\n", session, wish->heard, "uri", text);
	}
}

static void write_all(FILE *to, void *arg)
{
	const struct wishes *self = arg;
	const struct wish *wish;

	TAILQ_FOREACH(wish, &self->all, link)
	if (wish->lasts)
		write_wish(to, wish);
}

static void forget_old(struct wishes *self)
{
	long long now = (long long)time(NULL);
	struct wish *wish, *next;

	for (wish = TAILQ_FIRST(&self->all); wish; wish = next) {
		next = TAILQ_NEXT(wish, link);
		if (wish->lasts && now - wish->heard > WISHES_KEPT_S)
			drop(self, wish);
	}
}

int wishes_open(struct wishes *self, const char *dir, struct err *err)
{
	if (notes_open(&self->notes, dir, "sessions.wishes", read_line, write_all, self,
		       err) < 0)
		return -1;
	forget_old(self);
	return 0;
}

void wishes_finish(struct wishes *self)
{
	struct wish *wish;

	notes_close(&self->notes);
	while ((wish = TAILQ_FIRST(&self->all)))
		drop(self, wish);
}

/* ---- what is wished ---- */

int wishes_level(struct wishes *self, uint64_t session)
{
	struct wish *wish = session ? find(self, session) : NULL;

	if (!wish)
		return LOG_NONE;
	if (wish->lasts && (long long)time(NULL) - wish->heard > DAY_S)
		note(self, wish, "heard", "");
	return wish->level;
}

void wishes_set_level(struct wishes *self, const struct server_context *context,
		      int level)
{
	struct wish *wish = find_or_make(self, context->session, context->lasts);

	if (wish->level == level)
		return;
	wish->level = level;
	note_level(self, wish);
}

void wishes_forget(struct wishes *self, uint64_t session)
{
	struct wish *wish = find(self, session);

	if (!wish)
		return;
	note(self, wish, "over", "");
	drop(self, wish);
}

int wishes_check_uri(const json_t *uri, struct err *err)
{
	size_t size = json_string_length(uri);

	if (json_is_string(uri) && size < WISHES_URI_SIZE &&
	    !memchr(json_string_value(uri), '\0', size))
		return 0;
	return err_set(err, ERR_ARGUMENT,
		       "a URI to subscribe to is missing, no text or too long");
}

int wishes_too_many(struct err *err)
{
	return err_set(err, ERR_ARGUMENT, "more than %d subscriptions; end some",
		       WISHES_URIS_MAX);
}

static struct wish *find_for(struct wishes *self, const struct server_context *context)
{
	struct wish *wish = find_or_make(self, context->session, context->lasts);
	const char *home = workspace_name(context->workspace);

	if (!wish->home || strcmp(wish->home, home) != 0) {
		move(self, wish, home);
		note(self, wish, "home", home);
	}
	return wish;
}

void wishes_listed(struct wishes *self, const struct server_context *context)
{
	struct wish *wish = find_for(self, context);

	if (wish->listed)
		return;
	wish->listed = true;
	note(self, wish, "listed", "");
}

int wishes_subscribe(struct wishes *self, const struct server_context *context,
		     const json_t *uri, struct err *err)
{
	if (wishes_check_uri(uri, err) < 0)
		return -1;
	struct wish *wish = find_for(self, context);
	if (json_object_size(wish->uris) >= WISHES_URIS_MAX)
		return wishes_too_many(err);
	if (add_uri(self, wish, json_string_value(uri)))
		note_uri(self, wish, "uri", uri);
	return 0;
}

void wishes_unsubscribe(struct wishes *self, uint64_t session, const json_t *uri)
{
	struct wish *wish = find(self, session);

	if (wish && json_is_string(uri) &&
	    remove_uri(self, wish, json_string_value(uri)))
		note_uri(self, wish, "no-uri", uri);
}

/* ---- who wants to know ---- */

bool wishes_is_of(const struct workspace *workspace, const char *home)
{
	const char *name = workspace_name(workspace);
	size_t len = home ? strlen(home) : 0;

	return len && strncmp(name, home, len) == 0 && (!name[len] || name[len] == '@');
}

static bool wants(const struct wish *self, const struct workspace *workspace,
		  const char *uri)
{
	if (uri)
		return wishes_is_of(workspace, self->home) &&
		       json_object_get(self->uris, uri);
	return self->listed && self->home &&
	       strcmp(workspace_name(workspace), self->home) == 0;
}

void wishes_each(const struct wishes *self, const struct workspace *workspace,
		 const char *uri, void (*each)(uint64_t session, void *arg), void *arg)
{
	const struct wish *wish;

	TAILQ_FOREACH(wish, &self->all, link)
	if (wants(wish, workspace, uri))
		each(wish->session, arg);
}

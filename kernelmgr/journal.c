// SPDX-License-Identifier: MIT
#include "kernelmgr/journal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>

#include "kernelmgr/names.h"
#include "kernelmgr/notes.h"
#include "wire/mem.h"
#include "wire/words.h"

struct entry { /* an open call */
	LIST_ENTRY(entry) link;
	uint64_t number;
	char workspace[WORKSPACE_NAME_SIZE];
	unsigned long long cell; /* 0 while it waits */
	long long since;         /* wall clock, seconds */
};
LIST_HEAD(entry_list, entry);

struct journal {
	struct notes notes;
	uint64_t last;
	struct entry_list open; /* entry::link */
	struct entry_list lost; /* entry::link; of the last daemon */
	struct entry_list live; /* entry::link; workspaces whose kernel has variables */
	struct entry_list ended; /* entry::link; the same of the last daemon */
};

static struct entry *find(struct entry_list *list, uint64_t number)
{
	struct entry *entry;

	LIST_FOREACH(entry, list, link)
	if (entry->number == number)
		return entry;
	return NULL;
}

static struct entry *find_workspace(struct entry_list *list, const char *workspace)
{
	struct entry *entry;

	LIST_FOREACH(entry, list, link)
	if (strcmp(entry->workspace, workspace) == 0)
		return entry;
	return NULL;
}

static void drop(struct entry *entry)
{
	if (!entry)
		return;
	LIST_REMOVE(entry, link);
	free(entry);
}

static void drop_all(struct entry_list *list)
{
	while (!LIST_EMPTY(list))
		drop(LIST_FIRST(list));
}

static struct entry *add(struct entry_list *list, uint64_t number,
			 const char *workspace, long long since)
{
	struct entry *entry = xcalloc(1, sizeof *entry);

	entry->number = number;
	entry->since = since;
	snprintf(entry->workspace, sizeof entry->workspace, "%s", workspace);
	LIST_INSERT_HEAD(list, entry, link);
	return entry;
}

/* One line of an old journal: "queued N WORKSPACE TIME", "begun N CELL TIME", "ended
 * N", "live WORKSPACE", "gone WORKSPACE".  What does not read as one is passed over. */
static void replay(const char *line, void *arg)
{
	struct journal *self = arg;
	char workspace[WORKSPACE_NAME_SIZE];
	unsigned long long number, cell;
	long long when;

	if (sscanf(line, "queued %llu %97s %lld", &number, workspace, &when) == 3) {
		add(&self->lost, number, workspace, when);
	} else if (sscanf(line, "begun %llu %llu %lld", &number, &cell, &when) == 3) {
		struct entry *entry = find(&self->lost, number);

		if (entry) {
			entry->cell = cell;
			entry->since = when;
		}
	} else if (sscanf(line, "live %97s", workspace) == 1) {
		if (!find_workspace(&self->ended, workspace))
			add(&self->ended, 0, workspace, 0);
	} else if (sscanf(line, "gone %97s", workspace) == 1) {
		drop(find_workspace(&self->ended, workspace));
	} else if (sscanf(line, "ended %llu", &number) == 1) {
		drop(find(&self->lost, number));
	}
}

#define QUEUED "queued %llu %s %lld"
#define BEGUN "begun %llu %llu %lld"
#define LIVE "live %s"

static void write_all(FILE *to, void *arg)
{
	struct journal *self = arg;
	const struct entry *entry;

	LIST_FOREACH(entry, &self->open, link)
	{
		fprintf(to, QUEUED "\n", (unsigned long long)entry->number,
			entry->workspace, entry->since);
		if (entry->cell)
			fprintf(to, BEGUN "\n", (unsigned long long)entry->number,
				entry->cell, entry->since);
	}
	LIST_FOREACH(entry, &self->live, link)
	fprintf(to, LIVE "\n", entry->workspace);
}

int journal_open(struct journal **out, const char *dir, struct err *err)
{
	owned(journal_close) struct journal *self = xcalloc(1, sizeof *self);

	LIST_INIT(&self->open);
	LIST_INIT(&self->lost);
	LIST_INIT(&self->live);
	LIST_INIT(&self->ended);
	if (notes_open(&self->notes, dir, "calls.journal", replay, write_all, self,
		       err) < 0)
		return -1;
	*out = take(&self);
	return 0;
}

void journal_close(struct journal **self)
{
	struct journal *dead = take(self);

	if (!dead)
		return;
	drop_all(&dead->open);
	drop_all(&dead->lost);
	drop_all(&dead->live);
	drop_all(&dead->ended);
	notes_close(&dead->notes);
	free(dead);
}

uint64_t journal_queued(struct journal *self, const char *workspace)
{
	if (!self)
		return 0;
	const struct entry *entry =
	    add(&self->open, ++self->last, workspace, time(NULL));
	notes_add(&self->notes, QUEUED, (unsigned long long)entry->number,
		  entry->workspace, entry->since);
	return self->last;
}

void journal_begun(struct journal *self, uint64_t call, unsigned long long cell)
{
	struct entry *entry = self ? find(&self->open, call) : NULL;

	if (!entry)
		return;
	entry->cell = cell;
	entry->since = time(NULL);
	notes_add(&self->notes, BEGUN, (unsigned long long)call, cell, entry->since);
}

void journal_ended(struct journal *self, uint64_t call)
{
	struct entry *entry = self ? find(&self->open, call) : NULL;

	if (!entry)
		return;
	drop(entry);
	notes_add(&self->notes, "ended %llu", (unsigned long long)call);
}

void journal_each_lost(const struct journal *self, const char *workspace,
		       void (*fn)(unsigned long long cell, long long since, void *arg),
		       void *arg)
{
	const struct entry *entry = self ? LIST_FIRST(&self->lost) : NULL;

	for (; entry; entry = LIST_NEXT(entry, link))
		if (entry->cell && strcmp(entry->workspace, workspace) == 0)
			fn(entry->cell, entry->since, arg);
}

void journal_tell_lost(struct journal *self, const char *workspace, bool saved,
		       struct buf *out)
{
	struct entry *entry = self ? LIST_FIRST(&self->lost) : NULL, *next;
	size_t waiting = 0, start = out->size;
	char when[TIME_TEXT] = "";

	for (; entry; entry = next) {
		next = LIST_NEXT(entry, link);
		if (strcmp(entry->workspace, workspace) != 0)
			continue;
		if (entry->cell) {
			time_text(when, entry->since);
			buf_printf(out, "%scell %llu, which ran since %s",
				   out->size == start ? "Vivarium was killed; lost: "
						      : ", ",
				   entry->cell, when);
		} else {
			waiting++;
		}
		drop(entry);
	}
	if (waiting)
		buf_printf(out, "%s%zu call%s that waited",
			   out->size == start ? "Vivarium was killed; lost: " : ", ",
			   waiting, plural_s(waiting));
	if (out->size > start)
		buf_text(out, saved ? ".\n" : ", and all variables.\n");
	else if (self && find_workspace(&self->ended, workspace))
		buf_printf(
		    out, "Vivarium was restarted: this call runs in a new kernel%s.\n",
		    saved ? "" : ", the variables of the earlier ones are gone");
	if (self)
		drop(find_workspace(&self->ended, workspace));
}

void journal_live(struct journal *self, const char *workspace)
{
	if (!self || find_workspace(&self->live, workspace))
		return;
	add(&self->live, 0, workspace, 0);
	notes_add(&self->notes, LIVE, workspace);
}

void journal_gone(struct journal *self, const char *workspace)
{
	struct entry *entry = self ? find_workspace(&self->live, workspace) : NULL;

	if (!entry)
		return;
	drop(entry);
	notes_add(&self->notes, "gone %s", workspace);
}

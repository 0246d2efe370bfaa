// SPDX-License-Identifier: MIT
/* What a depot tells people: cells.jsonl, what is in a generation, what differs. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernelmgr/depot_impl.h"
#include "wire/json.h"
#include "wire/mem.h"

enum {
	CELLS_KEPT = 1 << 20, /* bytes of it that stay when it has grown too large */
};

/* When it is too large its older part goes. */
static void trim(struct depot *self, int fd)
{
	owned(buf_finish) struct buf text = {0};
	struct stat st;
	struct err err;

	if (fstat(fd, &st) < 0 || st.st_size < CELLS_MAX / 2 ||
	    depot_read_file(self->dir, "cells.jsonl", CELLS_MAX, &text, &err) < 0)
		return;
	const char *from = text.data + text.size - CELLS_KEPT;
	const char *line = strchr(from, '\n');
	if (line && depot_write_file(self->dir, "cells.jsonl", line + 1,
				     strlen(line + 1), &err) < 0)
		fprintf(stderr, "%s\n", err.msg);
}

void depot_note(struct depot *self, const json_t *line)
{
	owned(free_text) char *json = json_dumps(line, JSON_COMPACT);
	owned(free_text) char *text = xasprintf("%s\n", json ? json : "{}");
	owned(close_fd) int fd =
	    openat(self->dir, "cells.jsonl",
		   O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	long long cell = json_integer_of(line, "cell", 0);

	if (cell > self->last_cell)
		self->last_cell = cell;
	/* Not synced: power loss costs a line that says what is told elsewhere too. */
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		fprintf(stderr, "cells.jsonl: %s\n", strerror(errno));
	else
		trim(self, fd);
}

/* What the daemon saw of the cell counts more than what its kernel wrote with the
 * state, whichever came first. */
static void merge(json_t *row, json_t *line)
{
	static const char *const seen[] = {"time", "ms", "outcome", "code"};

	if (json_object_get(line, "generation"))
		for (size_t i = 0; i < COUNT_OF(seen); i++)
			if (json_object_get(row, seen[i]))
				json_object_del(line, seen[i]);
	json_object_update(row, line);
}

/* A cell has up to two lines: one when it ended, one when it was saved. */
static void add_line(json_t *rows, json_t *line)
{
	size_t count = json_array_size(rows);
	long long cell = json_integer_of(line, "cell", -1);

	for (size_t i = count; i-- > 0 && i + 8 > count;) {
		json_t *row = json_array_get(rows, i);

		if (json_integer_of(row, "cell", -2) == cell) {
			merge(row, line);
			return;
		}
	}
	json_array_append(rows, line);
}

static void mark_tried(json_t *row, const json_t *rows)
{
	json_t *names = json_array(), *failed;
	size_t i;

	json_array_foreach(rows, i, failed)
	{
		json_array_append(names, json_object_get(failed, "name"));
	}
	json_object_set_new(row, "verified", json_boolean(rows != NULL));
	json_object_set_new(row, "not_loading", names);
}

/* Only those that can be gone back to have a generation. */
static void forget_dropped(const struct depot *self, json_t *rows)
{
	size_t i;
	json_t *row;

	json_array_foreach(rows, i, row)
	{
		long long number = json_integer_of(row, "generation", 0);

		if (number && !depot_generation(self, (uint64_t)number))
			json_object_del(row, "generation");
		else if (number)
			mark_tried(row, depot_tried(self, (uint64_t)number));
	}
}

json_t *depot_history(const struct depot *self, size_t cells)
{
	owned(buf_finish) struct buf text = {0};
	json_t *rows = json_array();
	struct err err;

	if (depot_read_file(self->dir, "cells.jsonl", CELLS_MAX, &text, &err) < 0)
		return rows;
	for (char *at = text.data, *end; (end = strchr(at, '\n')); at = end + 1) {
		json_t *line;

		if (json_parse(&line, at, (size_t)(end - at), &err) < 0)
			continue; /* torn */
		if (json_is_object(line))
			add_line(rows, line);
		json_decref(line);
	}
	while (json_array_size(rows) > cells)
		json_array_remove(rows, 0);
	forget_dropped(self, rows);
	return rows;
}

/* IPython's record of In and Out: it goes without saying. */
static bool is_history(const json_t *entry)
{
	const char *name = json_text(entry, "name", "_");

	return name[0] == '_' || strcmp(name, "In") == 0 || strcmp(name, "Out") == 0;
}

static json_t *describe(const json_t *entry)
{
	return json_pack("{ss ss sI sI sb}", "name", json_text(entry, "name", "?"),
			 "type", json_text(entry, "type", "?"), "bytes",
			 (json_int_t)json_integer_of(entry, "bytes", 0), "cell",
			 (json_int_t)json_integer_of(entry, "cell", 0), "imported",
			 json_is_true(json_object_get(entry, "imported")));
}

int depot_contents(const struct depot *self, uint64_t generation, json_t **out,
		   struct err *err)
{
	owned(manifest_finish) struct manifest manifest = {0};
	json_t *names = json_array(), *entry;
	size_t i;

	if (depot_read_manifest(self, generation, &manifest, err) < 0) {
		json_decref(names);
		return -1;
	}
	json_array_foreach(json_object_get(manifest.root, "entries"), i, entry)
	{
		if (!is_history(entry))
			json_array_append_new(names, describe(entry));
	}
	*out = json_pack(
	    "{so sI sI sI}", "names", names, "cell", (json_int_t)manifest.cell, "time",
	    (json_int_t)json_number_value(json_object_get(manifest.root, "time")),
	    "bytes", (json_int_t)manifest.bytes);
	return 0;
}

/* Entries of one that are not, or are otherwise, in the other. */
static void compare(const json_t *entries, const json_t *others, json_t *absent,
		    json_t *different)
{
	size_t i;
	json_t *entry;

	json_array_foreach(entries, i, entry)
	{
		const json_t *other;

		if (is_history(entry))
			continue;
		other = json_row_named(others, json_text(entry, "name", "?"));
		if (!other)
			json_array_append_new(absent, describe(entry));
		else if (different && strcmp(json_text(entry, "hash", ""),
					     json_text(other, "hash", "")) != 0)
			json_array_append_new(different, describe(entry));
	}
}

int depot_diff(const struct depot *self, uint64_t from, uint64_t to, json_t **out,
	       struct err *err)
{
	owned(manifest_finish) struct manifest a = {0}, b = {0};

	if (depot_read_manifest(self, from, &a, err) < 0 ||
	    depot_read_manifest(self, to, &b, err) < 0)
		return -1;
	const json_t *before = json_object_get(a.root, "entries");
	const json_t *after = json_object_get(b.root, "entries");
	json_t *added = json_array(), *changed = json_array(), *removed = json_array();

	compare(after, before, added, changed);
	compare(before, after, removed, NULL);
	*out = json_pack("{sI sI so so so}", "from", (json_int_t)a.cell, "to",
			 (json_int_t)b.cell, "added", added, "changed", changed,
			 "removed", removed);
	return 0;
}

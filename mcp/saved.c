// SPDX-License-Identifier: MIT
#include "mcp/saved.h"

#include <stdbool.h>
#include <string.h>

#include "kernelmgr/files.h"
#include "wire/json.h"
#include "wire/utf8.h"
#include "wire/words.h"

enum {
	ROWS_SHOWN = 8,
	ROWS_MAX = 50,    /* in the structure */
	NAMES_SHOWN = 20, /* of a state that a tool went back to */
	NAME_SHOWN = 64,  /* characters of a name */
	WHY_SHOWN = 100,  /* and of what it is or why */
};

static void show(struct buf *out, const json_t *row, const char *key, size_t max)
{
	const char *text = json_text(row, key, "");

	utf8_show_cut(out, text, strlen(text), max);
}

static void show_tried(struct buf *out, const json_t *row)
{
	long long cell = json_integer_of(row, "tried", 0);

	if (cell)
		buf_printf(out,
			   "; found when it was tried, in the state after cell %lld",
			   cell);
}

/* Those for which there is no room are named all the same: nothing goes unsaid. */
static void add_others(struct buf *out, const json_t *rows, size_t untold)
{
	size_t count = json_array_size(rows), i = ROWS_SHOWN;

	for (; i < count && i < ROWS_SHOWN + NAMES_SHOWN; i++) {
		buf_text(out, i == ROWS_SHOWN ? "  also " : ", ");
		show(out, json_array_get(rows, i), "name", NAME_SHOWN);
	}
	if (i < count)
		untold += count - i;
	if (untold)
		buf_printf(out, "  +%zu more", untold);
	if (count)
		buf_text(out, "\n");
}

/* "name (what: why)" for each, after a heading. */
static void add_lost(struct buf *out, const json_t *snapshot)
{
	const json_t *rows = json_object_get(snapshot, "lost");
	size_t count = json_array_size(rows);

	for (size_t i = 0; i < count && i < ROWS_SHOWN; i++) {
		const json_t *row = json_array_get(rows, i);
		bool what = json_text(row, "what", "")[0] != '\0';

		buf_text(out, i ? "  " : "lost if the kernel restarts: ");
		show(out, row, "name", NAME_SHOWN);
		buf_text(out, " (");
		show(out, row, "what", WHY_SHOWN);
		buf_text(out, what ? ": " : "");
		show(out, row, "why", WHY_SHOWN);
		show_tried(out, row);
		buf_text(out, ")");
	}
	add_others(out, rows, json_count_of(snapshot, "more_lost"));
}

static void add_over(struct buf *out, const json_t *rows)
{
	size_t count = json_array_size(rows);
	char size[FILES_SIZE_TEXT];

	for (size_t i = 0; i < count && i < ROWS_SHOWN; i++) {
		const json_t *row = json_array_get(rows, i);

		files_size_text(size, (uint64_t)json_integer_of(row, "bytes", 0));
		buf_text(out, i ? "  "
				: "too large to be saved "
				  "(VIVARIUM_NAMESPACE_MAX_BYTES): ");
		show(out, row, "name", NAME_SHOWN);
		buf_printf(out, " %s", size);
	}
	add_others(out, rows, 0);
}

static void add_size(struct buf *out, const json_t *snapshot)
{
	bool saved = json_is_true(json_object_get(snapshot, "saved"));
	char size[FILES_SIZE_TEXT];

	files_size_text(size, (uint64_t)json_integer_of(snapshot, "bytes", 0));
	buf_text(out, "namespace size: ");
	if (saved)
		buf_printf(out, "%s, saved\n", size);
	else if (json_integer_of(snapshot, "generation", 0))
		buf_printf(out, "%s, being saved\n", size);
	else
		buf_text(out, "being saved\n");
}

void saved_footer(struct buf *out, const json_t *summary)
{
	const json_t *snapshot = json_object_get(summary, "snapshot");
	const json_t *restored = json_object_get(summary, "restored");
	const char *error = json_text(snapshot, "error", NULL);

	if (json_is_object(restored))
		buf_printf(out, "restored: %zu variable%s, as after cell %lld\n",
			   json_count_of(restored, "names"),
			   plural_s(json_count_of(restored, "names")),
			   json_integer_of(restored, "cell", 0));
	if (!json_is_object(snapshot))
		return;
	add_lost(out, snapshot);
	add_over(out, json_object_get(snapshot, "over"));
	add_size(out, snapshot);
	if (error) {
		buf_text(out, "the state could not be saved: ");
		utf8_show_cut(out, error, strlen(error), WHY_SHOWN);
		buf_text(out, "\n");
	}
}

/* "2 variables: a, b" of the rows that an import brought, or of the others. */
static size_t add_names(struct buf *out, const char *what, const json_t *rows,
			bool imported)
{
	owned(buf_finish) struct buf names = {0};
	size_t count = 0, i;
	json_t *row;

	json_array_foreach(rows, i, row)
	{
		if (json_is_true(json_object_get(row, "imported")) != imported)
			continue;
		if (count < NAMES_SHOWN) {
			buf_text(&names, count ? ", " : ": ");
			show(&names, row, "name", NAME_SHOWN);
		}
		count++;
	}
	if (count > NAMES_SHOWN)
		buf_printf(&names, ", +%zu more", count - NAMES_SHOWN);
	buf_printf(out, "%zu %s%s%s", count, what, plural_s(count), buf_str(&names));
	return count;
}

void saved_names(struct buf *out, const json_t *rows)
{
	owned(buf_finish) struct buf imports = {0};

	add_names(out, "variable", rows, false);
	if (add_names(&imports, "import", rows, true))
		buf_printf(out, ", %s", buf_str(&imports));
}

static json_t *why_json(const json_t *row)
{
	owned(buf_finish) struct buf text = {0};

	show(&text, row, "why", WHY_SHOWN);
	show_tried(&text, row);
	return json_string_lossy(buf_str(&text), text.size);
}

static json_t *lost_json(const json_t *rows)
{
	json_t *lost = json_object();

	for (size_t i = 0; i < json_array_size(rows) && i < ROWS_MAX; i++) {
		const json_t *row = json_array_get(rows, i);
		owned(buf_finish) struct buf name = {0};

		show(&name, row, "name", NAME_SHOWN);
		json_object_set_new(lost, buf_str(&name), why_json(row));
	}
	return lost;
}

static json_t *over_json(const json_t *rows)
{
	json_t *over = json_object();

	for (size_t i = 0; i < json_array_size(rows) && i < ROWS_MAX; i++) {
		const json_t *row = json_array_get(rows, i);
		owned(buf_finish) struct buf name = {0};

		show(&name, row, "name", NAME_SHOWN);
		json_object_set_new(over, buf_str(&name),
				    json_integer(json_integer_of(row, "bytes", 0)));
	}
	return over;
}

json_t *saved_json(const json_t *summary)
{
	const json_t *snapshot = json_object_get(summary, "snapshot");
	const json_t *restored = json_object_get(summary, "restored");
	const json_t *over = json_object_get(snapshot, "over");
	const char *error = json_text(snapshot, "error", NULL);
	bool saved = json_is_true(json_object_get(snapshot, "saved"));

	if (!json_is_object(snapshot))
		return NULL;
	json_t *out = json_pack("{sb sI so}", "saved", saved, "bytes",
				(json_int_t)json_integer_of(snapshot, "bytes", 0),
				"lost_if_restarted",
				lost_json(json_object_get(snapshot, "lost")));
	if (json_array_size(over))
		json_object_set_new(out, "too_large", over_json(over));
	if (error) {
		owned(buf_finish) struct buf why = {0};

		utf8_show_cut(&why, error, strlen(error), WHY_SHOWN);
		json_object_set_new(out, "error",
				    json_string_lossy(buf_str(&why), why.size));
	}
	if (json_is_object(restored))
		json_object_set_new(
		    out, "restored",
		    json_pack("{sI sI}", "names",
			      (json_int_t)json_count_of(restored, "names"), "cell",
			      (json_int_t)json_integer_of(restored, "cell", 0)));
	return out;
}

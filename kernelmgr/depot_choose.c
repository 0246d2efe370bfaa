// SPDX-License-Identifier: MIT
/* Which generation is in force: the newest that is whole, or one that was asked for. */
#include <stdio.h>
#include <time.h>

#include "kernelmgr/depot_impl.h"
#include "wire/words.h"

enum { HASHING_US = 300 * 1000 /* of depot_choose(); the kernel checks the rest */ };

static int64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

static int check_whole(struct depot *self, const struct generation *generation,
		       struct err *err)
{
	owned(manifest_finish) struct manifest manifest = {0};
	int64_t until = now_us() + HASHING_US;

	if (generation->condemned[0])
		return err_set(err, ERR_PARSE, "%s", generation->condemned);
	if (depot_read_manifest(self, generation->number, &manifest, err) < 0)
		return -1;
	for (size_t i = 0; i < manifest.count; i++)
		if (depot_check_chunk(self->chunks, &manifest.chunks[i],
				      now_us() < until, err) < 0)
			return -1;
	return 0;
}

json_t *depot_older(const struct depot *self, uint64_t generation)
{
	const struct generation *found = depot_generation(self, generation);
	json_t *numbers = json_array();

	for (size_t i = 0; found && i < CARRIES_MAX && found->carries[i]; i++) {
		owned(manifest_finish) struct manifest manifest = {0};
		const struct generation *older =
		    depot_generation(self, found->carries[i]);
		struct err err;

		if (older && !older->condemned[0] &&
		    depot_read_manifest(self, older->number, &manifest, &err) == 0)
			json_array_append_new(numbers,
					      json_integer((json_int_t)older->number));
	}
	return numbers;
}

/* The next to try: the one that was in force before it.  A namespace that was begun
 * afresh does not turn into the one before. */
static struct generation *one_before(const struct depot *self,
				     const struct generation *generation)
{
	struct generation *before = depot_generation(self, generation->parent);

	if (generation->fresh || before)
		return generation->fresh ? NULL : before;
	for (size_t i = 0; i < self->count && self->kept[i].number < generation->number;
	     i++)
		before = &self->kept[i];
	return before;
}

uint64_t depot_choose(struct depot *self, struct buf *words)
{
	struct generation *generation = depot_generation(self, self->head);
	struct err err;

	for (; generation; generation = one_before(self, generation)) {
		if (check_whole(self, generation, &err) == 0)
			break;
		buf_printf(words,
			   "The state saved after cell %lld cannot be used (%s).\n",
			   generation->cell, err.msg);
	}
	self->head = generation ? generation->number : 0;
	return self->head;
}

/* ---- going back ---- */

static void list_cells(const struct depot *self, char *out, size_t size)
{
	size_t at = 0;

	out[0] = '\0';
	for (size_t i = self->count; i-- > 0 && at + 32 < size;)
		at += (size_t)snprintf(out + at, size - at, "%s%lld", at ? ", " : "",
				       self->kept[i].cell);
}

static int nothing_there(const struct depot *self, const char *what, struct err *err)
{
	char cells[160];

	list_cells(self, cells, sizeof cells);
	return err_set(err, ERR_ARGUMENT, "%s; saved states there are: %s%s", what,
		       cells[0] ? "after cells " : "none", cells);
}

/* The newest that has a cell of at most this number. */
static const struct generation *nearest(const struct depot *self, long long cell)
{
	const struct generation *best = NULL;

	for (size_t i = 0; i < self->count; i++)
		if (self->kept[i].cell <= cell &&
		    (!best || self->kept[i].cell >= best->cell))
			best = &self->kept[i];
	return best;
}

int depot_find_cell(const struct depot *self, long long cell, uint64_t *out,
		    struct err *err)
{
	const struct generation *best = nearest(self, cell);
	const struct generation *at = depot_generation(self, self->head);
	char what[80];

	if (cell > self->last_cell) {
		snprintf(what, sizeof what, "there is no cell %lld", cell);
		return nothing_there(self, what, err);
	}
	if (best && best->cell != cell) {
		while (at && at->cell > cell)
			at = depot_generation(self, at->parent);
		best = at ? at : best;
	}
	snprintf(what, sizeof what, "no state from cell %lld or before is kept", cell);
	if (!best)
		return nothing_there(self, what, err);
	*out = best->number;
	return 0;
}

/* Cells that ran between a state and the one before it in its line. */
static long long cells_of(const struct generation *generation)
{
	long long cells = generation->cell - generation->first + 1;

	if (!generation->first)
		return 1; /* written before this was kept */
	return cells > 0 ? cells : 0;
}

int depot_find_back(const struct depot *self, size_t cells, long long last_cell,
		    uint64_t *out, size_t *undone, struct err *err)
{
	const struct generation *at =
	    depot_generation(self, self->head ? self->head : self->before);
	long long since = self->base, back;
	char what[80];

	if (at && self->head && at->cell > since)
		since = at->cell;
	back = last_cell > since ? last_cell - since : 0; /* not saved, or not yet */
	while (at && back < (long long)cells) {
		back += cells_of(at);
		at = depot_generation(self, at->parent);
	}
	snprintf(what, sizeof what, "no state from %zu cell%s back is kept", cells,
		 plural_s(cells));
	if (!at)
		return nothing_there(self, what, err);
	*out = at->number;
	*undone = (size_t)back;
	return 0;
}

int depot_select(struct depot *self, uint64_t number, struct err *err)
{
	uint64_t head = self->head, before = self->before;
	long long base = self->base;

	if (number && !depot_generation(self, number))
		return nothing_there(self, "there is no such saved state", err);
	if (!number && head)
		self->before = head;
	self->head = number;
	self->base = self->last_cell;
	if (depot_write_head(self, err) == 0)
		return 0;
	self->head = head;
	self->base = base;
	self->before = before;
	return -1;
}

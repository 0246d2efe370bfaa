// SPDX-License-Identifier: MIT
/* From the spool into the depot, and out of it again when there are newer ones. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernelmgr/depot_impl.h"
#include "kernelmgr/sweep.h"
#include "wire/json.h"
#include "wire/mem.h"

/* A chunk that is in the depot was checked when it came in; else it must be in the
 * spool, and right. */
static int take_chunk(struct depot *self, const struct chunk_ref *ref, struct err *err)
{
	struct err absent;

	if (depot_check_chunk(self->chunks, ref, false, &absent) == 0)
		return 0;
	if (depot_check_chunk(self->spool, ref, true, err) < 0)
		return -1;
	owned(close_fd) int fd = openat(self->spool, ref->hash,
					O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fdatasync(fd) < 0 || fchmod(fd, 0400) < 0 ||
	    renameat(self->spool, ref->hash, self->chunks, ref->hash) < 0)
		return err_set(err, ERR_SYSTEM, "keep chunk %s", ref->hash);
	return 0;
}

static int take_chunks(struct depot *self, const struct manifest *manifest,
		       struct err *err)
{
	for (size_t i = 0; i < manifest->count; i++)
		if (take_chunk(self, &manifest->chunks[i], err) < 0)
			return -1;
	if (fsync(self->chunks) < 0)
		return err_set(err, ERR_SYSTEM, "sync the chunks");
	return 0;
}

int depot_put_manifest(struct depot *self, uint64_t number, const struct buf *text,
		       struct err *err)
{
	char mac[2 * 32 + 1], name[32];

	depot_mac(self, number, text, mac);
	depot_write_name(name, number, ".mac");
	if (depot_write_file(self->generations, name, mac, strlen(mac), err) < 0)
		return -1;
	depot_write_name(name, number, ".json");
	return depot_write_file(self->generations, name, text->data, text->size, err);
}

/* What cells.jsonl says of a generation. */
static void note(struct depot *self, const struct manifest *manifest)
{
	const json_t *changes = json_object_get(manifest->root, "changes");
	const json_t *root = manifest->root;
	json_auto_t *line = json_pack(
	    "{sI sI sI sI sI ss ss}", "cell", (json_int_t)manifest->cell, "generation",
	    (json_int_t)manifest->generation, "bytes", (json_int_t)manifest->bytes,
	    "time", (json_int_t)json_number_value(json_object_get(root, "time")), "ms",
	    (json_int_t)json_integer_of(root, "duration_ms", 0), "outcome",
	    json_text(root, "outcome", "?"), "code", json_text(root, "source", ""));

	if (json_is_object(changes))
		json_object_update_missing(line, (json_t *)(uintptr_t)changes);
	depot_note(self, line);
}

int depot_adopt(struct depot *self, uint64_t number, struct err *err)
{
	owned(buf_finish) struct buf text = {0};
	owned(manifest_finish) struct manifest manifest = {0};
	char name[32];

	depot_write_name(name, number, ".json");
	if (number <= self->last)
		return err_set(
		    err, ERR_ARGUMENT, "generation %llu is not newer than %llu",
		    (unsigned long long)number, (unsigned long long)self->last);
	if (depot_read_file(self->spool, name, MANIFEST_MAX, &text, err) < 0 ||
	    manifest_read(&manifest, buf_str(&text), text.size, err) < 0)
		return -1;
	if (manifest.generation != number)
		return err_set(err, ERR_PARSE, "the manifest is of generation %llu",
			       (unsigned long long)manifest.generation);
	if (take_chunks(self, &manifest, err) < 0 ||
	    depot_put_manifest(self, number, &text, err) < 0)
		return -1;
	note(self, &manifest);
	depot_add(self, &manifest);
	if (depot_write_head(self, err) < 0)
		return -1; /* found again by its manifest */
	unlinkat(self->spool, name, 0);
	depot_prune(self);
	return 0;
}

/* ---- the spool ---- */

static void remove_name(int dir, const char *name, void *arg)
{
	const struct depot *self = arg;
	char path[PATH_MAX + NAME_MAX + 16];

	if (unlinkat(dir, name, 0) == 0 || errno != EISDIR)
		return;
	snprintf(path, sizeof path, "%s/spool/%s", self->path, name);
	sweep_tree(path);
}

static void drop_unused_chunk(int dir, const char *name, void *arg)
{
	const struct depot *self = arg;

	if (!json_object_get(self->uses, name))
		unlinkat(dir, name, 0);
}

void depot_take_spool(struct depot *self, struct buf *words)
{
	owned(depot_numbers_finish) struct depot_numbers found = {0};
	struct err err;

	depot_list_manifests(self->spool, &found);
	for (size_t i = 0; i < found.count; i++)
		if (found.at[i] > self->last &&
		    depot_adopt(self, found.at[i], &err) < 0)
			buf_printf(words,
				   "The newest saved state could not be kept (%s).\n",
				   err.msg);
	depot_each_name(self->spool, remove_name, self);
	/* Only now: an adoption that was cut short had moved its chunks already. */
	depot_each_name(self->chunks, drop_unused_chunk, self);
}

/* ---- dropping ---- */

static void release_chunk(struct depot *self, const struct chunk_ref *ref)
{
	json_int_t uses = json_integer_value(json_object_get(self->uses, ref->hash));

	if (uses > 1) {
		json_object_set_new(self->uses, ref->hash, json_integer(uses - 1));
		return;
	}
	self->bytes -= ref->size;
	json_object_del(self->uses, ref->hash);
	unlinkat(self->chunks, ref->hash, 0);
}

static void drop(struct depot *self, size_t at)
{
	struct generation dead = self->kept[at];
	char name[32];

	depot_write_name(name, dead.number, ".json");
	unlinkat(self->generations, name,
		 0); /* first: without it the rest is nothing */
	depot_write_name(name, dead.number, ".mac");
	unlinkat(self->generations, name, 0);
	depot_write_name(name, dead.number, "");
	json_object_del(self->skip, name);
	json_object_del(self->tried, name);
	self->count--;
	memmove(self->kept + at, self->kept + at + 1,
		(self->count - at) * sizeof *self->kept);
	for (size_t i = 0; i < self->count; i++)
		if (self->kept[i].parent == dead.number) {
			self->kept[i].parent = dead.parent;
			self->kept[i].first = dead.first;
		}
	if (self->before == dead.number)
		self->before = dead.parent;
	for (size_t i = 0; i < dead.count; i++)
		release_chunk(self, &dead.chunks[i]);
	free(dead.chunks);
}

static bool over(const struct depot *self)
{
	return self->count > self->limits.keep ||
	       (self->limits.max_bytes && self->bytes > self->limits.max_bytes);
}

static bool is_among(const uint64_t *numbers, size_t count, uint64_t number)
{
	for (size_t i = 0; i < count; i++)
		if (numbers[i] == number)
			return true;
	return false;
}

static void drop_but(struct depot *self, const uint64_t *carried, size_t count)
{
	size_t at = 0;

	while (at < self->count && self->count > 1 && over(self)) {
		uint64_t number = self->kept[at].number;

		if (number == self->head || is_among(carried, count, number))
			at++;
		else
			drop(self, at);
	}
}

void depot_prune(struct depot *self)
{
	const struct generation *head = depot_generation(self, self->head);
	uint64_t carried[CARRIES_MAX] = {0};

	if (head)
		memcpy(carried, head->carries, sizeof carried);
	drop_but(self, carried, CARRIES_MAX);
	drop_but(self, carried, 1); /* a kernel must not get over the limits by naming
				     * many */
}

// SPDX-License-Identifier: MIT
#include "kernelmgr/depot.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernelmgr/depot_impl.h"
#include "kernelmgr/sweep.h"
#include "wire/json.h"
#include "wire/mem.h"

enum {
	HEAD_MAX = 4 << 20, /* bytes */
	LAST_CELLS = 100,   /* of the history, looked through for the last number */
	MAC_HEX = 64,
};

struct generation *depot_generation(const struct depot *self, uint64_t number)
{
	for (size_t i = 0; i < self->count; i++)
		if (self->kept[i].number == number)
			return &self->kept[i];
	return NULL;
}

void depot_write_name(char out[32], uint64_t number, const char *ending)
{
	snprintf(out, 32, "%llu%s", (unsigned long long)number, ending);
}

int depot_read_manifest(const struct depot *self, uint64_t number, struct manifest *out,
			struct err *err)
{
	owned(buf_finish) struct buf text = {0}, mac = {0};
	char name[32], right[MAC_HEX + 1];

	depot_write_name(name, number, ".json");
	if (depot_read_file(self->generations, name, MANIFEST_MAX, &text, err) < 0)
		return -1;
	depot_write_name(name, number, ".mac");
	if (depot_read_file(self->generations, name, 2 * MAC_HEX, &mac, err) < 0)
		return -1;
	depot_mac(self, number, &text, right);
	if (mac.size != MAC_HEX || sodium_memcmp(mac.data, right, MAC_HEX) != 0)
		return err_set(err, ERR_PARSE,
			       "it was changed, or is another workspace's");
	if (manifest_read(out, buf_str(&text), text.size, err) < 0)
		return -1;
	if (out->generation == number)
		return 0;
	manifest_finish(out);
	return err_set(err, ERR_PARSE, "it is another generation");
}

/* ---- what is kept ---- */

static void count_uses(struct depot *self, const struct generation *generation)
{
	for (size_t i = 0; i < generation->count; i++) {
		const struct chunk_ref *ref = &generation->chunks[i];
		long long uses = json_integer_of(self->uses, ref->hash, 0);

		self->bytes += uses ? 0 : ref->size;
		json_object_set_new(self->uses, ref->hash, json_integer(uses + 1));
	}
}

static struct generation *add(struct depot *self, uint64_t number)
{
	size_t at = self->count;

	self->kept = xrealloc(self->kept, (self->count + 1) * sizeof *self->kept);
	while (at && self->kept[at - 1].number > number)
		at--;
	memmove(self->kept + at + 1, self->kept + at,
		(self->count - at) * sizeof *self->kept);
	self->count++;
	self->kept[at] = (struct generation){.number = number};
	if (number > self->last)
		self->last = number;
	return &self->kept[at];
}

static void fill(struct depot *self, struct generation *generation,
		 struct manifest *manifest)
{
	generation->cell = manifest->cell;
	generation->bytes = manifest->bytes;
	generation->chunks = take(&manifest->chunks);
	generation->count = manifest->count;
	memcpy(generation->carries, manifest->carries, sizeof generation->carries);
	if (manifest->cell > self->last_cell)
		self->last_cell = manifest->cell;
	count_uses(self, generation);
}

void depot_add(struct depot *self, struct manifest *manifest)
{
	struct generation *generation = add(self, manifest->generation);
	const struct generation *before;

	generation->fresh = !self->head;
	generation->parent = self->head ? self->head : self->before;
	self->head = generation->number;
	before = depot_generation(self, generation->parent);
	generation->first = 1 + self->base;
	if (before && before->cell >= generation->first)
		generation->first = before->cell + 1;
	self->base = 0;
	fill(self, generation, manifest);
}

/* ---- head ---- */

int depot_write_head(struct depot *self, struct err *err)
{
	json_auto_t *root =
	    json_pack("{si sI sI sI sI sI s[] sO sO ss sI}", "v", 1, "head",
		      (json_int_t)self->head, "base", (json_int_t)self->base, "before",
		      (json_int_t)self->before, "last", (json_int_t)self->last,
		      "last_cell", (json_int_t)self->last_cell, "generations", "skip",
		      self->skip, "tried", self->tried, "origin", self->origin,
		      "origin_last", (json_int_t)self->origin_last);
	json_t *list = json_object_get(root, "generations");
	owned(buf_finish) struct buf text = {0}, file = {0};
	char mac[MAC_HEX + 1];

	for (size_t i = 0; i < self->count; i++) {
		const struct generation *generation = &self->kept[i];

		json_array_append_new(list,
				      json_pack("{sI sI sI sI sb ss}", "n",
						(json_int_t)generation->number, "first",
						(json_int_t)generation->first, "parent",
						(json_int_t)generation->parent, "cell",
						(json_int_t)generation->cell, "fresh",
						generation->fresh, "condemned",
						generation->condemned));
	}
	owned(free_text) char *json = json_dumps(root, JSON_COMPACT);
	buf_text(&text, json ? json : "");
	depot_mac(self, 0, &text, mac); /* no generation has number 0 */
	buf_printf(&file, "%s\n%s\n", mac, buf_str(&text));
	return depot_write_file(self->dir, "head", file.data, file.size, err);
}

static int parse_head(struct depot *self, struct buf *file, json_t **out,
		      struct err *err)
{
	owned(buf_finish) struct buf text = {0};
	char mac[MAC_HEX + 1];

	if (file->size < MAC_HEX + 2 || file->data[MAC_HEX] != '\n')
		return err_set(err, ERR_PARSE, "it is cut short");
	buf_add(&text, file->data + MAC_HEX + 1, file->size - MAC_HEX - 2);
	depot_mac(self, 0, &text, mac);
	if (sodium_memcmp(mac, file->data, MAC_HEX) != 0)
		return err_set(err, ERR_PARSE,
			       "it was changed, or is another workspace's");
	return json_parse(out, buf_str(&text), text.size, err);
}

static void take_head(struct depot *self, const json_t *root)
{
	const json_t *row;
	json_t *skip = json_object_get(root, "skip");
	json_t *tried = json_object_get(root, "tried");
	size_t i;

	self->head = (uint64_t)json_integer_of(root, "head", 0);
	self->before = (uint64_t)json_integer_of(root, "before", 0);
	self->last = (uint64_t)json_integer_of(root, "last", 0);
	self->last_cell = json_integer_of(root, "last_cell", 0);
	self->base = json_integer_of(root, "base", 0);
	self->origin_last = (uint64_t)json_integer_of(root, "origin_last", 0);
	snprintf(self->origin, sizeof self->origin, "%s",
		 json_text(root, "origin", ""));
	if (json_is_object(skip)) {
		json_decref(self->skip);
		self->skip = json_incref(skip);
	}
	if (json_is_object(tried)) {
		json_decref(self->tried);
		self->tried = json_incref(tried);
	}
	json_array_foreach(json_object_get(root, "generations"), i, row)
	{
		struct generation *generation =
		    add(self, (uint64_t)json_integer_of(row, "n", 0));

		generation->parent = (uint64_t)json_integer_of(row, "parent", 0);
		generation->cell = json_integer_of(row, "cell", 0);
		generation->first = json_integer_of(row, "first", 0);
		generation->fresh = json_is_true(json_object_get(row, "fresh"));
		snprintf(generation->condemned, sizeof generation->condemned, "%s",
			 json_text(row, "condemned", ""));
	}
}

/* False if there is none that can be believed. */
static bool read_head(struct depot *self, struct buf *words)
{
	owned(buf_finish) struct buf file = {0};
	struct err err;
	json_t *root = NULL;

	if (depot_read_file(self->dir, "head", HEAD_MAX, &file, &err) < 0) {
		if (err.kind == ERR_SYSTEM && err.os == ENOENT)
			return false;
	} else if (parse_head(self, &file, &root, &err) == 0) {
		take_head(self, root);
		json_decref(root);
		return true;
	}
	buf_printf(words,
		   "The record of the saved states cannot be used (%s); it was made "
		   "anew from the states themselves.\n",
		   err.msg);
	return false;
}

/* ---- generations on disk ---- */

/* Manifests that are right but not in the head: the head was lost, or power failed
 * between the two writings. */
static void add_unlisted(struct depot *self)
{
	owned(depot_numbers_finish) struct depot_numbers found = {0};

	depot_list_manifests(self->generations, &found);
	for (size_t i = 0; i < found.count; i++) {
		owned(manifest_finish) struct manifest manifest = {0};
		struct err err;

		if (!depot_generation(self, found.at[i]) &&
		    depot_read_manifest(self, found.at[i], &manifest, &err) == 0)
			depot_add(self, &manifest);
	}
}

static void load_listed(struct depot *self)
{
	for (size_t i = 0; i < self->count; i++) {
		owned(manifest_finish) struct manifest manifest = {0};
		struct err err;

		if (depot_read_manifest(self, self->kept[i].number, &manifest, &err) ==
		    0)
			fill(self, &self->kept[i], &manifest);
	}
}

/* ---- open and close ---- */

static int open_dir(int *out, int parent, const char *name, struct err *err)
{
	if (mkdirat(parent, name, 0700) < 0 && errno != EEXIST)
		return err_set(err, ERR_SYSTEM, "make %.150s", name);
	*out = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (*out < 0)
		return err_set(err, ERR_SYSTEM, "open %.150s", name);
	return 0;
}

static int open_dirs(struct depot *self, struct err *err)
{
	if (open_dir(&self->dir, AT_FDCWD, self->path, err) < 0 ||
	    open_dir(&self->chunks, self->dir, "chunks", err) < 0 ||
	    open_dir(&self->generations, self->dir, "generations", err) < 0 ||
	    open_dir(&self->spool, self->dir, "spool", err) < 0)
		return -1;
	self->lock = openat(self->dir, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (self->lock < 0 || flock(self->lock, LOCK_EX) < 0)
		return err_set(err, ERR_SYSTEM, "lock %.150s", self->path);
	return 0;
}

/* Cells that ran after the newest state was saved have their numbers too. */
static void take_last_cell(struct depot *self)
{
	json_auto_t *rows = depot_history(self, LAST_CELLS);
	const json_t *row;
	size_t i;

	json_array_foreach(rows, i, row)
	{
		long long cell = json_integer_of(row, "cell", 0);

		if (cell > self->last_cell)
			self->last_cell = cell;
	}
}

int depot_open(struct depot **out, const char *dir, const char *workspace,
	       const unsigned char key[DEPOT_KEY_SIZE],
	       const struct depot_limits *limits, struct buf *words, struct err *err)
{
	owned(depot_close) struct depot *self = xcalloc(1, sizeof *self);

	self->dir = self->chunks = self->generations = self->spool = self->lock = -1;
	self->limits = *limits;
	self->uses = json_object();
	self->skip = json_object();
	self->tried = json_object();
	memcpy(self->key, key, sizeof self->key);
	snprintf(self->workspace, sizeof self->workspace, "%s", workspace);
	snprintf(self->path, sizeof self->path, "%s", dir);
	if (open_dirs(self, err) < 0)
		return -1;
	read_head(self, words);
	load_listed(self);
	add_unlisted(self);
	take_last_cell(self);
	*out = take(&self);
	return 0;
}

void depot_close(struct depot **self)
{
	struct depot *dead = take(self);

	if (!dead)
		return;
	close_fd(&dead->chunks);
	close_fd(&dead->generations);
	close_fd(&dead->spool);
	close_fd(&dead->lock);
	close_fd(&dead->dir);
	for (size_t i = 0; i < dead->count; i++)
		free(dead->kept[i].chunks);
	free(dead->kept);
	json_decref(dead->uses);
	json_decref(dead->skip);
	json_decref(dead->tried);
	sodium_memzero(dead->key, sizeof dead->key);
	free(dead);
}

/* ---- what it says of them ---- */

uint64_t depot_head(const struct depot *self)
{
	return self->head;
}

uint64_t depot_last(const struct depot *self)
{
	return self->last;
}

long long depot_cell(const struct depot *self, uint64_t number)
{
	const struct generation *generation = depot_generation(self, number);

	return generation ? generation->cell : 0;
}

long long depot_base(const struct depot *self)
{
	return self->base;
}

long long depot_last_cell(const struct depot *self)
{
	return self->last_cell;
}

void depot_manifest_path(const struct depot *self, uint64_t generation, char *out,
			 size_t size)
{
	snprintf(out, size, "%s/generations/%llu.json", self->path,
		 (unsigned long long)generation);
}

/* ---- what did not come back ---- */

const json_t *depot_skipped(const struct depot *self, uint64_t generation)
{
	char number[32];

	depot_write_name(number, generation, "");
	return json_object_get(self->skip, number);
}

int depot_skip(struct depot *self, uint64_t generation, const char *name,
	       struct err *err)
{
	char number[32];

	depot_write_name(number, generation, "");
	json_t *names = json_object_get(self->skip, number);
	if (!names) {
		names = json_array();
		json_object_set_new(self->skip, number, names);
	}
	json_array_append_new(names, json_string_lossy(name, strlen(name)));
	return depot_write_head(self, err);
}

int depot_clear_proof(const struct depot *self, struct err *err)
{
	owned(free_text) char *path = xasprintf("%s/proof", self->path);

	sweep_tree(path);
	if (mkdir(path, 0700) < 0)
		return err_set(err, ERR_SYSTEM, "make %.150s", path);
	return 0;
}

int depot_note_tried(struct depot *self, uint64_t generation, const json_t *rows,
		     struct err *err)
{
	char number[32];

	depot_write_name(number, generation, "");
	if (!depot_generation(self, generation))
		return err_set(err, ERR_ARGUMENT, "there is no such saved state");
	json_object_set_new(self->tried, number,
			    rows ? json_deep_copy(rows) : json_array());
	return depot_write_head(self, err);
}

const json_t *depot_tried(const struct depot *self, uint64_t generation)
{
	char number[32];

	depot_write_name(number, generation, "");
	return json_object_get(self->tried, number);
}

int depot_condemn(struct depot *self, uint64_t number, const char *why, struct err *err)
{
	struct generation *generation = depot_generation(self, number);

	if (!generation)
		return err_set(err, ERR_ARGUMENT, "there is no such saved state");
	snprintf(generation->condemned, sizeof generation->condemned, "%s", why);
	return depot_write_head(self, err);
}

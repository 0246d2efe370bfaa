// SPDX-License-Identifier: MIT
#include "kernelmgr/manifest.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "wire/json.h"
#include "wire/mem.h"

enum { CHUNK_MIN = 4096 };

/* Chunk references while they are collected: a chunk that comes again is left out. */
struct gathering {
	struct manifest *manifest;
	json_t *seen; /* hash to size */
	size_t room;
	long long chunk_bytes;
};

static void gathering_finish(struct gathering *self)
{
	json_decref(self->seen);
}

static bool is_hash(const char *text)
{
	return text && strlen(text) == CHUNK_HASH_SIZE - 1 &&
	       strspn(text, "0123456789abcdef") == CHUNK_HASH_SIZE - 1;
}

static int add_chunk(struct gathering *self, const char *hash, uint32_t size,
		     struct err *err)
{
	struct manifest *manifest = self->manifest;
	const json_t *earlier = json_object_get(self->seen, hash);

	if (earlier)
		return json_integer_value(earlier) == size
			   ? 0
			   : err_set(err, ERR_PARSE, "chunk %s has two sizes", hash);
	if (manifest->count == MANIFEST_CHUNKS_MAX)
		return err_set(err, ERR_PARSE, "more than %d chunks",
			       MANIFEST_CHUNKS_MAX);
	if (manifest->count == self->room) {
		self->room = self->room ? self->room * 2 : 64;
		manifest->chunks =
		    xrealloc(manifest->chunks, self->room * sizeof *manifest->chunks);
	}
	struct chunk_ref *ref = &manifest->chunks[manifest->count++];
	memcpy(ref->hash, hash, CHUNK_HASH_SIZE);
	ref->size = size;
	manifest->bytes += size;
	json_object_set_new(self->seen, hash, json_integer(size));
	return 0;
}

/* One {"size", "chunks"}: each chunk is chunk_bytes long, the last what is left. */
static int add_piece(struct gathering *self, const json_t *piece, struct err *err)
{
	long long size = json_integer_of(piece, "size", -1);
	const json_t *chunks = json_object_get(piece, "chunks"), *chunk;
	size_t i;

	if (size < 0 || !json_is_array(chunks) ||
	    (long long)json_array_size(chunks) !=
		size / self->chunk_bytes + (size % self->chunk_bytes != 0))
		return err_set(err, ERR_PARSE, "a size and its chunks do not agree");
	json_array_foreach(chunks, i, chunk)
	{
		long long left = size - (long long)i * self->chunk_bytes;
		const char *hash = json_string_value(chunk);

		if (!is_hash(hash))
			return err_set(err, ERR_PARSE, "a chunk's name is no hash");
		if (add_chunk(
			self, hash,
			(uint32_t)(left < self->chunk_bytes ? left : self->chunk_bytes),
			err) < 0)
			return -1;
	}
	return 0;
}

static int gather(struct gathering *self, const json_t *root, struct err *err)
{
	const json_t *buffers = json_object_get(root, "buffers"), *buffer;
	size_t i;

	self->chunk_bytes = json_integer_of(root, "chunk_bytes", 0);
	if (self->chunk_bytes < CHUNK_MIN || self->chunk_bytes > CHUNK_MAX)
		return err_set(err, ERR_PARSE, "chunk_bytes is %lld, not %d to %d",
			       self->chunk_bytes, CHUNK_MIN, CHUNK_MAX);
	if (add_piece(self, json_object_get(root, "stream"), err) < 0)
		return -1;
	if (!json_is_array(buffers))
		return err_set(err, ERR_PARSE, "buffers is missing");
	json_array_foreach(buffers, i, buffer)
	{
		if (add_piece(self, buffer, err) < 0)
			return -1;
	}
	return 0;
}

/* The newest give way. */
static void add_carried(uint64_t carries[CARRIES_MAX], uint64_t number)
{
	size_t at = 0;

	while (at < CARRIES_MAX && carries[at] && carries[at] < number)
		at++;
	if (at == CARRIES_MAX || carries[at] == number)
		return;
	memmove(carries + at + 1, carries + at,
		(CARRIES_MAX - 1 - at) * sizeof *carries);
	carries[at] = number;
}

static void list_carried(const json_t *root, uint64_t carries[CARRIES_MAX])
{
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(root, "left_out"), i, row)
	{
		long long carried = json_integer_of(row, "carried", 0);

		if (carried > 0)
			add_carried(carries, (uint64_t)carried);
	}
}

int manifest_read(struct manifest *out, const char *text, size_t size, struct err *err)
{
	owned(manifest_finish) struct manifest self = {0};
	owned(gathering_finish) struct gathering gathering = {.manifest = &self,
							      .seen = json_object()};

	if (size > MANIFEST_MAX)
		return err_set(err, ERR_PARSE, "a manifest of %zu bytes", size);
	if (json_parse_within(&self.root, text, size, MANIFEST_TREE_MAX, err) < 0)
		return -1;
	if (json_integer_of(self.root, "v", 0) != 1)
		return err_set(err, ERR_PARSE, "not a manifest of version 1");
	long long generation = json_integer_of(self.root, "generation", 0);
	if (generation < 1)
		return err_set(err, ERR_PARSE, "generation is missing");
	self.generation = (uint64_t)generation;
	self.cell = json_integer_of(self.root, "cell", 0);
	list_carried(self.root, self.carries);
	if (!json_is_array(json_object_get(self.root, "entries")))
		return err_set(err, ERR_PARSE, "entries is missing");
	if (gather(&gathering, self.root, err) < 0)
		return -1;
	*out = self;
	self = (struct manifest){0};
	return 0;
}

void manifest_finish(struct manifest *self)
{
	json_decref(self->root);
	free(self->chunks);
	*self = (struct manifest){0};
}

// SPDX-License-Identifier: MIT
/* A depot for a branch: one generation of another depot, and what is told of it. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "kernelmgr/depot_impl.h"
#include "kernelmgr/sweep.h"

static int link_chunks(const struct depot *self, const struct manifest *manifest,
		       const struct depot *to, struct err *err)
{
	for (size_t i = 0; i < manifest->count; i++) {
		const char *hash = manifest->chunks[i].hash;

		if (linkat(self->chunks, hash, to->chunks, hash, 0) < 0 &&
		    errno != EEXIST)
			return err_set(err, ERR_SYSTEM, "copy chunk %s", hash);
	}
	return 0;
}

static int copy_generation(const struct depot *self, uint64_t number, struct depot *to,
			   struct err *err)
{
	owned(manifest_finish) struct manifest manifest = {0};
	owned(buf_finish) struct buf text = {0};
	char name[32];
	json_t *skip, *tried;

	depot_write_name(name, number, ".json");
	if (depot_read_manifest(self, number, &manifest, err) < 0 ||
	    link_chunks(self, &manifest, to, err) < 0 ||
	    depot_read_file(self->generations, name, MANIFEST_MAX, &text, err) < 0 ||
	    depot_put_manifest(to, number, &text, err) < 0)
		return -1;
	depot_add(to, &manifest);
	depot_write_name(name, number, "");
	if ((skip = json_object_get(self->skip, name)))
		json_object_set_new(to->skip, name, json_deep_copy(skip));
	if ((tried = json_object_get(self->tried, name)))
		json_object_set_new(to->tried, name, json_deep_copy(tried));
	return 0;
}

/* Names whose value could not be loaded have it in an older one. */
static int copy_generations(const struct depot *self, uint64_t number, struct depot *to,
			    struct err *err)
{
	const struct generation *generation = depot_generation(self, number);

	for (size_t i = 0; generation && i < CARRIES_MAX && generation->carries[i]; i++)
		if (depot_generation(self, generation->carries[i]) &&
		    copy_generation(self, generation->carries[i], to, err) < 0)
			return -1;
	return number ? copy_generation(self, number, to, err) : 0;
}

static int copy_cells(const struct depot *self, const struct depot *to, struct err *err)
{
	owned(buf_finish) struct buf text = {0};

	if (depot_read_file(self->dir, "cells.jsonl", CELLS_MAX, &text, err) < 0)
		return err->kind == ERR_SYSTEM && err->os == ENOENT ? 0 : -1;
	return depot_write_file(to->dir, "cells.jsonl", text.data, text.size, err);
}

int depot_branch(const struct depot *self, uint64_t generation,
		 const struct depot_branch *branch, struct err *err)
{
	owned(depot_close) struct depot *to = NULL;
	owned(buf_finish) struct buf words = {0};

	sweep_tree(branch->dir);
	if (depot_open(&to, branch->dir, branch->workspace, self->key, &self->limits,
		       &words, err) < 0 ||
	    copy_generations(self, generation, to, err) < 0 ||
	    copy_cells(self, to, err) < 0)
		return -1;
	to->last_cell = self->last_cell;
	to->base = self->base;
	to->origin_last = generation;
	snprintf(to->origin, sizeof to->origin, "%s", branch->origin);
	return depot_write_head(to, err);
}

const char *depot_origin(const struct depot *self, uint64_t generation)
{
	return generation && generation <= self->origin_last ? self->origin : "";
}

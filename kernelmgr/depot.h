/*
 * depot - one workspace's generations on disk, as the store's helper keeps them.  All
 * calls block: they run in vivarium-store, never in the daemon.
 *
 *   chunks/HASH           what generations are made of, named by its xxh3-128
 *   generations/N.json    a manifest as its kernel wrote it; N.mac its keyed hash
 *   head                  which generations there are, and which is in force; keyed too
 *   cells.jsonl           what ran when, for people
 *   spool/                where the kernel writes; nothing in it is believed unchecked
 *   proof/                the same of a kernel that only tries to load a generation
 *
 * Order of writing: chunks, N.mac, N.json, head; each synced before the next, so that
 * what is there under its name is whole, whenever the machine stops.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef KERNELMGR_DEPOT_H
#define KERNELMGR_DEPOT_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/buf.h"
#include "wire/err.h"

enum { DEPOT_KEY_SIZE = 32 };

struct depot_limits {
	size_t keep;        /* generations; the one in force comes on top */
	uint64_t max_bytes; /* of all chunks; 0: no limit */
};

struct depot;

/* Makes what is missing in dir and reads what is there.  workspace and key go into
 * every keyed hash, so that nothing of another workspace is taken for ours.  Appends
 * whole sentences to words about what was wrong.  Waits for another process's lock. */
int depot_open(struct depot **out, const char *dir, const char *workspace,
	       const unsigned char key[DEPOT_KEY_SIZE],
	       const struct depot_limits *limits, struct buf *words,
	       struct err *err) must_check;
void depot_close(struct depot **self);

/* Takes spool/N.json and its chunks in and makes it the one in force.  After a failure
 * everything is as before. */
int depot_adopt(struct depot *self, uint64_t generation, struct err *err) must_check;

/* Takes in what is whole in the spool, then empties it: for when its kernel is gone. */
void depot_take_spool(struct depot *self, struct buf *words);

/* Number of the newest one that is whole, going back from the one in force; 0 when
 * there is none.  Checks sizes of all chunks and, for about 0.3 s, their hashes.
 * Appends sentences about those that are not whole to words.  The one found is in force
 * then. */
uint64_t depot_choose(struct depot *self, struct buf *words);
/* The one in force; 0 none. */
uint64_t depot_head(const struct depot *self);
/* Highest number ever used. */
uint64_t depot_last(const struct depot *self);
/* Cell after which it was saved; 0 unknown. */
long long depot_cell(const struct depot *self, uint64_t generation);
/* Highest cell number in any generation or in cells.jsonl. */
long long depot_last_cell(const struct depot *self);
/* Where its manifest lies. */
void depot_manifest_path(const struct depot *self, uint64_t generation, char *out,
			 size_t size);
/* The generations, as an array, in which it says that names are which it could not
 * load, and whose manifests are right.  Caller owns return value. */
json_t *depot_older(const struct depot *self, uint64_t generation);
/* The names in it that crashed an earlier restore: an array, borrowed, perhaps NULL. */
const json_t *depot_skipped(const struct depot *self, uint64_t generation);
/* Remembers that restoring this name ended the kernel. */
int depot_skip(struct depot *self, uint64_t generation, const char *name,
	       struct err *err) must_check;
/* Makes DIR/proof empty, for a kernel that only tries to load a generation. */
int depot_clear_proof(const struct depot *self, struct err *err) must_check;
/* Remembers that it was tried: rows, {"name", "what", "why"} each, of what did not
 * load.  Borrows rows. */
int depot_note_tried(struct depot *self, uint64_t generation, const json_t *rows,
		     struct err *err) must_check;
/* Those rows, borrowed; NULL: it was not tried. */
const json_t *depot_tried(const struct depot *self, uint64_t generation);
/* Marks a generation as one that cannot be restored: depot_choose() passes over it. */
int depot_condemn(struct depot *self, uint64_t generation, const char *why,
		  struct err *err) must_check;

/* Which generation holds the state after that cell; if that cell has none of its own,
 * the newest one up to it, in the line of the one in force first, then in any.  Fails
 * with what there is. */
int depot_find_cell(const struct depot *self, long long cell, uint64_t *generation,
		    struct err *err) must_check;
/* Which one holds the state before the last so many cells of this line; last_cell is
 * the last that ran, perhaps without a generation of its own.  *undone: how many cells
 * that takes back, more than asked where some between have no state.  Fails with what
 * there is. */
int depot_find_back(const struct depot *self, size_t cells, long long last_cell,
		    uint64_t *generation, size_t *undone, struct err *err) must_check;
/* Puts an older one in force; later ones stay until their turn to be dropped.  0: none
 * is, the next generation starts from an empty namespace. */
int depot_select(struct depot *self, uint64_t generation, struct err *err) must_check;

/* The last cell that was no matter when the state in force was chosen; 0: none was. */
long long depot_base(const struct depot *self);

/* Appends a line to cells.jsonl.  line is borrowed. */
void depot_note(struct depot *self, const json_t *line);
/* The last cells, oldest first: [{"cell", "time", "ms", "outcome", "code",
 * "generation", "added", "changed", "removed", "bytes",
 * "verified": it was tried, "not_loading": [names]}].  Caller owns. */
json_t *depot_history(const struct depot *self, size_t cells);
/* {"names": [{"name", "type", "bytes", "cell", "imported"}], "cell", "time", "bytes"}
 * of one generation.  Caller owns. */
int depot_contents(const struct depot *self, uint64_t generation, json_t **out,
		   struct err *err) must_check;
/* {"added": [...], "changed": [...], "removed": [...]}, each {"name", "type", "bytes"}.
 * Caller owns. */
int depot_diff(const struct depot *self, uint64_t from, uint64_t to, json_t **out,
	       struct err *err) must_check;
struct depot_branch {
	const char *dir, *workspace; /* of the new one; what is there is removed */
	const char *origin;          /* where the files of this workspace are */
};
/* Makes a depot for a branch and copies one generation (0: none) into it, with the
 * list of cells; chunks are hard links. */
int depot_branch(const struct depot *self, uint64_t generation,
		 const struct depot_branch *branch, struct err *err) must_check;
/* Where the files of this generation's session were, if it comes from another
 * workspace; else "". */
const char *depot_origin(const struct depot *self, uint64_t generation);

#endif

// SPDX-License-Identifier: MIT
/*
 * vivarium-store - keeps one workspace's generations, beside the daemon: what it does
 * blocks (hashing, syncing), and the daemon must not.
 *
 * Descriptor 0 is a stream socket: jobs in, one answer each, as JSON objects with a
 * newline after each.  The first job is {"do": "start", ...}.  An answer has "error"
 * when the job failed, and "words" when there is something to tell the user.  Ends with
 * its socket.
 */
#include <grp.h>
#include <signal.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "kernelmgr/depot.h"
#include "kernelmgr/landlock.h"
#include "wire/json.h"
#include "wire/mem.h"

enum { LINE_MAX_BYTES = 1 << 20, HISTORY_CELLS = 200 };

struct store_job {
	json_t *job; /* owned */
	struct depot *depot;
	json_t *answer;
	struct buf words;
};

static struct depot *the_depot;
static struct buf opening_words; /* told with the first kernel's beginning */

static uint64_t number_of(const json_t *job, const char *key)
{
	long long number = json_integer_of(job, key, 0);

	return number > 0 ? (uint64_t)number : 0;
}

/* Which looks at its own process for what was leaked. */
static int allow_sanitizer(int rules)
{
#ifdef __SANITIZE_ADDRESS__
	return landlock_allow(rules, "/proc/self", LANDLOCK_LOOK);
#else
	(void)rules;
	return 0;
#endif
}

/* What comes from the kernel is read here: so this process can do little, too.  In tier
 * U it is the kernel's user, whose files these are. */
static int give_up_rights(const json_t *job, struct err *err)
{
	uid_t owner = (uid_t)number_of(job, "owner");
	owned(free_text) char *above = xstrdup(json_text(job, "dir", ""));
	int rules;

	if (owner && (setgroups(0, NULL) < 0 || setresgid(owner, owner, owner) < 0 ||
		      setresuid(owner, owner, owner) < 0))
		return err_set(err, ERR_SYSTEM, "become user %u", (unsigned)owner);
	prctl(PR_SET_DUMPABLE, 0); /* it holds the key */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_set(err, ERR_SYSTEM, "set no_new_privs");
	if (landlock_abi() == 0)
		return 0;
	*strrchr(above, '/') = '\0'; /* a branch is a directory beside it */
	rules = landlock_begin(true);
	if (rules < 0 || landlock_allow(rules, above, LANDLOCK_CHANGE) < 0 ||
	    allow_sanitizer(rules) < 0 || landlock_enter(rules) < 0)
		return err_set(err, ERR_SYSTEM, "enter Landlock");
	return 0;
}

static int do_start(struct store_job *self, struct err *err)
{
	unsigned char key[DEPOT_KEY_SIZE];
	size_t size;
	const struct depot_limits limits = {
	    .keep = json_count_of(self->job, "keep"),
	    .max_bytes = number_of(self->job, "max_bytes"),
	};
	const char *hex = json_text(self->job, "key", "");

	if (sodium_hex2bin(key, sizeof key, hex, strlen(hex), NULL, &size, NULL) < 0 ||
	    size != sizeof key)
		return err_set(err, ERR_ARGUMENT, "key is not %zu bytes", sizeof key);
	if (give_up_rights(self->job, err) < 0)
		return -1;
	return depot_open(&the_depot, json_text(self->job, "dir", ""),
			  json_text(self->job, "workspace", ""), key, &limits,
			  &opening_words, err);
}

/* What a kernel needs to know to begin with a generation, or with none. */
static void describe_begin(struct store_job *self, uint64_t generation)
{
	char path[4096 + 64];
	const json_t *skip = depot_skipped(self->depot, generation);

	depot_manifest_path(self->depot, generation, path, sizeof path);
	json_object_update_new(
	    self->answer,
	    json_pack("{sI sI sI sI sI ss ss}", "generation", (json_int_t)generation,
		      "cell", (json_int_t)depot_cell(self->depot, generation), "base",
		      (json_int_t)depot_base(self->depot), "last",
		      (json_int_t)depot_last(self->depot), "last_cell",
		      (json_int_t)depot_last_cell(self->depot), "manifest",
		      generation ? path : "", "moved_from",
		      depot_origin(self->depot, generation)));
	json_object_set_new(self->answer, "older",
			    depot_older(self->depot, generation));
	if (skip)
		json_object_set(self->answer, "skip", (json_t *)(uintptr_t)skip);
}

static int do_begin(struct store_job *self, struct err *err)
{
	bool fresh = json_is_true(json_object_get(self->job, "fresh"));

	buf_add(&self->words, buf_str(&opening_words), opening_words.size);
	buf_finish(&opening_words);
	depot_take_spool(self->depot, &self->words);
	if (fresh && depot_select(self->depot, 0, err) < 0)
		return -1;
	describe_begin(self, fresh ? 0 : depot_choose(self->depot, &self->words));
	return 0;
}

static int do_adopt(struct store_job *self, struct err *err)
{
	uint64_t generation = number_of(self->job, "generation");

	json_object_set_new(self->answer, "generation",
			    json_integer((json_int_t)generation));
	if (depot_adopt(self->depot, generation, err) < 0)
		return -1;
	json_object_set_new(
	    self->answer, "cell",
	    json_integer((json_int_t)depot_cell(self->depot, generation)));
	return 0;
}

static int do_skip(struct store_job *self, struct err *err)
{
	uint64_t generation = number_of(self->job, "generation");
	const char *name = json_text(self->job, "name", "");

	return name[0]
		   ? depot_skip(self->depot, generation, name, err)
		   : depot_condemn(self->depot, generation,
				   json_text(self->job, "why", "it is damaged"), err);
}

/* What a kernel needs to try the newest generation; "generation" is 0 if there is
 * nothing to try. */
static int do_try(struct store_job *self, struct err *err)
{
	uint64_t generation = number_of(self->job, "generation");
	json_t *contents;

	if (depot_head(self->depot) != generation ||
	    depot_tried(self->depot, generation)) {
		describe_begin(self, 0);
		return 0;
	}
	if (depot_clear_proof(self->depot, err) < 0 ||
	    depot_contents(self->depot, generation, &contents, err) < 0)
		return -1;
	json_object_set(self->answer, "bytes", json_object_get(contents, "bytes"));
	json_decref(contents);
	describe_begin(self, generation);
	return 0;
}

static int do_tried(struct store_job *self, struct err *err)
{
	uint64_t generation = number_of(self->job, "generation");
	const char *culprit = json_text(self->job, "culprit", NULL);

	if (depot_note_tried(self->depot, generation,
			     json_object_get(self->job, "rows"), err) < 0)
		return -1;
	return culprit ? depot_skip(self->depot, generation, culprit, err) : 0;
}

static int do_cell(struct store_job *self, struct err *err)
{
	const json_t *line = json_object_get(self->job, "line");

	(void)err;
	if (!json_is_true(json_object_get(self->job, "unless_known")) ||
	    json_integer_of(line, "cell", 0) > depot_last_cell(self->depot))
		depot_note(self->depot, line);
	return 0;
}

/* Puts it in force and tells what is in it. */
static int select_and_tell(struct store_job *self, uint64_t generation, struct err *err)
{
	json_t *contents;

	if (depot_contents(self->depot, generation, &contents, err) < 0 ||
	    depot_select(self->depot, generation, err) < 0)
		return -1;
	json_object_update_new(self->answer, contents);
	return 0;
}

/* "look": only whether there is such a state, while a kernel lives; else it is put in
 * force. */
static int go(struct store_job *self,
	      int (*find)(struct store_job *, uint64_t *, struct err *),
	      struct err *err)
{
	bool look = json_is_true(json_object_get(self->job, "look"));
	uint64_t generation;

	if (!look)
		depot_take_spool(self->depot, &self->words);
	if (find(self, &generation, err) < 0)
		return -1;
	return look ? 0 : select_and_tell(self, generation, err);
}

static int find_back(struct store_job *self, uint64_t *generation, struct err *err)
{
	size_t undone, cells = json_count_of(self->job, "cells");

	if (depot_find_back(self->depot, cells,
			    json_integer_of(self->job, "last_cell", 0), generation,
			    &undone, err) < 0)
		return -1;
	json_object_set_new(self->answer, "undone", json_integer((json_int_t)undone));
	json_object_set_new(self->answer, "asked", json_integer((json_int_t)cells));
	return 0;
}

static int find_cell(struct store_job *self, uint64_t *generation, struct err *err)
{
	return depot_find_cell(self->depot, json_integer_of(self->job, "cell", 0),
			       generation, err);
}

static int do_undo(struct store_job *self, struct err *err)
{
	return go(self, find_back, err);
}

static int do_restore(struct store_job *self, struct err *err)
{
	return go(self, find_cell, err);
}

/* With a kernel at work the spool is its own. */
static int do_branch(struct store_job *self, struct err *err)
{
	const struct depot_branch branch = {
	    .dir = json_text(self->job, "dir", ""),
	    .workspace = json_text(self->job, "workspace", ""),
	    .origin = json_text(self->job, "origin", ""),
	};
	json_t *contents;

	if (!json_is_true(json_object_get(self->job, "live")))
		depot_take_spool(self->depot, &self->words);
	uint64_t generation = depot_choose(self->depot, &self->words);
	if (depot_branch(self->depot, generation, &branch, err) < 0)
		return -1;
	if (!generation)
		return 0;
	if (depot_contents(self->depot, generation, &contents, err) < 0)
		return -1;
	json_object_update_new(self->answer, contents);
	return 0;
}

static int do_history(struct store_job *self, struct err *err)
{
	size_t cells = json_count_of(self->job, "cells");

	(void)err;
	json_object_set_new(
	    self->answer, "rows",
	    depot_history(self->depot, cells < HISTORY_CELLS ? cells : HISTORY_CELLS));
	return 0;
}

static int do_diff(struct store_job *self, struct err *err)
{
	uint64_t from, to;
	json_t *diff;

	if (depot_find_cell(self->depot, json_integer_of(self->job, "from", 0), &from,
			    err) < 0 ||
	    depot_find_cell(self->depot, json_integer_of(self->job, "to", 0), &to,
			    err) < 0 ||
	    depot_diff(self->depot, from, to, &diff, err) < 0)
		return -1;
	json_object_update_new(self->answer, diff);
	return 0;
}

static const struct {
	const char *name;
	int (*run)(struct store_job *self, struct err *err);
} jobs[] = {
    {"start", do_start},   {"begin", do_begin},     {"adopt", do_adopt},
    {"skip", do_skip},     {"cell", do_cell},       {"undo", do_undo},
    {"diff", do_diff},     {"restore", do_restore}, {"history", do_history},
    {"branch", do_branch}, {"try", do_try},         {"tried", do_tried},
};

static int run(struct store_job *self, const char *line, size_t size, struct err *err)
{
	if (json_parse(&self->job, line, size, err) < 0)
		return -1;
	const char *name = json_text(self->job, "do", "");
	for (size_t i = 0; i < COUNT_OF(jobs); i++)
		if (strcmp(jobs[i].name, name) == 0)
			return self->depot || jobs[i].run == do_start
				   ? jobs[i].run(self, err)
				   : err_set(err, ERR_ARGUMENT, "not started");
	return err_set(err, ERR_ARGUMENT, "no job '%.20s'", name);
}

static int answer(json_t *text)
{
	owned(free_text) char *json = json_dumps(text, JSON_COMPACT);
	owned(free_text) char *line = xasprintf("%s\n", json ? json : "{}");
	size_t size = strlen(line), at = 0;

	while (at < size) {
		ssize_t len = write(STDIN_FILENO, line + at, size - at);

		if (len <= 0)
			return -1;
		at += (size_t)len;
	}
	return 0;
}

static int serve(const char *line, size_t size)
{
	struct store_job self = {.depot = the_depot, .answer = json_object()};
	struct err err;

	if (run(&self, line, size, &err) < 0) {
		json_object_set_new(self.answer, "error", json_string(err.msg));
		json_object_set_new(self.answer, "kind", json_integer(err.kind));
	}
	if (self.words.size)
		json_object_set_new(
		    self.answer, "words",
		    json_string_lossy(self.words.data, self.words.size));
	int done = answer(self.answer);
	json_decref(self.answer);
	json_decref(self.job);
	buf_finish(&self.words);
	return done;
}

int main(void)
{
	owned(buf_finish) struct buf input = {0};

	prctl(PR_SET_NAME, "vivarium-store");
	signal(SIGPIPE, SIG_IGN);
	if (sodium_init() < 0)
		return 1;
	for (;;) {
		char *end;

		buf_reserve(&input, 16 * 1024);
		ssize_t len = read(STDIN_FILENO, input.data + input.size, 16 * 1024);
		if (len <= 0)
			break;
		input.size += (size_t)len;
		input.data[input.size] = '\0';
		while ((end = memchr(input.data, '\n', input.size))) {
			if (serve(input.data, (size_t)(end - input.data)) < 0)
				break;
			buf_drop(&input, (size_t)(end - input.data) + 1);
		}
		if (input.size > LINE_MAX_BYTES)
			break;
	}
	depot_close(&the_depot);
	return 0;
}

// SPDX-License-Identifier: MIT
/* A depot takes generations in, keeps the right ones, and believes no file that it did
 * not key itself. */
#include "kernelmgr/depot.h"

#include "testing.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "kernelmgr/sweep.h"
#include "wire/mem.h"

static const unsigned char key[DEPOT_KEY_SIZE] = {1, 2, 3};
static char root[64];

static int set_up(void **state)
{
	(void)state;
	snprintf(root, sizeof root, "/tmp/test_depot.XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	sweep_tree(root);
	return 0;
}

static char *at(const char *name)
{
	static char path[256];

	snprintf(path, sizeof path, "%s/%s", root, name);
	return path;
}

static void put(const char *name, const void *data, size_t size)
{
	FILE *file = fopen(at(name), "w");

	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, size, file), size);
	fclose(file);
}

static void hash_of(const void *data, size_t size, char out[33])
{
	XXH128_hash_t value = XXH3_128bits(data, size);

	snprintf(out, 33, "%016llx%016llx", (unsigned long long)value.high64,
		 (unsigned long long)value.low64);
}

/* What a kernel would write for a namespace whose stream is this text; left_out: rows
 * of names that it could not load. */
static void spool_with(unsigned generation, int cell, const char *text,
		       const char *left_out)
{
	char hash[33], name[64];
	owned(free_text) char *manifest = NULL;

	hash_of(text, strlen(text), hash);
	snprintf(name, sizeof name, "spool/%s", hash);
	put(name, text, strlen(text));
	manifest = xasprintf(
	    "{\"v\":1,\"generation\":%u,\"cell\":%d,\"time\":1,\"chunk_bytes\":65536,"
	    "\"stream\":{\"size\":%zu,\"chunks\":[\"%s\"]},\"buffers\":[],\"entries\":["
	    "{\"name\":\"x\",\"type\":\"str\",\"bytes\":%zu,\"hash\":\"%s\"}],"
	    "\"changes\":{\"added\":[\"x\"],\"changed\":[],\"removed\":[]},"
	    "\"left_out\":[%s]}",
	    generation, cell, strlen(text), hash, strlen(text), hash, left_out);
	snprintf(name, sizeof name, "spool/%u.json", generation);
	put(name, manifest, strlen(manifest));
}

static void spool(unsigned generation, int cell, const char *text)
{
	spool_with(generation, cell, text, "");
}

static const struct depot_limits limits = {.keep = 3};

static struct depot *open_it(const char *workspace, struct buf *words)
{
	struct depot *depot;
	struct err err = {0};

	if (depot_open(&depot, root, workspace, key, &limits, words, &err) < 0)
		fail_msg("%s", err.msg);
	return depot;
}

static void adopt(struct depot *depot, unsigned generation)
{
	struct err err = {0};

	if (depot_adopt(depot, generation, &err) < 0)
		fail_msg("%s", err.msg);
}

CASE(the_newest_of_what_was_adopted_is_in_force)
{
	owned(buf_finish) struct buf words = {0};
	owned(depot_close) struct depot *depot = open_it("w", &words);

	assert_int_equal(depot_choose(depot, &words), 0);
	spool(1, 1, "one");
	adopt(depot, 1);
	spool(2, 2, "two");
	adopt(depot, 2);
	assert_int_equal(depot_choose(depot, &words), 2);
	assert_int_equal(depot_cell(depot, 2), 2);
	assert_string_equal(buf_str(&words), "");
	depot_close(&depot);
	depot = open_it("w", &words);
	assert_int_equal(depot_choose(depot, &words), 2);
	assert_int_equal(depot_last_cell(depot), 2);
	assert_string_equal(buf_str(&words), "");
}

CASE(only_so_many_are_kept_and_chunks_of_none_go)
{
	owned(buf_finish) struct buf words = {0};
	owned(depot_close) struct depot *depot = open_it("w", &words);
	char hash[33], name[64];

	for (unsigned i = 1; i <= 5; i++) {
		char text[16];

		snprintf(text, sizeof text, "text %u", i);
		spool(i, (int)i, text);
		adopt(depot, i);
		hash_of(text, strlen(text), hash);
		snprintf(name, sizeof name, "chunks/%s", hash);
		assert_int_equal(access(at(name), R_OK), 0);
	}
	hash_of("text 2", 6, hash);
	snprintf(name, sizeof name, "chunks/%s", hash);
	assert_int_not_equal(access(at(name), F_OK), 0);
	assert_int_not_equal(access(at("generations/2.json"), F_OK), 0);
	assert_int_equal(access(at("generations/3.json"), F_OK), 0);
}

static bool is_kept(unsigned generation)
{
	char name[64];

	snprintf(name, sizeof name, "generations/%u.json", generation);
	return access(at(name), F_OK) == 0;
}

CASE(what_could_not_be_loaded_keeps_its_generations)
{
	owned(buf_finish) struct buf words = {0};
	owned(depot_close) struct depot *depot = open_it("w", &words);

	spool(1, 1, "one");
	adopt(depot, 1);
	spool_with(2, 2, "two", "{\"name\":\"a\",\"carried\":1}");
	adopt(depot, 2);
	for (unsigned i = 3; i <= 6; i++) {
		char text[16];

		snprintf(text, sizeof text, "text %u", i);
		spool_with(
		    i, (int)i, text,
		    "{\"name\":\"a\",\"carried\":2},{\"name\":\"b\",\"carried\":2},"
		    "{\"name\":\"c\",\"carried\":1}");
		adopt(depot, i);
	}
	assert_true(is_kept(1) && is_kept(2) && is_kept(6));
	assert_false(is_kept(3) || is_kept(4) || is_kept(5));
	/* Naming more of them does not get a kernel over the limits. */
	spool_with(7, 7, "text 7",
		   "{\"name\":\"a\",\"carried\":1},{\"name\":\"b\",\"carried\":2},"
		   "{\"name\":\"c\",\"carried\":6}");
	adopt(depot, 7);
	assert_true(is_kept(1) && is_kept(6) && is_kept(7));
	assert_false(is_kept(2));
	spool(8, 8, "text 8");
	adopt(depot, 8);
	assert_false(is_kept(1));
}

CASE(a_whole_generation_in_the_spool_survives_its_kernel)
{
	owned(buf_finish) struct buf words = {0};
	owned(depot_close) struct depot *depot = open_it("w", &words);

	spool(1, 1, "one");
	spool(2, 2, "two");
	put("spool/3.json.partial", "{", 1);
	depot_close(&depot);
	depot = open_it("w", &words);
	assert_int_equal(depot_choose(depot, &words), 0); /* a kernel may still write */
	depot_take_spool(depot, &words);
	assert_int_equal(depot_choose(depot, &words), 2);
	assert_int_not_equal(access(at("spool/3.json.partial"), F_OK), 0);
	assert_string_equal(buf_str(&words), "");
}

CASE(what_is_wrong_in_the_spool_is_refused)
{
	owned(buf_finish) struct buf words = {0};
	owned(depot_close) struct depot *depot = open_it("w", &words);
	struct err err = {0};
	char hash[33], name[64];

	spool(1, 1, "one");
	hash_of("one", 3, hash);
	snprintf(name, sizeof name, "spool/%s", hash);
	put(name, "onf", 3);
	assert_int_equal(depot_adopt(depot, 1, &err), -1);
	assert_non_null(strstr(err.msg, "other content"));
	put(name, "on", 2);
	assert_int_equal(depot_adopt(depot, 1, &err), -1);
	unlink(at(name));
	assert_int_equal(symlink("/etc/passwd", at(name)), 0);
	assert_int_equal(depot_adopt(depot, 1, &err), -1);
	put("spool/2.json", "{\"v\":1", 6);
	assert_int_equal(depot_adopt(depot, 2, &err), -1);
	spool(3, 1, "three");
	owned(free_text) char *from = xstrdup(at("spool/3.json"));
	assert_int_equal(rename(from, at("spool/4.json")), 0);
	assert_int_equal(depot_adopt(depot, 4, &err), -1);
	assert_int_equal(depot_choose(depot, &words), 0);
}

static void flip(const char *name, long offset)
{
	chmod(at(name), 0600);
	FILE *file = fopen(at(name), "r+");
	int c;

	assert_non_null(file);
	fseek(file, offset, SEEK_SET);
	c = fgetc(file);
	fseek(file, offset, SEEK_SET);
	fputc(c ^ 1, file);
	fclose(file);
}

static void expect_older(struct depot *depot, uint64_t generation, const char *numbers)
{
	json_auto_t *older = depot_older(depot, generation);
	owned(free_text) char *text = json_dumps(older, JSON_COMPACT);

	assert_string_equal(text, numbers);
}

CASE(what_could_not_be_loaded_is_looked_for_in_right_generations_only)
{
	owned(buf_finish) struct buf words = {0};
	owned(depot_close) struct depot *depot = open_it("w", &words);
	struct err err = {0};

	spool(1, 1, "one");
	adopt(depot, 1);
	spool(2, 2, "two");
	adopt(depot, 2);
	spool_with(3, 3, "three",
		   "{\"name\":\"a\",\"carried\":2},{\"name\":\"b\",\"carried\":1},"
		   "{\"name\":\"c\",\"carried\":9},{\"name\":\"d\",\"carried\":-1}");
	adopt(depot, 3);
	expect_older(depot, 3, "[1,2]");
	expect_older(depot, 2, "[]");
	flip("generations/1.json", 30);
	expect_older(depot, 3, "[2]");
	assert_int_equal(depot_condemn(depot, 2, "it is damaged", &err), 0);
	expect_older(depot, 3, "[]");
}

static void two_generations(void)
{
	owned(buf_finish) struct buf words = {0};
	owned(depot_close) struct depot *depot = open_it("w", &words);

	spool(1, 1, "one");
	adopt(depot, 1);
	spool(2, 2, "two");
	adopt(depot, 2);
}

static void expect_the_older(const char *because)
{
	owned(buf_finish) struct buf words = {0};
	owned(depot_close) struct depot *depot = open_it("w", &words);

	assert_int_equal(depot_choose(depot, &words), 1);
	if (!strstr(buf_str(&words), because))
		fail_msg("%s", buf_str(&words));
	assert_non_null(strstr(buf_str(&words), "after cell 2"));
}

CASE(a_flipped_byte_in_a_chunk_is_noticed)
{
	char hash[33], name[64];

	two_generations();
	hash_of("two", 3, hash);
	snprintf(name, sizeof name, "chunks/%s", hash);
	flip(name, 1);
	expect_the_older("other content");
}

CASE(a_missing_or_shorter_chunk_is_noticed)
{
	char hash[33], name[64];

	two_generations();
	hash_of("two", 3, hash);
	snprintf(name, sizeof name, "chunks/%s", hash);
	chmod(at(name), 0600);
	assert_int_equal(truncate(at(name), 1), 0);
	expect_the_older("has 1 bytes");
}

CASE(a_flipped_byte_in_a_manifest_is_noticed)
{
	two_generations();
	flip("generations/2.json", 30);
	expect_the_older("changed");
}

CASE(an_older_manifest_under_the_newest_name_is_noticed)
{
	two_generations();
	for (int i = 0; i < 2; i++) {
		static const char *const ends[] = {"json", "mac"};
		char from[256], to[256];

		snprintf(from, sizeof from, "%s/generations/1.%s", root, ends[i]);
		snprintf(to, sizeof to, "%s/generations/2.%s", root, ends[i]);
		unlink(to);
		assert_int_equal(link(from, to), 0);
	}
	expect_the_older("changed");
}

CASE(a_missing_manifest_is_told)
{
	two_generations();
	unlink(at("generations/2.json"));
	expect_the_older("2.json");
}

CASE(another_workspaces_generations_are_not_ours)
{
	owned(buf_finish) struct buf words = {0};
	owned(depot_close) struct depot *depot = NULL;

	two_generations();
	depot = open_it("other", &words);
	assert_int_equal(depot_choose(depot, &words), 0);
	assert_non_null(strstr(buf_str(&words), "changed"));
}

CASE(a_lost_head_is_made_anew)
{
	owned(buf_finish) struct buf words = {0};
	owned(depot_close) struct depot *depot = NULL;

	two_generations();
	flip("head", 70);
	depot = open_it("w", &words);
	assert_int_equal(depot_choose(depot, &words), 2);
	assert_non_null(strstr(buf_str(&words), "made anew"));
}

CASE(going_back_follows_the_line)
{
	owned(buf_finish) struct buf words = {0};
	owned(depot_close) struct depot *depot = open_it("w", &words);
	struct err err = {0};
	uint64_t found = 0;
	size_t undone = 0;

	spool(1, 1, "one");
	adopt(depot, 1);
	spool(2, 2, "two");
	adopt(depot, 2);
	assert_int_equal(depot_find_back(depot, 1, 2, &found, &undone, &err), 0);
	assert_int_equal(found, 1);
	/* Cell 3 ran but was not saved: one back is the state after cell 2. */
	assert_int_equal(depot_find_back(depot, 1, 3, &found, &undone, &err), 0);
	assert_int_equal(found, 2);
	assert_int_equal(depot_select(depot, 1, &err), 0);
	spool(3, 3, "three");
	adopt(depot, 3);
	assert_int_equal(depot_find_back(depot, 1, 3, &found, &undone, &err), 0);
	assert_int_equal(found, 1); /* not 2: that line was left */
	assert_int_equal(depot_find_back(depot, 2, 3, &found, &undone, &err), -1);
	assert_non_null(strstr(err.msg, "after cells 3, 2, 1"));
	assert_int_equal(depot_find_cell(depot, 2, &found, &err), 0);
	assert_int_equal(found, 2); /* asked for by its number: in any line */
	assert_int_equal(depot_find_cell(depot, 4, &found, &err), -1);
	assert_non_null(strstr(err.msg, "there is no cell 4; saved states there are"));
	/* Undo again, with no cell between, goes on from where it is. */
	assert_int_equal(depot_select(depot, 3, &err), 0);
	assert_int_equal(depot_find_back(depot, 1, 3, &found, &undone, &err), 0);
	assert_int_equal(found, 1);
	/* Cells 4 to 6 ran and only 6 was saved: one back is three. */
	spool(4, 6, "six");
	adopt(depot, 4);
	assert_int_equal(depot_find_back(depot, 1, 6, &found, &undone, &err), 0);
	assert_int_equal(found, 3);
	assert_int_equal(undone, 3);
	assert_int_equal(depot_find_back(depot, 3, 6, &found, &undone, &err), 0);
	assert_int_equal(found, 3);
}

CASE(a_fresh_namespace_can_be_undone_but_is_not_replaced)
{
	owned(buf_finish) struct buf words = {0};
	owned(depot_close) struct depot *depot = open_it("w", &words);
	struct err err = {0};
	uint64_t found = 0;
	size_t undone = 0;
	char hash[33], name[64];

	spool(1, 1, "one");
	adopt(depot, 1);
	assert_int_equal(depot_select(depot, 0, &err), 0);
	assert_int_equal(depot_choose(depot, &words), 0);
	assert_int_equal(depot_find_back(depot, 1, 2, &found, &undone, &err), 0);
	assert_int_equal(found, 1);
	spool(2, 2, "two");
	adopt(depot, 2);
	assert_int_equal(depot_find_back(depot, 1, 2, &found, &undone, &err), 0);
	assert_int_equal(found, 1);
	hash_of("two", 3, hash);
	snprintf(name, sizeof name, "chunks/%s", hash);
	flip(name, 0);
	assert_int_equal(depot_choose(depot, &words), 0);
}

CASE(names_that_crash_a_restore_are_remembered)
{
	owned(buf_finish) struct buf words = {0};
	owned(depot_close) struct depot *depot = NULL;
	struct err err = {0};

	two_generations();
	depot = open_it("w", &words);
	assert_int_equal(depot_skip(depot, 2, "x", &err), 0);
	depot_close(&depot);
	depot = open_it("w", &words);
	assert_string_equal(
	    json_string_value(json_array_get(depot_skipped(depot, 2), 0)), "x");
	assert_int_equal(depot_condemn(depot, 2, "it ended the kernel", &err), 0);
	assert_int_equal(depot_choose(depot, &words), 1);
}

CASE(history_joins_what_ran_and_what_was_saved)
{
	owned(buf_finish) struct buf words = {0};
	owned(depot_close) struct depot *depot = open_it("w", &words);
	json_auto_t *line = json_pack("{si ss}", "cell", 1, "outcome", "ok");
	json_auto_t *diff = NULL;
	struct err err = {0};

	depot_note(depot, line);
	spool(1, 1, "one");
	adopt(depot, 1);
	json_auto_t *rows = depot_history(depot, 10);
	assert_int_equal(json_array_size(rows), 1);
	const json_t *row = json_array_get(rows, 0);
	assert_string_equal(json_string_value(json_object_get(row, "outcome")), "ok");
	assert_int_equal(json_integer_value(json_object_get(row, "generation")), 1);
	assert_int_equal(json_array_size(json_object_get(row, "added")), 1);
	spool(2, 2, "two");
	adopt(depot, 2);
	assert_int_equal(depot_diff(depot, 1, 2, &diff, &err), 0);
	assert_int_equal(json_array_size(json_object_get(diff, "changed")), 1);
}

CASE(what_was_tried_is_remembered)
{
	owned(buf_finish) struct buf words = {0};
	owned(depot_close) struct depot *depot = open_it("w", &words);
	json_auto_t *rows = json_pack("[{ss ss}]", "name", "x", "why", "it hangs");
	json_auto_t *none = json_array(), *history = NULL;
	struct err err = {0};

	spool(1, 1, "one");
	adopt(depot, 1);
	spool(2, 2, "two");
	adopt(depot, 2);
	assert_int_equal(depot_head(depot), 2);
	assert_null(depot_tried(depot, 1));
	assert_int_equal(depot_note_tried(depot, 1, rows, &err), 0);
	assert_int_equal(depot_note_tried(depot, 2, none, &err), 0);
	assert_int_equal(depot_note_tried(depot, 9, rows, &err), -1);
	depot_close(&depot);
	depot = open_it("w", &words);
	assert_true(json_equal(depot_tried(depot, 1), rows));
	assert_int_equal(json_array_size(depot_tried(depot, 2)), 0);
	history = depot_history(depot, 9);
	for (size_t i = 0; i < 2; i++) {
		const json_t *row = json_array_get(history, i);

		assert_true(json_is_true(json_object_get(row, "verified")));
		assert_int_equal(json_array_size(json_object_get(row, "not_loading")),
				 i == 0);
	}
	for (unsigned n = 3; n < 6; n++) { /* three are kept */
		spool(n, (int)n, "more");
		adopt(depot, n);
	}
	assert_null(depot_tried(depot, 1));
}

CASE(a_proof_begins_in_an_empty_place)
{
	owned(buf_finish) struct buf words = {0};
	owned(depot_close) struct depot *depot = open_it("w", &words);
	struct err err = {0};

	assert_int_equal(depot_clear_proof(depot, &err), 0);
	put("proof/restoring", "x", 1);
	assert_int_equal(depot_clear_proof(depot, &err), 0);
	assert_int_equal(rmdir(at("proof")), 0);
}

CASE(a_branch_is_readable_by_its_own_name_only)
{
	owned(buf_finish) struct buf words = {0};
	owned(depot_close) struct depot *depot = open_it("w", &words), *branch = NULL;
	owned(free_text) char *dir = xstrdup(at("branch"));
	const struct depot_branch what = {dir, "w@b", "/files"};
	struct err err = {0};

	spool(1, 1, "one");
	adopt(depot, 1);
	spool(2, 2, "two");
	adopt(depot, 2);
	assert_int_equal(depot_branch(depot, 1, &what, &err), 0);
	assert_int_equal(depot_open(&branch, dir, "w@b", key, &limits, &words, &err),
			 0);
	assert_int_equal(depot_choose(branch, &words), 1);
	assert_string_equal(depot_origin(branch, 1), "/files");
	assert_string_equal(depot_origin(branch, 2), "");
	assert_string_equal(depot_origin(depot, 1), "");
	assert_int_equal(depot_last_cell(branch), 2);
	assert_string_equal(buf_str(&words), "");
	depot_close(&branch);
	assert_int_equal(depot_open(&branch, dir, "w", key, &limits, &words, &err), 0);
	assert_int_equal(depot_choose(branch, &words), 0);
}

CASE(a_branch_of_nothing_begins_empty_and_counts_on)
{
	owned(buf_finish) struct buf words = {0};
	owned(depot_close) struct depot *depot = open_it("w", &words), *branch = NULL;
	owned(free_text) char *dir = xstrdup(at("branch"));
	const struct depot_branch what = {dir, "w@b", "/files"};
	json_auto_t *line = json_pack("{si}", "cell", 7);
	struct err err = {0};

	depot_note(depot, line);
	assert_int_equal(depot_branch(depot, 0, &what, &err), 0);
	assert_int_equal(depot_open(&branch, dir, "w@b", key, &limits, &words, &err),
			 0);
	assert_int_equal(depot_choose(branch, &words), 0);
	assert_int_equal(depot_last_cell(branch), 7);
	assert_string_equal(buf_str(&words), "");
}

#define EACH(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
RUN(EACH(the_newest_of_what_was_adopted_is_in_force),
    EACH(only_so_many_are_kept_and_chunks_of_none_go),
    EACH(what_could_not_be_loaded_keeps_its_generations),
    EACH(what_could_not_be_loaded_is_looked_for_in_right_generations_only),
    EACH(a_whole_generation_in_the_spool_survives_its_kernel),
    EACH(what_is_wrong_in_the_spool_is_refused),
    EACH(a_flipped_byte_in_a_chunk_is_noticed),
    EACH(a_missing_or_shorter_chunk_is_noticed),
    EACH(a_flipped_byte_in_a_manifest_is_noticed),
    EACH(an_older_manifest_under_the_newest_name_is_noticed),
    EACH(a_missing_manifest_is_told), EACH(another_workspaces_generations_are_not_ours),
    EACH(a_lost_head_is_made_anew), EACH(going_back_follows_the_line),
    EACH(a_fresh_namespace_can_be_undone_but_is_not_replaced),
    EACH(names_that_crash_a_restore_are_remembered),
    EACH(history_joins_what_ran_and_what_was_saved), EACH(what_was_tried_is_remembered),
    EACH(a_proof_begins_in_an_empty_place),
    EACH(a_branch_is_readable_by_its_own_name_only),
    EACH(a_branch_of_nothing_begins_empty_and_counts_on))

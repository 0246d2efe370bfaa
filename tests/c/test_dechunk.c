// SPDX-License-Identifier: MIT
#include "wire/dechunk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire/buf.h"
#include "wire/err.h"
#include "wire/mem.h"

/* Feeds text in pieces of at most step bytes; the body, or "!" when refused. */
static void feed(struct buf *body, const char *text, size_t step, int *end)
{
	struct dechunk dechunk = {0};
	size_t size = strlen(text);
	unsigned char piece[64];

	for (size_t at = 0; at < size; at += step) {
		size_t n = size - at < step ? size - at : step;

		memcpy(piece, text + at, n);
		long out = dechunk_feed(&dechunk, piece, n);
		if (out < 0) {
			buf_text(body, "!");
			break;
		}
		buf_add(body, piece, (size_t)out);
	}
	*end = (int)dechunk.state;
}

static void expect_body(const char *text, const char *want, int want_end)
{
	for (size_t step = 1; step <= 64; step++) {
		owned(buf_finish) struct buf body = {0};
		int end;

		feed(&body, text, step, &end);
		assert_string_equal(buf_str(&body), want);
		assert_int_equal(end, want_end);
	}
}

static void expect_refused(const char *text)
{
	for (size_t step = 1; step <= 64; step++) {
		owned(buf_finish) struct buf body = {0};
		int end;

		feed(&body, text, step, &end);
		assert_true(body.size > 0);
		assert_int_equal(body.data[body.size - 1], '!');
	}
}

static void a_body_comes_out_whole_however_it_is_cut(void **state)
{
	(void)state;
	expect_body("5\r\nhello\r\n0\r\n\r\n", "hello", DECHUNK_DONE);
	expect_body("5\r\nhello\r\n1\r\n \r\n5\r\nworld\r\n0\r\n\r\n", "hello world",
		    DECHUNK_DONE);
	expect_body("A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n",
		    "01234567890123456789", DECHUNK_DONE);
	expect_body("0000005\r\nhello\r\n000\r\n\r\n", "hello", DECHUNK_DONE);
	expect_body("0\r\n\r\n", "", DECHUNK_DONE);
}

static void framing_inside_the_data_is_data(void **state)
{
	(void)state;
	expect_body("7\r\n0\r\n\r\n5\r\r\n0\r\n\r\n", "0\r\n\r\n5\r", DECHUNK_DONE);
}

static void extensions_and_trailers_are_skipped(void **state)
{
	(void)state;
	expect_body("5;name=\"value\"\r\nhello\r\n0;last\r\nA: b\r\nC: d\r\n\r\n",
		    "hello", DECHUNK_DONE);
	expect_body("5 \t\r\nhello\r\n0\r\n\r\n", "hello", DECHUNK_DONE);
	expect_body("5\nhello\n0\n\n", "hello", DECHUNK_DONE);
}

static void a_body_cut_short_is_not_done(void **state)
{
	(void)state;
	expect_body("5\r\nhel", "hel", DECHUNK_DATA);
	expect_body("5\r\nhello", "hello", DECHUNK_DATA_END);
	expect_body("5\r\nhello\r\n", "hello", DECHUNK_SIZE);
	expect_body("0\r\n", "", DECHUNK_TRAILER);
	expect_body("0\r\nA: b\r\n", "", DECHUNK_TRAILER);
}

static void what_follows_the_end_is_left_alone(void **state)
{
	struct dechunk dechunk = {0};
	unsigned char data[] = "1\r\na\r\n0\r\n\r\nGET / HTTP/1.1\r\n";

	(void)state;
	assert_int_equal(dechunk_feed(&dechunk, data, sizeof data - 1), 1);
	assert_int_equal(dechunk.state, DECHUNK_DONE);
	assert_int_equal(dechunk_feed(&dechunk, data, sizeof data - 1), 0);
}

static void bad_framing_is_refused(void **state)
{
	static const char *const bad[] = {
	    "\r\nhello",
	    "x\r\n",
	    "-5\r\nhello\r\n",
	    "+5\r\nhello\r\n",
	    "0x5\r\nhello",
	    "5hello\r\n",
	    "\"5\"\r\n",
	    "10000000\r\n",
	    "ffffffffffffffff\r\n",
	    ";ext\r\n",
	    " \r\n",
	    "g\r\n",
	    "5\r\nhelloworld\r\n", /* longer than it said */
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(bad); i++)
		expect_refused(bad[i]);
}

static void lines_without_an_end_are_refused(void **state)
{
	struct dechunk dechunk = {0};
	unsigned char data[8192];
	static const char *const starts[] = {"5;", "0\r\nTrailer: "};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(starts); i++) {
		dechunk = (struct dechunk){0};
		memset(data, 'x', sizeof data);
		memcpy(data, starts[i], strlen(starts[i]));
		assert_int_equal(dechunk_feed(&dechunk, data, sizeof data), -1);
	}
}

static void a_hundred_thousand_chunks_are_fine(void **state)
{
	struct dechunk dechunk = {0};
	long total = 0;

	(void)state;
	for (int i = 0; i < 100000; i++) {
		unsigned char data[] = "1;x\r\na\r\n";
		long out = dechunk_feed(&dechunk, data, sizeof data - 1);

		assert_int_equal(out, 1);
		total += out;
	}
	assert_int_equal(total, 100000);
}

/* Any bytes: never more out than in, and nothing written outside. */
static void noise_is_survived(void **state)
{
	static const char alphabet[] = "0123456789abcdef;\r\n \tx";
	unsigned int seed = 1;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		struct dechunk dechunk = {0};
		size_t size = (size_t)rand_r(&seed) % 40;
		unsigned char *data = xcalloc(size + 1, 1); /* ASan watches its ends */

		for (size_t i = 0; i < size; i++)
			data[i] = (unsigned char)
			    alphabet[(size_t)rand_r(&seed) % (sizeof alphabet - 1)];
		long out = dechunk_feed(&dechunk, data, size);
		assert_true(out >= -1 && out <= (long)size);
		free(data);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_body_comes_out_whole_however_it_is_cut),
	    cmocka_unit_test(framing_inside_the_data_is_data),
	    cmocka_unit_test(extensions_and_trailers_are_skipped),
	    cmocka_unit_test(a_body_cut_short_is_not_done),
	    cmocka_unit_test(what_follows_the_end_is_left_alone),
	    cmocka_unit_test(bad_framing_is_refused),
	    cmocka_unit_test(lines_without_an_end_are_refused),
	    cmocka_unit_test(a_hundred_thousand_chunks_are_fine),
	    cmocka_unit_test(noise_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: MIT
#include "wire/sendq.h"

#include <libwebsockets.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire/buf.h"
#include "wire/err.h"
#include "wire/mem.h"

static void add(struct sendq *queue, const char *text)
{
	sendq_add(queue, (const void *[]){text}, (size_t[]){strlen(text)}, 1);
}

/* Takes everything out, at most step bytes at a time. */
static void drain(struct sendq *queue, struct buf *out, size_t step)
{
	struct piece piece;

	while (sendq_peek(queue, &piece)) {
		size_t n = piece.size < step ? piece.size : step;

		memset(piece.data - LWS_PRE, 'p', LWS_PRE); /* as lws may */
		buf_add(out, piece.data, n);
		sendq_drop(queue, n);
	}
}

static void an_empty_queue_has_nothing_to_send(void **state)
{
	struct sendq queue = {0};
	struct piece piece;

	(void)state;
	assert_false(sendq_peek(&queue, &piece));
	sendq_finish(&queue);
	sendq_finish(&queue);
}

static void messages_come_out_in_order(void **state)
{
	for (size_t step = 1; step < 12; step++) {
		owned(sendq_finish) struct sendq queue = {0};
		owned(buf_finish) struct buf out = {0};

		(void)state;
		add(&queue, "one");
		add(&queue, "two");
		add(&queue, "three");
		assert_int_equal(queue.size, 11);
		drain(&queue, &out, step);
		assert_string_equal(buf_str(&out), "onetwothree");
		assert_int_equal(queue.size, 0);
	}
}

static void a_queue_that_ran_empty_takes_more(void **state)
{
	owned(sendq_finish) struct sendq queue = {0};
	owned(buf_finish) struct buf out = {0};

	(void)state;
	add(&queue, "a");
	drain(&queue, &out, 10);
	add(&queue, "b");
	add(&queue, "c");
	drain(&queue, &out, 10);
	assert_string_equal(buf_str(&out), "abc");
}

static void the_parts_of_a_message_are_joined(void **state)
{
	owned(sendq_finish) struct sendq queue = {0};
	struct piece piece;

	(void)state;
	sendq_add(&queue, (const void *[]){"5\r\n", "hello", "\r\n"},
		  (size_t[]){3, 5, 2}, 3);
	assert_true(sendq_peek(&queue, &piece));
	assert_int_equal(piece.size, 10);
	assert_true(piece.first && piece.last);
	assert_memory_equal(piece.data, "5\r\nhello\r\n", 10);
	sendq_drop(&queue, 10);
	sendq_add(&queue, (const void *[]){"head", NULL}, (size_t[]){4, 0}, 2);
	assert_int_equal(queue.size, 4);
}

static void an_empty_message_goes_through(void **state)
{
	owned(sendq_finish) struct sendq queue = {0};
	owned(buf_finish) struct buf out = {0};

	(void)state;
	add(&queue, "");
	add(&queue, "x");
	drain(&queue, &out, 10);
	assert_string_equal(buf_str(&out), "x");
}

static void a_long_message_leaves_in_pieces(void **state)
{
	enum { SIZE = 3 * SENDQ_PIECE + 7 };
	owned(sendq_finish) struct sendq queue = {0};
	owned(free_text) char *text = xcalloc(SIZE, 1);
	struct piece piece;
	size_t at = 0;

	(void)state;
	for (size_t i = 0; i < SIZE; i++)
		text[i] = (char)(i % 251);
	sendq_add(&queue, (const void *[]){text}, (size_t[]){SIZE}, 1);
	while (sendq_peek(&queue, &piece)) {
		assert_true(piece.size <= SENDQ_PIECE);
		assert_int_equal(piece.first, at == 0);
		assert_int_equal(piece.last, at + piece.size == SIZE);
		assert_memory_equal(piece.data, text + at, piece.size);
		at += piece.size;
		sendq_drop(&queue, piece.size);
	}
	assert_int_equal(at, SIZE);
}

static void a_queue_is_full_by_bytes_but_never_when_empty(void **state)
{
	owned(sendq_finish) struct sendq queue = {0};

	(void)state;
	assert_false(sendq_full(&queue, 1000, 10));
	add(&queue, "12345");
	assert_false(sendq_full(&queue, 5, 10));
	assert_true(sendq_full(&queue, 6, 10));
	assert_true(sendq_full(&queue, 1000, 10));
	sendq_drop(&queue, 2);
	assert_false(sendq_full(&queue, 7, 10));
}

static void what_is_not_sent_is_freed(void **state)
{
	struct sendq queue = {0};

	(void)state;
	add(&queue, "one");
	add(&queue, "two");
	sendq_drop(&queue, 1);
	sendq_finish(&queue); /* LeakSanitizer watches */
	assert_int_equal(queue.size, 0);
	assert_null(queue.head);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(an_empty_queue_has_nothing_to_send),
	    cmocka_unit_test(messages_come_out_in_order),
	    cmocka_unit_test(a_queue_that_ran_empty_takes_more),
	    cmocka_unit_test(the_parts_of_a_message_are_joined),
	    cmocka_unit_test(an_empty_message_goes_through),
	    cmocka_unit_test(a_long_message_leaves_in_pieces),
	    cmocka_unit_test(a_queue_is_full_by_bytes_but_never_when_empty),
	    cmocka_unit_test(what_is_not_sent_is_freed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

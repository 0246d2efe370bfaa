// SPDX-License-Identifier: MIT
#include "mcp/kept.h"

#include "testing.h"

static struct kept kept;
static const char ann[] = "ann", bob[] = "bob"; /* owners are told apart by address */
static char a1[] = "a1", a2[] = "a2", b1[] = "b1", b2[] = "b2";

CASE(who_has_most_loses_the_oldest_of_his)
{
	struct kept_item items[4] = {{.bytes = 0}};

	assert_null(kept_oldest_of_most(&kept));
	kept_add(&kept, &items[0], ann, 10, a1);
	kept_add(&kept, &items[1], bob, 8, b1);
	kept_add(&kept, &items[2], bob, 8, b2);
	kept_add(&kept, &items[3], ann, 1, a2);
	assert_int_equal(kept.count, 4);
	assert_int_equal(kept.bytes, 27);
	assert_int_equal(kept_count(&kept, bob), 2);
	assert_string_equal(kept_oldest_of_most(&kept), "b1");
	assert_string_equal(kept_oldest_of(&kept, ann), "a1");
	kept_remove(&kept, &items[1]);
	assert_string_equal(kept_oldest_of_most(&kept), "a1");
	kept_resize(&kept, &items[2], 20);
	assert_string_equal(kept_oldest_of_most(&kept), "b2");
	assert_int_equal(kept.bytes, 31);
	for (size_t i = 0; i < 4; i++)
		kept_remove(&kept, &items[i]); /* one of them again */
	kept_resize(&kept, &items[2], 99);
	assert_int_equal(kept.count, 0);
	assert_int_equal(kept.bytes, 0);
	assert_int_equal(kept_count(&kept, bob), 0);
	assert_null(kept_oldest_of(&kept, bob));
}

RUN(cmocka_unit_test(who_has_most_loses_the_oldest_of_his))

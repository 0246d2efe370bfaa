// SPDX-License-Identifier: MIT
/* The other way round, a layout that is not known, is made by hand: with another
 * NAME_OFFSET or a smaller LOOP_HEAD_MAX in header.c the check must fail. */
#include "wire/header_check.h"

#include "testing.h"

CASE(the_libwebsockets_that_is_here_is_known)
{
	struct loop *loop;
	struct err err;

	assert_int_equal(loop_create(&loop, 4096, &err), 0);
	assert_int_equal(header_check(loop, &err), 0);
	loop_destroy(&loop);
}

RUN(cmocka_unit_test(the_libwebsockets_that_is_here_is_known))

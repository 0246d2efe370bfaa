/* testing - what every C test includes: cmocka after the headers that it needs.
 * SPDX-License-Identifier: MIT */
#ifndef TESTS_C_TESTING_H
#define TESTS_C_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CASE(name) static void name(void **state __attribute__((unused)))
#define RUN(...)                                                                       \
	int main(void)                                                                 \
	{                                                                              \
		const struct CMUnitTest tests[] = {__VA_ARGS__};                       \
		return cmocka_run_group_tests_name(__FILE__, tests, NULL, NULL);       \
	}

#endif

// SPDX-License-Identifier: MIT
#include "kernelmgr/number.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

long long number_read_decimal(const char *text, char **end)
{
	long long value = strtoll(text, end, 10);
	int unit = NUMBER_UNIT;

	if (errno || *end == text || *text == '-')
		return -1;
	if (value > INT32_MAX)
		value = INT32_MAX;
	value *= NUMBER_UNIT;
	if (**end == '.')
		while (unit > 1 && isdigit((unsigned char)*++*end))
			value += (**end - '0') * (unit /= 10);
	*end += unit == 1 && **end;
	return value;
}

static const char units[] = "KMGT"; /* of 1024 each */

long long number_read_bytes(const char *text, char **end)
{
	long long value = strtoll(text, end, 10);
	const char *unit =
	    *end > text && **end ? strchr(units, toupper((unsigned char)**end)) : NULL;

	if (!unit)
		return value;
	++*end;
	for (ptrdiff_t i = unit - units; i >= 0; i--)
		if (__builtin_mul_overflow(value, 1024, &value))
			errno = ERANGE;
	return value;
}

void number_show_bytes(int64_t value, char out[32])
{
	int unit = 0;

	while (value && value % 1024 == 0 && units[unit]) {
		value /= 1024;
		unit++;
	}
	snprintf(out, 32, "%lld%.*s", (long long)value, unit > 0,
		 &units[unit - (unit > 0)]);
}

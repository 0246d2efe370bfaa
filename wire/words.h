/* words - numbers and times in sentences.
 * SPDX-License-Identifier: MIT */
#ifndef WIRE_WORDS_H
#define WIRE_WORDS_H

#include <time.h>

enum { TIME_TEXT = 24 };
/* Seconds since 1970 as "2026-11-29 21:30:05Z". */
static inline void time_text(char out[TIME_TEXT], long long seconds)
{
	time_t when = (time_t)seconds;
	struct tm utc;

	gmtime_r(&when, &utc);
	strftime(out, TIME_TEXT, "%Y-%m-%d %H:%M:%SZ", &utc);
}

/* What a noun gets at its end after a count: "%zu file%s". */
static inline const char *plural_s(unsigned long long count)
{
	return count == 1 ? "" : "s";
}

#endif

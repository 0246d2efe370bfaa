/* words - numbers, sizes and times in sentences.
 * SPDX-License-Identifier: MIT */
#ifndef WIRE_WORDS_H
#define WIRE_WORDS_H

#include <stdint.h>
#include <stdio.h>
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

enum { SIZE_TEXT = 24 };
/* Bytes as "4.0 GB", "512 MB" or "64 KB". */
static inline void size_text(char out[SIZE_TEXT], uint64_t bytes)
{
	if (bytes >= UINT64_C(1) << 30)
		snprintf(out, SIZE_TEXT, "%.1f GB", (double)bytes / (1 << 30));
	else if (bytes >= UINT64_C(1) << 20)
		snprintf(out, SIZE_TEXT, "%u MB", (unsigned)(bytes >> 20));
	else
		snprintf(out, SIZE_TEXT, "%u KB", (unsigned)(bytes >> 10));
}

/* What a noun gets at its end after a count: "%zu file%s". */
static inline const char *plural_s(unsigned long long count)
{
	return count == 1 ? "" : "s";
}

#endif

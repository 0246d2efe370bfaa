/* words - numbers in sentences.
 * SPDX-License-Identifier: MIT */
#ifndef WIRE_WORDS_H
#define WIRE_WORDS_H

/* What a noun gets at its end after a count: "%zu file%s". */
static inline const char *plural_s(unsigned long long count)
{
	return count == 1 ? "" : "s";
}

#endif

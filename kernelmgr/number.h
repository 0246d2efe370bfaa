/*
 * number - numbers as people write them in settings.  Those that read go on like
 * strtoll(): *end is behind what was read, text itself if nothing was, and errno says
 * what did not fit; the caller clears it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef KERNELMGR_NUMBER_H
#define KERNELMGR_NUMBER_H

#include <stdint.h>

enum { NUMBER_UNIT = 1000 }; /* decimals are in thousandths */

/* "1.5": up to three digits after the point; -1 for what is below 0 or no number. */
long long number_read_decimal(const char *text, char **end);
/* A whole number and perhaps K, M, G or T behind it, of 1024 each. */
long long number_read_bytes(const char *text, char **end);
/* The shortest way to write it so. */
void number_show_bytes(int64_t value, char out[32]);

#endif

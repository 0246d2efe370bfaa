/*
 * log - what the daemon says about itself, one line an event, on stderr (stdout may
 * be a transport).  Subject first, then one sentence without a newline.  Levels:
 * error (someone must act), warn, info (life-cycle), debug (states, messages).
 * Never keys, tokens, code or output.  Whatever a peer sent is escaped, so that it
 * cannot forge a line.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef WIRE_LOG_H
#define WIRE_LOG_H

#include <stdbool.h>

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/* json: one object a line with the keys time, level, subject, text. */
void log_setup(enum log_level level, bool json);
bool log_enabled(enum log_level level);
void log_line(enum log_level level, const char *subject, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#define log_error(subject, ...) log_line(LOG_ERROR, subject, __VA_ARGS__)
#define log_warn(subject, ...) log_line(LOG_WARN, subject, __VA_ARGS__)
#define log_info(subject, ...) log_line(LOG_INFO, subject, __VA_ARGS__)
#define log_debug(subject, ...)                                                        \
	do {                                                                           \
		if (log_enabled(LOG_DEBUG))                                            \
			log_line(LOG_DEBUG, subject, __VA_ARGS__);                     \
	} while (0)

#endif

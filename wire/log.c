// SPDX-License-Identifier: MIT
#include "wire/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "wire/mem.h"

enum { LINE_MAX_BYTES = 2048 };

static enum log_level threshold = LOG_INFO;
static bool as_json;
static const char *const names[] = {"error", "warn", "info", "debug"};

void log_setup(enum log_level level, bool json)
{
	threshold = level;
	as_json = json;
}

bool log_enabled(enum log_level level)
{
	return level <= threshold;
}

/* Copies text with control characters, quotes and backslashes made visible, which
 * is also a valid JSON string body.  Returns the bytes written. */
static size_t escape(char *out, size_t size, const char *text)
{
	size_t at = 0;

	for (; *text && at + 7 < size; text++) {
		unsigned char c = (unsigned char)*text;

		if (c < 0x20 || c == 0x7f)
			at += (size_t)snprintf(out + at, size - at, "\\u%04x", c);
		else if (as_json && (c == '"' || c == '\\'))
			at += (size_t)snprintf(out + at, size - at, "\\%c", c);
		else
			out[at++] = (char)c;
	}
	out[at] = '\0';
	return at;
}

void log_line(enum log_level level, const char *subject, const char *fmt, ...)
{
	char text[LINE_MAX_BYTES], clean[LINE_MAX_BYTES * 2], who[256];
	char stamp[32], line[sizeof clean + sizeof who + 128];
	struct timespec now;
	struct tm utc;
	va_list ap;

	if (level > threshold)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	escape(clean, sizeof clean, text);
	escape(who, sizeof who, subject);
	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &utc);
	strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &utc);
	int len = snprintf(line, sizeof line,
			   as_json ? "{\"time\":\"%s.%03ldZ\",\"level\":\"%s\","
				     "\"subject\":\"%s\",\"text\":\"%s\"}\n"
				   : "%s.%03ldZ %-5s %s: %s\n",
			   stamp, now.tv_nsec / 1000000, names[level], who, clean);
	if (len > 0 && write(STDERR_FILENO, line, (size_t)len) < 0)
		return; /* nowhere left to complain */
}

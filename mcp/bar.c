// SPDX-License-Identifier: MIT
#include "mcp/bar.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_MAX_READ = 1024 };

/* "50", "12.3", "1.5k", "45.3M": as far as it goes; false for what is no number. */
static bool read_number(const char **at, double *out)
{
	static const char scales[] = "kMGTP";
	char *end;

	if (!isdigit((unsigned char)**at))
		return false;
	*out = strtod(*at, &end);
	const char *scale = *end ? strchr(scales, *end) : NULL;
	for (const char *c = scales; scale && c <= scale; c++)
		*out *= 1000;
	*at = end + (scale != NULL);
	return *out >= 0 && *out < 1e15;
}

/* "[00:05<00:05, 9.90it/s]", or its start. */
static bool is_clock(const char *at)
{
	if (*at++ != '[')
		return false;
	size_t minutes = strspn(at, "0123456789");
	return minutes >= 1 && at[minutes] == ':' &&
	       isdigit((unsigned char)at[minutes + 1]);
}

static void set_label(struct bar *out, const char *line, const char *end)
{
	while (line < end && (*line == ' ' || *line == '\t'))
		line++;
	while (end > line && (end[-1] == ' ' || end[-1] == ':'))
		end--;
	snprintf(out->label, sizeof out->label, "%.*s", (int)(end - line), line);
}

static void set_text(struct bar *out, const char *percent, int percent_size,
		     const char *rest)
{
	snprintf(out->text, sizeof out->text, "%s%s%.*s%s%.60s", out->label,
		 out->label[0] ? ": " : "", percent_size, percent,
		 percent_size ? ", " : "", rest);
}

/* "loading:  50%|#####     | 50/100 [00:05<00:05,  9.90it/s]" */
static bool read_with_total(struct bar *out, const char *line)
{
	const char *start = strstr(line, "%|"), *digits = start;
	const char *end = start ? strchr(start + 2, '|') : NULL;

	if (!end)
		return false;
	while (digits > line && isdigit((unsigned char)digits[-1]))
		digits--;
	const char *rest = end + 1 + strspn(end + 1, " "), *at = rest;
	if (digits == start || !read_number(&at, &out->done) || *at++ != '/' ||
	    !read_number(&at, &out->total) || at[strspn(at, " ")] != '[')
		return false;
	set_label(out, line, digits);
	set_text(out, digits, (int)(start + 1 - digits), rest);
	return true;
}

/* "loading: 50it [00:05,  9.90it/s]" */
static bool read_without_total(struct bar *out, const char *line)
{
	const char *clock = strstr(line, " [");

	if (!clock || !is_clock(clock + 1))
		return false;
	const char *word = clock;
	while (word > line && word[-1] != ' ')
		word--;
	const char *at = word;
	if (!read_number(&at, &out->done) || !isalpha((unsigned char)*at))
		return false;
	out->total = -1;
	set_label(out, line, word);
	set_text(out, "", 0, word);
	return true;
}

bool bar_read(struct bar *out, const char *line, size_t size)
{
	char text[LINE_MAX_READ];
	struct bar bar = {0};

	if (size >= sizeof text || memchr(line, '\0', size))
		return false;
	memcpy(text, line, size);
	text[size] = '\0';
	if (!read_with_total(&bar, text) && !read_without_total(&bar, text))
		return false;
	*out = bar;
	return true;
}

// SPDX-License-Identifier: MIT
#include "kernelmgr/screen.h"

#include <stdlib.h>
#include <string.h>

#include "wire/err.h"
#include "wire/mem.h"
#include "wire/utf8.h"

enum {
	BEL = 0x07,
	ESC = 0x1b,
	MOVE_MAX = 9999, /* of a sequence's number */
	CELLWISE = 4 * SCREEN_COLUMNS,
};

enum { TEXT, ESCAPE, CSI, OSC, OSC_ESCAPE };

/* ---- code points ---- */

/* The next one of valid UTF-8; a stray byte counts as itself. */
static uint32_t take_point(const char **at, const char *end)
{
	const unsigned char *p = (const unsigned char *)*at;
	int more = *p >= 0xf0 ? 3 : *p >= 0xe0 ? 2 : *p >= 0xc0 ? 1 : 0;
	uint32_t point = more ? *p & (0x3fu >> more) : *p;

	if (end - *at <= more)
		more = 0;
	for (int i = 1; i <= more; i++)
		point = point << 6 | (p[i] & 0x3f);
	*at += more + 1;
	return point;
}

static void put_point(struct buf *out, uint32_t point)
{
	unsigned char bytes[4];
	size_t size = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;

	if (size == 1) {
		bytes[0] = (unsigned char)point;
	} else {
		for (size_t i = size - 1; i > 0; i--, point >>= 6)
			bytes[i] = (unsigned char)(0x80 | (point & 0x3f));
		bytes[0] = (unsigned char)((0xf00u >> size) | point);
	}
	buf_add(out, bytes, size);
}

/* ---- rows ---- */

static void row_text(const struct screen_row *row, struct buf *out)
{
	for (size_t i = 0; i < row->used; i++)
		put_point(out, row->cells[i]);
}

/* All rows as text, each but the last with its newline. */
static void rows_text(const struct screen *self, struct buf *out)
{
	for (size_t i = 0; i <= self->last; i++) {
		row_text(&self->rows[i], out);
		if (i < self->last)
			buf_text(out, "\n");
	}
}

static void rows_to_clip(const struct screen *self, struct clip *clip)
{
	owned(buf_finish) struct buf text = {0};

	rows_text(self, &text);
	clip_add(clip, buf_str(&text), text.size);
}

/* What the rows hold can change no more. */
static void commit(struct screen *self)
{
	rows_to_clip(self, &self->kept);
	for (size_t i = 0; i <= self->last; i++)
		self->rows[i].used = 0;
	self->last = self->row = self->column = 0;
}

static void next_row(struct screen *self)
{
	self->column = 0;
	if (self->row < self->last) {
		self->row++;
		return;
	}
	if (self->last + 1 == SCREEN_ROWS) { /* the topmost is committed */
		owned(buf_finish) struct buf text = {0};
		struct screen_row top = self->rows[0];

		row_text(&top, &text);
		buf_text(&text, "\n");
		clip_add(&self->kept, buf_str(&text), text.size);
		memmove(self->rows, self->rows + 1, sizeof top * (SCREEN_ROWS - 1));
		top.used = 0;
		self->rows[SCREEN_ROWS - 1] = top;
		return;
	}
	self->row = ++self->last;
}

static void put_cell(struct screen *self, uint32_t point)
{
	if (self->column == SCREEN_COLUMNS)
		commit(self);
	struct screen_row *row = &self->rows[self->row];
	if (self->column >= row->room) {
		row->room = row->room ? 4 * row->room : 128;
		if (row->room <= self->column)
			row->room = SCREEN_COLUMNS;
		row->cells = xrealloc(row->cells, row->room * sizeof *row->cells);
	}
	while (row->used < self->column)
		row->cells[row->used++] = ' ';
	row->cells[self->column++] = point;
	if (row->used < self->column)
		row->used = self->column;
}

static void erase_in_row(struct screen *self, unsigned how)
{
	struct screen_row *row = &self->rows[self->row];

	if (how == 0 && row->used > self->column)
		row->used = self->column;
	else if (how == 2)
		row->used = 0;
	else if (how == 1)
		for (size_t i = 0; i < self->column && i < row->used; i++)
			row->cells[i] = ' ';
}

/* To the start of the line.  A line of blanks, with which a bar wipes itself out, is
 * none. */
static void go_back(struct screen *self)
{
	struct screen_row *row = &self->rows[self->row];
	size_t blank = 0;

	while (blank < row->used && row->cells[blank] == ' ')
		blank++;
	if (blank == row->used)
		row->used = 0;
	self->column = 0;
}

static void erase_below(struct screen *self)
{
	erase_in_row(self, 0);
	for (size_t i = self->row + 1; i <= self->last; i++)
		self->rows[i].used = 0;
	self->last = self->row;
}

/* ---- control ---- */

static size_t less(size_t from, size_t by)
{
	return from > by ? from - by : 0;
}

static size_t at_most(size_t value, size_t most)
{
	return value < most ? value : most;
}

static void obey(struct screen *self, char final)
{
	size_t by = self->number ? self->number : 1;

	if (final == 'A')
		self->row = less(self->row, by);
	else if (final == 'B')
		self->row = at_most(self->row + by, self->last);
	else if (final == 'C')
		self->column = at_most(self->column + by, SCREEN_COLUMNS - 1);
	else if (final == 'D')
		self->column = less(self->column, by);
	else if (final == 'G')
		self->column = at_most(by - 1, SCREEN_COLUMNS - 1);
	else if (final == 'K')
		erase_in_row(self, self->number);
	else if (final == 'J' && self->number == 0)
		erase_below(self);
}

/* One character of a control sequence; false if it is text after all. */
static bool read_control(struct screen *self, uint32_t point)
{
	int reading = self->reading;

	if (reading == ESCAPE) {
		self->number = 0;
		self->reading = point == '[' ? CSI : point == ']' ? OSC : TEXT;
		return point >= 0x20 && point <= 0x7e;
	}
	if (reading == CSI) {
		if (point >= '0' && point <= '9')
			self->number = (unsigned)at_most(
			    self->number * 10 + (point - '0'), MOVE_MAX);
		if (point >= 0x20 && point <= 0x3f)
			return true;
		self->reading = TEXT;
		if (point < 0x40 || point > 0x7e)
			return false;
		obey(self, (char)point);
		return true;
	}
	/* An OSC ends in BEL or ESC \; one without an end hides no more than its line.
	 */
	if (point == '\n')
		self->reading = TEXT;
	else if (point == BEL || (reading == OSC_ESCAPE && point == '\\'))
		self->reading = TEXT;
	else
		self->reading = point == ESC ? OSC_ESCAPE : OSC;
	return point != '\n';
}

static void put(struct screen *self, uint32_t point)
{
	if (self->reading != TEXT && read_control(self, point))
		return;
	if (point == '\n')
		next_row(self);
	else if (point == '\r')
		go_back(self);
	else if (point == '\b')
		self->column = less(self->column, 1);
	else if (point == ESC)
		self->reading = ESCAPE;
	else
		put_cell(self, point);
}

/* ---- from outside ---- */

/* Bytes at the start of text that go to the clip as they are: of plain text that is
 * written at the end, all but the last lines, and of those not more than CELLWISE. */
static size_t plain_start(const struct screen *self, const char *text, size_t size)
{
	const char *end = text + size;

	if (self->reading != TEXT || self->row != self->last ||
	    self->column != self->rows[self->row].used || memchr(text, '\r', size) ||
	    memchr(text, '\b', size) || memchr(text, ESC, size))
		return 0;
	for (int i = 0; i < SCREEN_ROWS && end; i++)
		end = memrchr(text, '\n', (size_t)(end - text));
	size_t start = end ? (size_t)(end - text) + 1 : 0;
	if (size > CELLWISE && start < size - CELLWISE)
		start = size - CELLWISE;
	while (start < size && ((unsigned char)text[start] & 0xc0) == 0x80)
		start++; /* not within a character */
	return start;
}

void screen_add(struct screen *self, const char *text, size_t size)
{
	const char *end = text + size;
	size_t plain = plain_start(self, text, size);

	if (plain) { /* a flood of lines is not written cell by cell */
		commit(self);
		clip_add(&self->kept, text, plain);
		text += plain;
	}
	while (text < end)
		put(self, take_point(&text, end));
}

void screen_settle(struct screen *self)
{
	if (self->rows[self->last].used)
		self->row = self->last, next_row(self);
	commit(self);
	self->reading = TEXT;
	for (size_t i = 0; i < SCREEN_ROWS; i++) {
		free(self->rows[i].cells);
		self->rows[i] = (struct screen_row){0};
	}
}

bool screen_is_empty(const struct screen *self)
{
	return !self->kept.total && !self->last && !self->rows[0].used;
}

void screen_render(const struct screen *self, struct buf *out)
{
	const struct clip *kept = &self->kept;
	struct clip all = {.limit = kept->limit,
			   .total = kept->total,
			   .head_chars = kept->head_chars,
			   .tail_chars = kept->tail_chars};

	buf_add(&all.head, buf_str(&kept->head), kept->head.size);
	buf_add(&all.tail, buf_str(&kept->tail), kept->tail.size);
	rows_to_clip(self, &all);
	clip_render(&all, out);
	clip_finish(&all);
}

void screen_finish(struct screen *self)
{
	clip_finish(&self->kept);
	for (size_t i = 0; i < SCREEN_ROWS; i++)
		free(self->rows[i].cells);
	*self = (struct screen){0};
}

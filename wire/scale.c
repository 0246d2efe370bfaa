// SPDX-License-Identifier: MIT
#include "wire/scale.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
	LEVELS = 256,
	STEP = 16,    /* pixels that are compared at once */
	FINE = 65536, /* steps of linear light; a step of the darkest grays is 20 of
			 them */
};

typedef float light __attribute__((vector_size(16))); /* RGBA, linear, times alpha */

typedef int32_t different __attribute__((vector_size(16))); /* of two of them */

/* The part of a row or column that goes into one pixel of the result. */
struct window {
	unsigned first, count;
	const float *weights;
};

struct axis {
	struct window *windows; /* owned, one a pixel of the result */
	float *weights;         /* owned */
	unsigned longest;
};

struct scaler {
	const struct pixels *from;
	struct pixels *to;
	struct axis across, down;
	double ratio; /* across */
	float linear[LEVELS];
	unsigned char level[FINE]; /* of linear light */
	uint32_t *row, *before; /* owned: the source row and the one above, as RGBA */
	unsigned *run;          /* owned: how many pixels from here on are equal */
	unsigned
	    *since;     /* owned: the source row since which a column has not changed */
	light *rows;    /* owned: the last that differ, each as wide as the result */
	light **row_at; /* owned: those of the last source rows, by their number */
	const light **window; /* owned: those that make one row */
	unsigned rows_done, different, newest_change;
};

/* ---- tables ---- */

static double to_linear(double level)
{
	return level <= 0.04045 ? level / 12.92 : pow((level + 0.055) / 1.055, 2.4);
}

static void fill_tables(struct scaler *self)
{
	int at = 0;

	for (int i = 0; i < LEVELS; i++) {
		double until = to_linear((i + 0.5) / (LEVELS - 1)) * (FINE - 1);

		self->linear[i] = (float)to_linear(i / (double)(LEVELS - 1));
		for (; at < FINE && (at <= until || i == LEVELS - 1); at++)
			self->level[at] = (unsigned char)i;
	}
}

static double mitchell(double x)
{
	x = fabs(x);
	if (x < 1)
		return (16 + x * x * (21 * x - 36)) / 18;
	return x < 2 ? (32 + x * (-60 + x * (36 - 7 * x))) / 18 : 0;
}

static void fill_window(struct window *window, float *weights, unsigned index,
			double ratio, unsigned size)
{
	double center = (index + 0.5) * ratio - 0.5, sum = 0;
	double low = ceil(center - 2 * ratio), high = floor(center + 2 * ratio);
	unsigned first = low < 0 ? 0 : (unsigned)low;
	unsigned last = high > size - 1.0 ? size - 1 : (unsigned)high;

	*window = (struct window){first, last - first + 1, weights};
	for (unsigned i = 0; i < window->count; i++) {
		weights[i] = (float)mitchell((first + i - center) / ratio);
		sum += weights[i];
	}
	for (unsigned i = 0; i < window->count; i++)
		weights[i] /= (float)sum;
}

static bool axis_init(struct axis *self, unsigned from, unsigned to)
{
	double ratio = (double)from / to;
	unsigned room = (unsigned)(4 * ratio) + 2;

	self->windows = calloc(to, sizeof *self->windows);
	self->weights = calloc((size_t)to * room, sizeof *self->weights);
	if (!self->windows || !self->weights)
		return false;
	self->longest = 1;
	for (unsigned i = 0; i < to; i++) {
		fill_window(&self->windows[i], self->weights + (size_t)i * room, i,
			    ratio, from);
		if (self->windows[i].count > self->longest)
			self->longest = self->windows[i].count;
	}
	return true;
}

/* ---- across ---- */

static uint32_t rgba(unsigned r, unsigned g, unsigned b, unsigned a)
{
	return r | g << 8 | b << 16 | a << 24;
}

static void read_row(struct scaler *self, unsigned y)
{
	unsigned width = self->from->width, channels = self->from->channels;
	const unsigned char *p = self->from->data + y * self->from->stride;
	uint32_t *row = self->before;

	self->before = self->row;
	self->row = row;
	for (unsigned x = 0; channels == 3 && x < width; x++, p += 3)
		row[x] = rgba(p[0], p[1], p[2], 255);
	for (unsigned x = 0; channels < 3 && x < width; x++, p += channels)
		row[x] = rgba(p[0], p[0], p[0], channels == 2 ? p[1] : 255);
	if (channels == 4)
		memcpy(row, p, (size_t)width * 4);
}

static light light_of(const struct scaler *self, uint32_t pixel)
{
	const float *linear = self->linear;
	float alpha = (float)(pixel >> 24) / 255;
	light value = {linear[pixel & 255], linear[pixel >> 8 & 255],
		       linear[pixel >> 16 & 255], 1};

	return value * alpha;
}

static light weighted(const struct scaler *self, const struct window *window)
{
	light sum = {0};

	for (unsigned i = 0; i < window->count; i++)
		sum +=
		    light_of(self, self->row[window->first + i]) * window->weights[i];
	return sum;
}

/* Where the row differs from the one above, from x on: its first pixel, and past its
 * last, unless the next one is so near that both are of one window anyway. */
static bool next_change(const struct scaler *self, unsigned x, unsigned *first,
			unsigned *end)
{
	const uint32_t *row = self->row, *before = self->before;
	unsigned width = self->from->width, near = self->across.longest;

	while (x + STEP <= width && !memcmp(row + x, before + x, STEP * sizeof *row))
		x += STEP;
	while (x < width && row[x] == before[x])
		x++;
	*first = *end = x;
	for (; x < width && x < *end + near; x++)
		if (row[x] != before[x])
			*end = x + 1;
	return *first < width;
}

static void count_runs(struct scaler *self, unsigned first, unsigned end)
{
	const uint32_t *row = self->row;

	self->run[end - 1] = 1;
	for (unsigned x = end - 1; x > first; x--)
		self->run[x - 1] = row[x - 1] == row[x] ? self->run[x] + 1 : 1;
}

/* Makes those pixels of the row anew that any of the changed ones goes into. */
static void scale_change(struct scaler *self, light *out, unsigned first, unsigned end)
{
	const struct window *windows = self->across.windows;
	double guess = floor(first / self->ratio) - 4;
	unsigned x = guess > 0 ? (unsigned)guess : 0, last, width = self->to->width;
	light flat = {0};
	uint32_t flat_pixel = 0;

	while (x < width && windows[x].first + windows[x].count <= first)
		x++;
	for (last = x; last + 1 < width && windows[last + 1].first < end;)
		last++;
	if (x == width || windows[x].first >= end)
		return; /* no window reaches it */
	count_runs(self, windows[x].first, windows[last].first + windows[last].count);
	for (; x <= last; x++) {
		const struct window *window = &windows[x];
		uint32_t pixel = self->row[window->first];

		self->since[x] = self->rows_done;
		if (self->run[window->first] < window->count) {
			out[x] = weighted(self, window);
			continue;
		}
		if (pixel != flat_pixel) {
			flat = light_of(self, pixel);
			flat_pixel = pixel;
		}
		out[x] = flat;
	}
}

static light **slot_of(const struct scaler *self, unsigned y)
{
	return &self->row_at[y % self->down.longest];
}

/* Scales the next row across, or what of it differs from the one above. */
static void scale_row(struct scaler *self)
{
	unsigned y = self->rows_done, width = self->to->width, x = 0, first, end;
	light *above = y ? *slot_of(self, y - 1) : NULL, *out = above;

	read_row(self, y);
	for (unsigned i = 0; !y && i < self->from->width; i++)
		self->before[i] = ~self->row[i];
	while (next_change(self, x, &first, &end)) {
		if (out == above) {
			out = self->rows +
			      (size_t)(self->different++ % self->down.longest) * width;
			if (above)
				memcpy(out, above, width * sizeof *out);
			self->newest_change = y;
		}
		scale_change(self, out, first, end);
		x = end;
	}
	*slot_of(self, y) = out;
	self->rows_done++;
}

/* ---- down ---- */

static unsigned char level_of(const struct scaler *self, float linear)
{
	float at = linear * (FINE - 1) + 0.5F;

	return self->level[at <= 0 ? 0 : at >= FINE - 1 ? FINE - 1 : (int)at];
}

static uint32_t pixel_of(const struct scaler *self, light value)
{
	float alpha = value[3] > 1 ? 1 : value[3];

	if (alpha < 0.5F / 255)
		return 0;
	if (alpha < 1)
		value /= alpha;
	return rgba(level_of(self, value[0]), level_of(self, value[1]),
		    level_of(self, value[2]), (unsigned)(alpha * 255 + 0.5F));
}

static void put_pixel(unsigned char *out, unsigned channels, uint32_t pixel)
{
	out[0] = (unsigned char)pixel;
	if (channels >= 3) {
		out[1] = (unsigned char)(pixel >> 8);
		out[2] = (unsigned char)(pixel >> 16);
	}
	if (channels % 2 == 0)
		out[channels - 1] = (unsigned char)(pixel >> 24);
}

static void finish_row(const struct scaler *self, unsigned y)
{
	const struct window *window = &self->down.windows[y];
	unsigned width = self->to->width, channels = self->to->channels;
	/* A column that has not changed since then looks as it does one row above. */
	unsigned same = y ? window[-1].first : 0;
	unsigned char *out = self->to->data + y * self->to->stride;
	const light **rows = self->window;
	light before = {-1, -1, -1, -1};
	uint32_t pixel = 0;

	if (y)
		memcpy(out, out - self->to->stride, (size_t)width * channels);
	if (y && self->newest_change <= same)
		return;
	for (unsigned i = 0; i < window->count; i++)
		rows[i] = *slot_of(self, window->first + i);
	for (unsigned x = 0; x < width; x++, out += channels) {
		if (y && self->since[x] <= same)
			continue;
		light sum = rows[0][x] * window->weights[0];

		for (unsigned i = 1; i < window->count; i++)
			sum += rows[i][x] * window->weights[i];
		different changed = sum != before;
		if (changed[0] | changed[1] | changed[2] | changed[3])
			pixel = pixel_of(self, sum);
		before = sum;
		put_pixel(out, channels, pixel);
	}
}

/* ---- all of it ---- */

static bool scaler_init(struct scaler *self)
{
	const struct pixels *from = self->from, *to = self->to;

	if (!axis_init(&self->across, from->width, to->width) ||
	    !axis_init(&self->down, from->height, to->height))
		return false;
	self->ratio = (double)from->width / to->width;
	self->row = calloc(from->width, sizeof *self->row);
	self->before = calloc(from->width, sizeof *self->before);
	self->run = calloc(from->width, sizeof *self->run);
	self->rows = aligned_alloc(sizeof(light), (size_t)self->down.longest *
						      to->width * sizeof(light));
	self->since = calloc(to->width, sizeof *self->since);
	self->row_at = calloc(self->down.longest, sizeof *self->row_at);
	self->window = calloc(self->down.longest, sizeof *self->window);
	fill_tables(self);
	return self->row && self->before && self->run && self->since && self->rows &&
	       self->row_at && self->window;
}

static void scaler_finish(struct scaler *self)
{
	free(self->across.windows);
	free(self->across.weights);
	free(self->down.windows);
	free(self->down.weights);
	free(self->row);
	free(self->before);
	free(self->run);
	free(self->since);
	free(self->row_at);
	free(self->rows);
	free(self->window);
	free(self);
}

bool scale_down(const struct pixels *from, struct pixels *to)
{
	struct scaler *self = calloc(1, sizeof *self);

	if (!self)
		return false;
	self->from = from;
	self->to = to;
	bool ready = scaler_init(self);
	for (unsigned y = 0; ready && y < to->height; y++) {
		const struct window *window = &self->down.windows[y];

		while (self->rows_done < window->first + window->count)
			scale_row(self);
		finish_row(self, y);
	}
	scaler_finish(self);
	return ready;
}

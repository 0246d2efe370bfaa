// SPDX-License-Identifier: MIT
#include "wire/scale.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
	LEVELS = 256,
	FINE = 65536, /* steps of linear light; a step of the darkest grays is 20 of
			 them */
};

typedef float light __attribute__((vector_size(16))); /* RGBA, linear, times alpha */

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
	float linear[LEVELS];
	unsigned char level[FINE]; /* of linear light */
	uint32_t *row;             /* owned: one row of the source as RGBA */
	unsigned *run;             /* owned: how many pixels from here on are equal */
	light *rows;          /* owned: the last source rows, as wide as the result */
	const light **window; /* owned: those of rows that make one row */
	unsigned rows_done;
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
	const unsigned char *p = self->from->data + (size_t)y * width * channels;
	uint32_t *row = self->row;

	for (unsigned x = 0; channels == 3 && x < width; x++, p += 3)
		row[x] = rgba(p[0], p[1], p[2], 255);
	for (unsigned x = 0; channels < 3 && x < width; x++, p += channels)
		row[x] = rgba(p[0], p[0], p[0], channels == 2 ? p[1] : 255);
	if (channels == 4)
		memcpy(row, p, (size_t)width * 4);
	self->run[width - 1] = 1;
	for (unsigned x = width - 1; x > 0; x--)
		self->run[x - 1] = row[x - 1] == row[x] ? self->run[x] + 1 : 1;
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

static light *row_at(const struct scaler *self, unsigned y)
{
	return self->rows + (size_t)(y % self->down.longest) * self->to->width;
}

static bool is_like_the_one_before(const struct scaler *self, unsigned y)
{
	size_t size = (size_t)self->from->width * self->from->channels;
	const unsigned char *row = self->from->data + y * size;

	return y > 0 && memcmp(row, row - size, size) == 0;
}

static void scale_row(struct scaler *self, unsigned y)
{
	light *out = row_at(self, y), flat = {0};
	uint32_t flat_pixel = 0;

	if (is_like_the_one_before(self, y)) {
		memmove(out, row_at(self, y - 1), self->to->width * sizeof *out);
		return;
	}
	read_row(self, y);
	for (unsigned x = 0; x < self->to->width; x++) {
		const struct window *window = &self->across.windows[x];
		uint32_t pixel = self->row[window->first];

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
	unsigned char *out = self->to->data + (size_t)y * width * channels;
	const light **rows = self->window;
	light before = {-1, -1, -1, -1};
	uint32_t pixel = 0;

	for (unsigned i = 0; i < window->count; i++)
		rows[i] = row_at(self, window->first + i);
	for (unsigned x = 0; x < width; x++, out += channels) {
		light sum = rows[0][x] * window->weights[0];

		for (unsigned i = 1; i < window->count; i++)
			sum += rows[i][x] * window->weights[i];
		if (memcmp(&sum, &before, sizeof sum) != 0)
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
	self->row = calloc(from->width, sizeof *self->row);
	self->run = calloc(from->width, sizeof *self->run);
	self->rows = aligned_alloc(sizeof(light), (size_t)self->down.longest *
						      to->width * sizeof(light));
	self->window = calloc(self->down.longest, sizeof *self->window);
	fill_tables(self);
	return self->row && self->run && self->rows && self->window;
}

static void scaler_finish(struct scaler *self)
{
	free(self->across.windows);
	free(self->across.weights);
	free(self->down.windows);
	free(self->down.weights);
	free(self->row);
	free(self->run);
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
			scale_row(self, self->rows_done++);
		finish_row(self, y);
	}
	scaler_finish(self);
	return ready;
}

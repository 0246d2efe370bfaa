// SPDX-License-Identifier: MIT
#include "wire/filewatch.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "testing.h"
#include "wire/mem.h"

enum { CALM_US = 700 * 1000, LIMIT_US = 10 * 1000 * 1000 };

static struct loop *loop;
static char one[64], two[64];
static struct filewatch watch;
static struct loop_timer limit;
static int changes;

static void write_file(const char *path, const char *text)
{
	owned(close_fd) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void on_limit(void *arg)
{
	(void)arg;
	loop_stop(loop);
}

static void on_change(void *arg)
{
	(void)arg;
	changes++;
	loop_stop(loop);
}

/* How many changes come within this time; the first ends the wait. */
static int wait_us(int64_t usec)
{
	changes = 0;
	loop_timer_start(loop, &limit, usec, on_limit, NULL);
	loop_run(loop);
	loop_timer_stop(&limit);
	return changes;
}

static int set_up(void **state)
{
	struct err err;

	(void)state;
	snprintf(one, sizeof one, "/tmp/filewatch-one-%d", (int)getpid());
	snprintf(two, sizeof two, "/tmp/filewatch-two-%d", (int)getpid());
	write_file(one, "1");
	write_file(two, "2");
	if (loop_create(&loop, 4096, &err) < 0)
		return -1;
	filewatch_begin(&watch, loop, one, two, on_change, NULL);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	filewatch_end(&watch);
	loop_destroy(&loop);
	unlink(one);
	unlink(two);
	return 0;
}

CASE(what_stays_as_it_is_is_not_told)
{
	assert_int_equal(wait_us(CALM_US), 0);
}

CASE(each_kind_of_change_is_told_once)
{
	char other[80];

	write_file(one, "longer");
	assert_int_equal(wait_us(LIMIT_US), 1);
	assert_int_equal(wait_us(CALM_US), 0);
	write_file(two, "3"); /* as long as before */
	assert_int_equal(wait_us(LIMIT_US), 1);
	assert_int_equal(chmod(one, 0640), 0);
	assert_int_equal(wait_us(LIMIT_US), 1);
	snprintf(other, sizeof other, "%s.new", one);
	write_file(other, "longer");
	assert_int_equal(rename(other, one), 0);
	assert_int_equal(wait_us(LIMIT_US), 1);
	assert_int_equal(unlink(one), 0);
	assert_int_equal(wait_us(LIMIT_US), 1);
	write_file(one, "again");
	assert_int_equal(wait_us(LIMIT_US), 1);
}

static struct loop_timer pen;
static int strokes;

static void write_on(void *arg)
{
	char text[8];

	(void)arg;
	snprintf(text, sizeof text, "%d", strokes);
	write_file(one, text);
	if (++strokes < 20)
		loop_timer_start(loop, &pen, 50 * 1000, write_on, NULL);
}

CASE(what_is_still_being_written_is_not_told)
{
	strokes = 0;
	write_on(NULL);
	assert_int_equal(wait_us(LIMIT_US), 1);
	assert_int_equal(strokes, 20);
}

#define EACH(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
RUN(EACH(what_stays_as_it_is_is_not_told), EACH(each_kind_of_change_is_told_once),
    EACH(what_is_still_being_written_is_not_told))

// SPDX-License-Identifier: MIT
/* err, mem, buf and log: the base that everything stands on. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "testing.h"
#include "wire/buf.h"
#include "wire/err.h"
#include "wire/log.h"
#include "wire/mem.h"

CASE(an_error_says_what_and_why)
{
	struct err err;

	errno = ENOENT;
	assert_int_equal(err_set(&err, ERR_SYSTEM, "open %s", "x"), -1);
	assert_string_equal(err.msg, "open x: No such file or directory");
	assert_int_equal(err.os, ENOENT);
	assert_int_equal(err_wrap(&err, "start"), -1);
	assert_string_equal(err.msg, "start: open x: No such file or directory");
	err_set(&err, ERR_LIMIT, "no");
	assert_string_equal(err.msg, "no");
	assert_int_equal(err.os, 0);
}

CASE(a_long_error_is_cut_not_overrun)
{
	struct err err;
	char huge[1000];

	memset(huge, 'x', sizeof huge - 1);
	huge[sizeof huge - 1] = '\0';
	errno = EIO;
	err_set(&err, ERR_SYSTEM, "%s", huge);
	assert_int_equal(strlen(err.msg), sizeof err.msg - 1);
	err_wrap(&err, "%s", huge);
	assert_int_equal(strlen(err.msg), sizeof err.msg - 1);
}

CASE(every_kind_of_error_has_a_name_and_a_code)
{
	for (int i = 0; i < ERR_KIND_COUNT; i++) {
		assert_true(err_name((enum err_kind)i)[0]);
		assert_true(i == ERR_OK || err_rpc_code((enum err_kind)i) < -32000);
		assert_non_null(err_advice((enum err_kind)i));
	}
}

CASE(a_buffer_grows_and_stays_text)
{
	struct buf buf = {0};

	assert_string_equal(buf_str(&buf), "");
	for (int i = 0; i < 1000; i++)
		buf_printf(&buf, "%03d,", i);
	assert_int_equal(buf.size, 4000);
	assert_int_equal(buf.data[4000], '\0');
	buf_drop(&buf, 3996);
	assert_string_equal(buf_str(&buf), "999,");
	buf_add(&buf, "", 0);
	memcpy(buf_reserve(&buf, 3), "abc", 3);
	buf.size += 3;
	assert_string_equal(buf_str(&buf), "999,abc");
	buf_finish(&buf);
	assert_null(buf.data);
}

/* Runs fn with stderr in a file; the text is the caller's to free. */
static char *capture(void (*fn)(void))
{
	int saved = dup(2), file = memfd_create("log", MFD_CLOEXEC);
	char *text = calloc(1, 8192);

	dup2(file, 2);
	fn();
	dup2(saved, 2);
	assert_true(pread(file, text, 8191, 0) >= 0);
	close(saved);
	close(file);
	return text;
}

static void forge(void)
{
	log_info("a\nb", "x \"y\"\n2026 error fake: \x1b[31m\\");
}

CASE(a_line_of_the_log_cannot_be_forged)
{
	char *text = capture(forge);

	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
	assert_non_null(strstr(text, "a\\u000ab: x \"y\"\\u000a2026"));
	free(text);
	log_setup(LOG_INFO, true);
	text = capture(forge);
	assert_non_null(
	    strstr(text, "\"subject\":\"a\\u000ab\",\"text\":\"x \\\"y\\\""));
	assert_non_null(strstr(text, "\\u001b[31m\\\\\"}\n"));
	log_setup(LOG_INFO, false);
	free(text);
}

static void talk(void)
{
	log_error("s", "1");
	log_warn("s", "2");
	log_info("s", "3");
	log_debug("s", "4");
}

CASE(levels_filter)
{
	log_setup(LOG_WARN, false);
	char *text = capture(talk);

	assert_non_null(strstr(text, "s: 2"));
	assert_null(strstr(text, "s: 3"));
	assert_null(strstr(text, "s: 4"));
	free(text);
	log_setup(LOG_INFO, false);
}

RUN(cmocka_unit_test(an_error_says_what_and_why),
    cmocka_unit_test(a_long_error_is_cut_not_overrun),
    cmocka_unit_test(every_kind_of_error_has_a_name_and_a_code),
    cmocka_unit_test(a_buffer_grows_and_stays_text),
    cmocka_unit_test(a_line_of_the_log_cannot_be_forged),
    cmocka_unit_test(levels_filter))

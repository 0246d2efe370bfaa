// SPDX-License-Identifier: MIT
#include "mcp/bar.h"

#include "testing.h"
#include "wire/mem.h"

CASE(lines_of_tqdm_are_read)
{
	static const struct {
		const char *line;
		double done, total;
		const char *label, *text;
	} rows[] = {
	    {"  50%|#####     | 50/100 [00:05<00:05,  9.90it/s]", 50, 100, "",
	     "50%, 50/100 [00:05<00:05,  9.90it/s]"},
	    {"loading data:   7%|\xe2\x96\x8b         | 7/100 [00:00<?, ?it/s]", 7, 100,
	     "loading data", "loading data: 7%, 7/100 [00:00<?, ?it/s]"},
	    {"100%|\xe2\x96\x88\xe2\x96\x88| 1.50M/1.50M [01:02:03<00:00, 9.9MB/s]",
	     1.5e6, 1.5e6, "", "100%, 1.50M/1.50M [01:02:03<00:00, 9.9MB/s]"},
	    {"12it [00:05,  2.40it/s]", 12, -1, "", "12it [00:05,  2.40it/s]"},
	    {"rows: 3.4krows [00:01, 3.4krows/s]", 3400, -1, "rows",
	     "rows: 3.4krows [00:01, 3.4krows/s]"},
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct bar bar;

		assert_true(bar_read(&bar, rows[i].line, strlen(rows[i].line)));
		assert_true(bar.done == rows[i].done && bar.total == rows[i].total);
		assert_string_equal(bar.label, rows[i].label);
		assert_string_equal(bar.text, rows[i].text);
	}
}

CASE(other_lines_are_none)
{
	static const char *const lines[] = {
	    "",
	    "50%",
	    "50%|",
	    "|50%|50/100",
	    "a: 50%| of | 50 of 100 [00:05]",
	    "%|#| 50/100 [00:05<00:05]",
	    "10%|#| 50/100 done",
	    "10%|#| /100 [00:05<00:05]",
	    "list: [1, 2]",
	    "12 [00:05]",
	    "it [00:05]",
	    "50it [a:b]",
	    "99999999999999999999it [00:05]",
	};

	for (size_t i = 0; i < COUNT_OF(lines); i++) {
		struct bar bar = {.done = -7};

		assert_false(bar_read(&bar, lines[i], strlen(lines[i])));
		assert_true(bar.done == -7);
	}
}

RUN(cmocka_unit_test(lines_of_tqdm_are_read), cmocka_unit_test(other_lines_are_none))

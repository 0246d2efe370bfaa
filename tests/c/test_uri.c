// SPDX-License-Identifier: MIT
#include "mcp/uri.h"

#include "testing.h"
#include "wire/err.h"
#include "wire/mem.h"

static void check(const char *path, const char *uri)
{
	owned(buf_finish) struct buf made = {0}, branch = {0}, back = {0};

	uri_of_path(&made, "ann", path);
	assert_string_equal(buf_str(&made), uri);
	assert_true(uri_to_path(&branch, &back, buf_str(&made), made.size));
	assert_int_equal(branch.size, 0);
	assert_string_equal(buf_str(&back), path);
}

static void check_read(const char *uri, const char *path)
{
	owned(buf_finish) struct buf branch = {0}, out = {0};

	assert_true(uri_to_path(&branch, &out, uri, strlen(uri)));
	assert_string_equal(buf_str(&out), path);
}

CASE(a_path_comes_back_as_it_was)
{
	check("a.txt", "workspace:///a.txt");
	check("dir/a-b_c~1.txt", "workspace:///dir/a-b_c~1.txt");
	check("a b%20?#\\.csv", "workspace:///a%20b%2520%3F%23%5C.csv");
	check("\xC3\xBC\xFF\n", "workspace:///%C3%BC%FF%0A");
	check("../x", "workspace:///../x"); /* refused where it is opened */
}

CASE(what_clients_write_is_read)
{
	check_read("workspace:///a%2fb%2Fc", "a/b/c");
	check_read("workspace:///a b?c#d", "a b?c#d");
	check_read("workspace:///\xC3\xBC", "\xC3\xBC");
	check_read("workspace:///", "");
	check_read("workspace:////etc/passwd", "/etc/passwd");
}

CASE(a_branch_is_the_authority)
{
	owned(buf_finish) struct buf made = {0}, branch = {0}, back = {0};

	uri_of_path(&made, "ann@Try-1.b", "d/a b");
	assert_string_equal(buf_str(&made), "workspace://Try-1.b/d/a%20b");
	assert_true(uri_to_path(&branch, &back, buf_str(&made), made.size));
	assert_string_equal(buf_str(&branch), "Try-1.b");
	assert_string_equal(buf_str(&back), "d/a b");
}

CASE(a_nul_is_part_of_the_path)
{
	owned(buf_finish) struct buf branch = {0}, out = {0};

	assert_true(uri_to_path(&branch, &out, "workspace:///a%00b", 18));
	assert_int_equal(out.size, 3);
	assert_memory_equal(out.data, "a\0b", 3);
}

CASE(what_is_none_of_ours_is_refused)
{
	static const char *const wrong[] = {
	    "",
	    "a.txt",
	    "workspace:",
	    "workspace://",
	    "workspace://host",
	    "workspace://.host/a",
	    "workspace://a%20b/c",
	    "workspace://a@b/c",
	    "workspace://a:80/c",
	    "workspace://123456789012345678901234567890123/c",
	    "file:///etc/passwd",
	    "Workspace:///a",
	    " workspace:///a",
	    "workspace:///%",
	    "workspace:///%4",
	    "workspace:///a%g0",
	    "workspace:///a%0",
	    "workspace:///%-1",
	    "workspace:///% 1",
	};

	for (size_t i = 0; i < COUNT_OF(wrong); i++) {
		owned(buf_finish) struct buf branch = {0}, out = {0};

		if (uri_to_path(&branch, &out, wrong[i], strlen(wrong[i])))
			fail_msg("%s is taken", wrong[i]);
	}
}

RUN(cmocka_unit_test(a_path_comes_back_as_it_was),
    cmocka_unit_test(what_clients_write_is_read),
    cmocka_unit_test(a_branch_is_the_authority),
    cmocka_unit_test(a_nul_is_part_of_the_path),
    cmocka_unit_test(what_is_none_of_ours_is_refused))

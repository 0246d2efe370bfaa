// SPDX-License-Identifier: MIT
#include "kernelmgr/plan.h"

#include "testing.h"

static struct plan plan;
static char text[PLAN_TEXT_MAX + 1];

static const char *read_text(const char *words)
{
	snprintf(text, sizeof text, "%s", words);
	return plan_read(&plan, text);
}

CASE(reads_every_kind_of_line)
{
	assert_null(read_text("tier\tN\nappear\t1000\t1001\nnet\town\ncwd\t/w x\n"
			      "ro\t/usr\t/usr\nopt\t/a\t/b\nown\t/c\t/d\nrw\t/e\t/f\n"
			      "link\tusr/bin\t/bin\nlimit\tcore\t0\nlimit\tshm\t5%\n"));
	assert_int_equal(plan.tier, 'N');
	assert_false(plan.become);
	assert_int_equal(plan.uid, 1000);
	assert_int_equal(plan.gid, 1001);
	assert_true(plan.own_net);
	assert_string_equal(plan.cwd, "/w x");
	assert_int_equal(plan.mount_count, 5);
	assert_int_equal(plan.mounts[3].kind, PLAN_RW);
	assert_string_equal(plan.mounts[3].from, "/e");
	assert_string_equal(plan.mounts[3].to, "/f");
	assert_int_equal(plan.mounts[4].kind, PLAN_LINK);
	assert_int_equal(plan.limit_count, 1);
	assert_int_equal(plan.limits[0].what, RLIMIT_CORE);
	assert_string_equal(plan.shm, "5%");
	assert_string_equal(plan.tmp, "50%");
}

CASE(reads_the_other_tiers)
{
	assert_null(read_text("tier\tU\nbecome\t20001\t20001\nnet\tnone\nport\t3128\n"
			      "guard\tconnect\n"));
	assert_true(plan.guard);
	assert_int_equal(plan.tier, 'U');
	assert_true(plan.become);
	assert_true(plan.no_internet);
	assert_int_equal(plan.port, 3128);
	assert_null(read_text(""));
	assert_int_equal(plan.tier, '0');
}

CASE(reads_groups_and_the_way_to_the_proxy)
{
	assert_null(read_text("tier\tN\nnet\town\nforwarder\t/f\nproxy\th\t8\n"
			      "group\t/g/k1\ngroup\t/h/k1\nlimit\tdata\t4294967296\n"));
	assert_string_equal(plan.forwarder, "/f");
	assert_string_equal(plan.proxy_host, "h");
	assert_string_equal(plan.proxy_port, "8");
	assert_int_equal(plan.group_count, 2);
	assert_string_equal(plan.groups[1], "/h/k1");
	assert_int_equal(plan.limits[0].most, 4294967296);
	assert_null(read_text("tier\tN\n"));
	assert_null(plan.forwarder);
	assert_int_equal(plan.group_count, 0);
}

/* A plan that is not understood must not be carried out in part. */
CASE(refuses_what_it_does_not_know)
{
	static const char *const wrong[] = {
	    "tier\tX",
	    "tier\tNN",
	    "tier",
	    "net\tall",
	    "become\t-1\t0",
	    "become\tx\t1",
	    "port\t1x",
	    "ro\t/usr",
	    "rx\t/usr\t/usr",
	    "limit\tstack\t5",
	    "limit\tcore\t5x",
	    "ro\t/a\t/b\t/c",
	    "cwd",
	    "group",
	    "group\ta\ngroup\tb\ngroup\tc\ngroup\td",
	    "net\town\nforwarder\t/f",
	    "forwarder\t/f\nproxy\th\t8",
	    "proxy\th",
	};

	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
		assert_non_null(read_text(wrong[i]));
}

CASE(refuses_more_than_it_has_room_for)
{
	size_t at = 0;

	for (int i = 0; i <= PLAN_MOUNTS_MAX; i++)
		at += (size_t)snprintf(text + at, sizeof text - at, "ro\t/%d\t/%d\n", i,
				       i);
	assert_non_null(plan_read(&plan, text));
	assert_int_equal(plan.mount_count, PLAN_MOUNTS_MAX);
}

RUN(cmocka_unit_test(reads_every_kind_of_line), cmocka_unit_test(reads_the_other_tiers),
    cmocka_unit_test(reads_groups_and_the_way_to_the_proxy),
    cmocka_unit_test(refuses_what_it_does_not_know),
    cmocka_unit_test(refuses_more_than_it_has_room_for))

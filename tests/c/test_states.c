// SPDX-License-Identifier: MIT
/* The two state tables, walked: what a reader relies on is true of every row. */
#include "kernelmgr/call.h"
#include "kernelmgr/kernel.h"

#include "testing.h"

#define TO(id) (1u << KERNEL_##id)
static const struct state_row kernel_rows[] = {
#define X(id, text, next, deadline_s, then) {text, next, deadline_s, then},
    KERNEL_STATES(X)
#undef X
};
#undef TO
#define TO(id) (1u << CALL_##id)
static const struct state_row call_rows[] = {
#define X(id, text, next, deadline_s, then) {text, next, deadline_s, then},
    CALL_STATES(X)
#undef X
};

static void every_state_is_reached(const struct state_row *rows, int count)
{
	unsigned reached = 1;

	for (int round = 0; round < count; round++)
		for (int i = 0; i < count; i++)
			if (reached & (1u << i))
				reached |= rows[i].next;
	assert_int_equal(reached, (1u << count) - 1);
}

static void only_the_last_is_final(const struct state_row *rows, int count)
{
	for (int i = 0; i < count; i++)
		assert_int_equal(rows[i].next == 0, i == count - 1);
}

static void names_differ(const struct state_row *rows, int count)
{
	for (int i = 0; i < count; i++)
		for (int k = 0; k < i; k++)
			assert_string_not_equal(rows[i].name, rows[k].name);
}

/* waits: states that rightly last as long as somebody else likes. */
static void others_have_a_deadline(const struct state_row *rows, int count,
				   unsigned waits)
{
	for (int i = 0; i < count; i++) {
		bool has = rows[i].deadline_s != 0;

		assert_int_equal(has, rows[i].next != 0 && !(waits & (1u << i)));
		assert_int_equal(has, rows[i].then[0] != '\0');
	}
}

CASE(kernel_states_are_sound)
{
	every_state_is_reached(kernel_rows, KERNEL_STATE_COUNT);
	only_the_last_is_final(kernel_rows, KERNEL_STATE_COUNT);
	names_differ(kernel_rows, KERNEL_STATE_COUNT);
	/* IDLE lasts until a call comes; BUSY has the call's deadline. */
	others_have_a_deadline(kernel_rows, KERNEL_STATE_COUNT,
			       1u << KERNEL_IDLE | 1u << KERNEL_BUSY);
}

CASE(call_states_are_sound)
{
	every_state_is_reached(call_rows, CALL_STATE_COUNT);
	only_the_last_is_final(call_rows, CALL_STATE_COUNT);
	names_differ(call_rows, CALL_STATE_COUNT);
	/* QUEUED lasts as long as the calls before it, which all have deadlines. */
	others_have_a_deadline(call_rows, CALL_STATE_COUNT, 1u << CALL_QUEUED);
}

RUN(cmocka_unit_test(kernel_states_are_sound), cmocka_unit_test(call_states_are_sound))

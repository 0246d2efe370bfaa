// SPDX-License-Identifier: MIT
#include "wire/sign.h"

#include <sodium.h>

#include "testing.h"

static const struct sign_part parts[SIGN_PARTS] = {
    {"what do ya ", 11}, {"want for", 8}, {" nothing", 8}, {"?", 1}};
/* RFC 4231, test case 2. */
static const char rfc4231[] =
    "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";

CASE(a_signature_is_the_hmac_of_the_parts_in_order)
{
	char signature[SIGN_HEX + 1];

	sign_parts("Jefe", parts, signature);
	assert_string_equal(signature, rfc4231);
	assert_true(sign_check("Jefe", parts, rfc4231, SIGN_HEX));
}

CASE(a_short_a_long_and_a_wrong_signature_are_refused)
{
	char wrong[SIGN_HEX + 1];

	assert_false(sign_check("Jefe", parts, rfc4231, SIGN_HEX - 1));
	assert_false(sign_check("Jefe", parts, "", 0));
	assert_false(sign_check("Jefe", parts, rfc4231, SIGN_HEX + 1));
	for (int i = 0; i < SIGN_HEX; i++) {
		memcpy(wrong, rfc4231, sizeof wrong);
		wrong[i] = wrong[i] == '0' ? '1' : '0';
		assert_false(sign_check("Jefe", parts, wrong, SIGN_HEX));
	}
	assert_false(sign_check("jefe", parts, rfc4231, SIGN_HEX));
}

CASE(keys_are_long_and_differ)
{
	char a[SIGN_KEY_HEX + 1], b[SIGN_KEY_HEX + 1];

	sign_new_key(a);
	sign_new_key(b);
	assert_int_equal(strlen(a), SIGN_KEY_HEX);
	assert_string_not_equal(a, b);
}

static void make(char out[SIGN_HEX + 1], int number)
{
	unsigned char hash[32];

	crypto_generichash(hash, sizeof hash, (const unsigned char *)&number,
			   sizeof number, NULL, 0);
	sodium_bin2hex(out, SIGN_HEX + 1, hash, sizeof hash);
}

CASE(a_replay_is_noticed_while_it_is_remembered)
{
	struct replay_guard guard = {0};
	char signature[SIGN_HEX + 1];

	for (int i = 0; i < REPLAY_MEMORY * 3; i++) {
		make(signature, i);
		assert_true(replay_is_new(&guard, signature));
		assert_false(replay_is_new(&guard, signature));
	}
	for (int i = REPLAY_MEMORY * 2; i < REPLAY_MEMORY * 3; i++) {
		make(signature, i);
		assert_false(replay_is_new(&guard, signature));
	}
	make(signature, 0); /* long forgotten: the price of bounded memory */
	assert_true(replay_is_new(&guard, signature));
	replay_finish(&guard);
}

RUN(cmocka_unit_test(a_signature_is_the_hmac_of_the_parts_in_order),
    cmocka_unit_test(a_short_a_long_and_a_wrong_signature_are_refused),
    cmocka_unit_test(keys_are_long_and_differ),
    cmocka_unit_test(a_replay_is_noticed_while_it_is_remembered))

// SPDX-License-Identifier: MIT
#include "kernelmgr/tokens.h"

#include <fcntl.h>
#include <sodium.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "testing.h"
#include "wire/mem.h"

#define SHARED "viv_for-all-of-us"

static struct config config;
static struct tokens tokens;
static struct err err;

/* "NAME HASH" */
static const char *line(const char *user, const char *token, char out[160])
{
	unsigned char hash[TOKEN_HASH_SIZE];
	char hex[2 * TOKEN_HASH_SIZE + 1];

	crypto_generichash(hash, sizeof hash, (const unsigned char *)token,
			   strlen(token), NULL, 0);
	sodium_bin2hex(hex, sizeof hex, hash, sizeof hash);
	snprintf(out, 160, "%s %s", user, hex);
	return out;
}

static void write_tokens(const char *text)
{
	owned(close_fd) int fd = open(config.tokens_file, O_WRONLY | O_TRUNC);

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static int set_up(void **state)
{
	(void)state;
	memset(&config, 0, sizeof config);
	snprintf(config.tokens_file, sizeof config.tokens_file,
		 "/tmp/tokens-test-XXXXXX");
	int fd = mkstemp(config.tokens_file);
	close_fd(&fd);
	return sodium_init() < 0;
}

static int tear_down(void **state)
{
	(void)state;
	tokens_close(&tokens);
	return unlink(config.tokens_file);
}

static bool admits(const char *token, const char *user)
{
	struct pass pass;

	if (!tokens_admit(&tokens, token, &pass))
		return false;
	assert_string_equal(pass.user, user);
	assert_true(tokens_honour(&tokens, &pass));
	return true;
}

CASE(each_token_has_its_user)
{
	char a[160], b[160], text[400];

	snprintf(text, sizeof text, "\t%s # laptop\r\n\n# none\n%s",
		 line("ann", "ta", a), line("bob", "tb", b));
	write_tokens(text);
	strcpy(config.token, SHARED);
	assert_int_equal(tokens_open(&tokens, &config, &err), 0);
	assert_int_equal(tokens.count, 2);
	assert_true(admits("ta", "ann"));
	assert_true(admits("tb", "bob"));
	assert_true(admits(SHARED, ""));
	assert_false(admits("tc", ""));
	assert_false(admits("", ""));
	assert_false(admits("ann", ""));
	assert_false(admits(a, "")); /* its hash is no token */
}

CASE(without_a_shared_token_nothing_is_shared)
{
	assert_int_equal(tokens_open(&tokens, &config, &err), 0);
	assert_false(admits("", ""));
	assert_false(admits(SHARED, ""));
	assert_false(tokens_honour(&tokens, &(struct pass){.id = 0}));
}

CASE(a_pass_is_good_as_long_as_its_line_stands)
{
	char text[160];
	struct pass pass;

	write_tokens(line("ann", "ta", text));
	assert_int_equal(tokens_open(&tokens, &config, &err), 0);
	assert_true(tokens_admit(&tokens, "ta", &pass));
	assert_int_equal(tokens_read(&tokens, &err), 0);
	assert_true(tokens_honour(&tokens, &pass));
	write_tokens(line("bob", "ta", text));
	assert_int_equal(tokens_read(&tokens, &err), 0);
	assert_false(tokens_honour(&tokens, &pass));
	write_tokens("");
	assert_int_equal(tokens_read(&tokens, &err), 0);
	assert_false(tokens_honour(&tokens, &pass));
	assert_false(admits("ta", ""));
}

CASE(what_cannot_be_read_changes_nothing)
{
	char text[160];

	write_tokens(line("ann", "ta", text));
	assert_int_equal(tokens_open(&tokens, &config, &err), 0);
	write_tokens("ann x");
	assert_int_equal(tokens_read(&tokens, &err), -1);
	assert_int_equal(err.kind, ERR_CONFIG);
	assert_true(admits("ta", "ann"));
	write_tokens("");
	chmod(config.tokens_file, 0644);
	assert_int_equal(tokens_read(&tokens, &err), -1);
	assert_true(admits("ta", "ann"));
}

#define EACH(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
RUN(EACH(each_token_has_its_user), EACH(without_a_shared_token_nothing_is_shared),
    EACH(a_pass_is_good_as_long_as_its_line_stands),
    EACH(what_cannot_be_read_changes_nothing))

// SPDX-License-Identifier: MIT
#include "kernelmgr/config.h"

#include "testing.h"
#include "wire/mem.h"

static int load(struct config *config, struct err *err, char *const argv[],
		char *const env[])
{
	enum config_verb verb;
	int argc = 0;

	while (argv[argc])
		argc++;
	return config_load(config, &verb, argc, argv, env, err);
}
#define ARGS(...) ((char *const[]){T("vivarium"), ##__VA_ARGS__, NULL})
#define T(text) ((char *)(uintptr_t)(text))

CASE(defaults_hold_without_settings)
{
	struct config config;
	struct err err;

	assert_int_equal(load(&config, &err, ARGS(), ARGS()), 0);
	assert_string_equal(config.host, "127.0.0.1");
	assert_int_equal(config.port, 8000);
	assert_int_equal(config.max_timeout_s, 300);
	assert_int_equal(config.output_limit, 20000);
	assert_int_equal(config_output_chars(&config), 20000);
}

CASE(flags_win_over_the_environment)
{
	struct config config;
	struct err err;
	char *const env[] = {T("VIVARIUM_PORT=1"), T("VIVARIUM_MAX_IMAGES=2"), NULL};

	assert_int_equal(load(&config, &err, ARGS(T("--port"), T("9")), env), 0);
	assert_int_equal(config.port, 9);
	assert_int_equal(config.max_images, 2);
	assert_int_equal(load(&config, &err, ARGS(T("--port=10")), env), 0);
	assert_int_equal(config.port, 10);
}

CASE(a_plus_adds_to_the_default_tools)
{
	struct config config;
	struct err err;

	assert_int_equal(
	    load(&config, &err, ARGS(T("--tools=+restore, +branch")), ARGS()), 0);
	assert_true(config_offers_tool(&config, "restore"));
	assert_true(config_offers_tool(&config, "branch"));
	assert_true(config_offers_tool(&config, "undo"));
	assert_false(config_offers_tool(&config, "diff"));
	assert_int_equal(load(&config, &err, ARGS(T("--tools=diff")), ARGS()), 0);
	assert_true(config_offers_tool(&config, "diff"));
	assert_false(config_offers_tool(&config, "undo"));
}

CASE(a_bad_value_is_refused_with_name_value_and_range)
{
	struct config config;
	struct err err;
	char *const env[] = {T("VIVARIUM_PORT=65536"), NULL};

	assert_int_equal(load(&config, &err, ARGS(), env), -1);
	assert_int_equal(err.kind, ERR_CONFIG);
	assert_string_equal(
	    err.msg, "VIVARIUM_PORT='65536' is not a whole number from 0 to 65535");
	static const char *const bad[] = {"--port=",
					  "--port=8x",
					  "--port=-1",
					  "--state-summary=2",
					  "--log-level=loud",
					  "--host=",
					  "--nonsense=1",
					  "--port",
					  "--user-header=X User",
					  "--user-header=X-User:",
					  "--user-header=X-Üser"};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_int_equal(load(&config, &err, ARGS(T(bad[i])), ARGS()), -1);
}

CASE(limits_may_be_decimal_or_automatic_and_have_a_least_value)
{
	struct config config;
	struct err err;
	static const char *const bad[] = {
	    "--kernel-cpus=0.001", "--kernel-cpus=1.2345", "--kernel-cpus=-1",
	    "--kernel-cpus=1.x",   "--kernel-cpus=.",      "--kernel-cpus=1,5",
	    "--kernel-cpus=1025",  "--kernel-pids=auto",   "--kernel-pids=31",
	    "--kernel-memory=1",   "--kernel-memory=-1",   "--kernel-cpus=99999999999"};

	assert_int_equal(load(&config, &err, ARGS(), ARGS()), 0);
	assert_int_equal(config.kernel_memory, CONFIG_AUTO);
	assert_int_equal(config.kernel_cpus, 0);
	assert_int_equal(load(&config, &err,
			      ARGS(T("--kernel-cpus=1.5"), T("--kernel-memory=0"),
				   T("--kernel-pids=32")),
			      ARGS()),
			 0);
	assert_int_equal(config.kernel_cpus, 1500);
	assert_int_equal(config.kernel_memory, 0);
	assert_int_equal(load(&config, &err, ARGS(T("--kernel-cpus=2.125")), ARGS()),
			 0);
	assert_int_equal(config.kernel_cpus, 2125);
	assert_int_equal(load(&config, &err, ARGS(T("--kernel-cpus=3")), ARGS()), 0);
	assert_int_equal(config.kernel_cpus, 3000);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_int_equal(load(&config, &err, ARGS(T(bad[i])), ARGS()), -1);
	assert_int_equal(load(&config, &err, ARGS(T("--kernel-pids=31")), ARGS()), -1);
	assert_string_equal(err.msg,
			    "--kernel-pids='31' is not a whole number: 0, or 32 to "
			    "1048576");
}

CASE(bytes_may_have_a_unit)
{
	enum { REFUSED = -2 };
	static const struct {
		const char *given;
		int64_t bytes; /* REFUSED */
	} cases[] = {
	    {"--kernel-memory=512M", 512LL << 20},
	    {"--kernel-memory=4g", 4LL << 30},
	    {"--kernel-memory=1T", 1LL << 40},
	    {"--kernel-memory=262144K", 256LL << 20},
	    {"--kernel-memory=300000001", 300000001},
	    {"--kernel-memory=auto", CONFIG_AUTO},
	    {"--kernel-memory=4GB", REFUSED},
	    {"--kernel-memory=M", REFUSED},
	    {"--kernel-memory=4 G", REFUSED},
	    {"--kernel-memory=64M", REFUSED},
	    {"--kernel-memory=-1G", REFUSED},
	    {"--kernel-memory=9999999999T", REFUSED},
	    {"--kernel-pids=1K", REFUSED},
	};
	struct config config;
	struct err err;

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		bool good = cases[i].bytes != REFUSED;
		int rc = load(&config, &err, ARGS(T(cases[i].given)), ARGS());

		assert_int_equal(rc, good ? 0 : -1);
		if (good)
			assert_int_equal(config.kernel_memory, cases[i].bytes);
	}
	assert_int_equal(load(&config, &err, ARGS(T("--kernel-memory=64M")), ARGS()),
			 -1);
	assert_string_equal(
	    err.msg, "--kernel-memory='64M' is not a number of bytes that it takes: "
		     "0, or 128M to 1024T");
}

CASE(verbs_and_choices_are_understood)
{
	struct config config;
	enum config_verb verb;
	struct err err;

	assert_int_equal(config_load(&config, &verb, 4,
				     ARGS(T("--check"), T("--log-level"), T("DEBUG")),
				     ARGS() + 1, &err),
			 0);
	assert_int_equal(verb, CONFIG_CHECK);
	assert_int_equal(config.log_level, 3);
}

CASE(what_is_printed_can_be_loaded_again)
{
	struct config config, again;
	struct err err;
	char text[8192] = "", *lines[64] = {0};
	size_t count = 0;
	FILE *out = fmemopen(text, sizeof text, "w");

	assert_int_equal(
	    load(&config, &err, ARGS(T("--log-format=json"), T("--port=1")), ARGS()),
	    0);
	config_print(&config, out);
	fclose(out);
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		lines[count++] = line;
	assert_int_equal(load(&again, &err, ARGS(), lines), 0);
	assert_int_equal(again.by_flag, 0);
	again.by_flag = config.by_flag;
	assert_memory_equal(&config, &again, sizeof config);
}

CASE(a_small_result_limit_lowers_the_output_limit)
{
	struct config config;
	struct err err;

	assert_int_equal(load(&config, &err, ARGS(T("--result-limit=262144")), ARGS()),
			 0);
	assert_int_equal(config_output_chars(&config), 262144 / 4 * 3 / 48);
}

static int load_one(struct config *config, const char *first, const char *second)
{
	char *const env[] = {T(first), T(second), NULL};
	struct err err;

	return load(config, &err, ARGS(), env);
}

CASE(another_address_needs_tokens_or_a_promise)
{
	static const char *const enough[] = {
	    "VIVARIUM_TOKEN=x", "VIVARIUM_TOKENS_FILE=x", "VIVARIUM_ANONYMOUS=1"};
	static const char *const too_little[] = {"VIVARIUM_PROXY_SECRET=x",
						 "VIVARIUM_USER_HEADER=x",
						 "VIVARIUM_TLS_CERT=x", "HOME=x"};
	struct config config;
	struct err err;

	for (size_t i = 0; i < COUNT_OF(enough); i++) {
		assert_int_equal(load_one(&config, "VIVARIUM_HOST=::", enough[i]), 0);
		assert_int_equal(config_check_exposure(&config, &err), 0);
	}
	for (size_t i = 0; i < COUNT_OF(too_little); i++) {
		assert_int_equal(load_one(&config, "VIVARIUM_HOST=::", too_little[i]),
				 0);
		assert_int_equal(config_check_exposure(&config, &err), -1);
		assert_non_null(strstr(err.msg, "VIVARIUM_TOKENS_FILE"));
	}
}

CASE(users_by_header_need_what_a_kernel_does_not_know)
{
	static const char *const enough[] = {"VIVARIUM_TOKEN=x",
					     "VIVARIUM_TOKENS_FILE=x",
					     "VIVARIUM_PROXY_SECRET=sixteen letters!"};
	static const char header[] = "VIVARIUM_USER_HEADER=X-User";
	struct config config;
	struct err err;

	for (size_t i = 0; i < COUNT_OF(enough); i++) {
		assert_int_equal(load_one(&config, header, enough[i]), 0);
		assert_int_equal(config_check_users(&config, false, &err), 0);
	}
	assert_int_equal(load_one(&config, header, "VIVARIUM_ANONYMOUS=1"), 0);
	assert_int_equal(config_check_users(&config, true, &err), 0);
	assert_int_equal(config_check_users(&config, false, &err), -1);
	assert_non_null(strstr(err.msg, "VIVARIUM_PROXY_SECRET"));
	assert_int_equal(
	    load_one(&config, header, "VIVARIUM_PROXY_SECRET=fifteen letters"), 0);
	assert_int_equal(config_check_users(&config, true, &err), -1);
	assert_non_null(strstr(err.msg, "VIVARIUM_PROXY_SECRET has 15 characters"));
	assert_int_equal(load_one(&config, "HOME=x", "VIVARIUM_ANONYMOUS=1"), 0);
	assert_int_equal(config_check_users(&config, false, &err), 0);
}

CASE(certificate_and_key_belong_together)
{
	struct config config;
	struct err err;

	assert_int_equal(load_one(&config, "VIVARIUM_TLS_CERT=x", "HOME=x"), 0);
	assert_int_equal(config_check_tls(&config, &err), -1);
	assert_string_equal(err.msg,
			    "VIVARIUM_TLS_CERT needs VIVARIUM_TLS_KEY beside it");
	assert_int_equal(load_one(&config, "VIVARIUM_TLS_CERT=x", "VIVARIUM_TLS_KEY=x"),
			 0);
	assert_int_equal(config_check_tls(&config, &err), 0);
}

CASE(hosts_that_nobody_can_name_are_refused)
{
	static const char *const bad[] = {"VIVARIUM_ALLOWED_HOSTS=*",
					  "VIVARIUM_ALLOWED_HOSTS=a.example, *.example",
					  "VIVARIUM_ALLOWED_HOSTS=https://a.example"};
	struct config config;
	struct err err;

	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		assert_int_equal(load_one(&config, bad[i], "HOME=x"), 0);
		assert_int_equal(config_check_hosts(&config, &err), -1);
		assert_non_null(strstr(err.msg, "VIVARIUM_ALLOWED_HOSTS names '"));
	}
	assert_int_equal(load_one(&config,
				  "VIVARIUM_ALLOWED_HOSTS=a.example:8000, [fd00::5] "
				  "fd00::5",
				  "HOME=x"),
			 0);
	assert_int_equal(config_check_hosts(&config, &err), 0);
}

CASE(secrets_are_hidden_and_nothing_else)
{
	char argv[][24] = {"vivarium", "--token",     "tell me", "--token=tell",
			   "--port",   "--token-all", "--token"};
	char env[][32] = {"VIVARIUM_TOKEN=tell", "VIVARIUM_PROXY_SECRET=tell",
			  "VIVARIUM_TOKENS_FILE=keep", "TOKEN=keep", "VIVARIUM_TOKEN"};
	char *args[COUNT_OF(argv) + 1] = {0}, *vars[COUNT_OF(env) + 1] = {0};

	for (size_t i = 0; i < COUNT_OF(argv); i++)
		args[i] = argv[i];
	for (size_t i = 0; i < COUNT_OF(env); i++)
		vars[i] = env[i];
	config_hide_secrets(args, vars);
	assert_string_equal(argv[2], "*******");
	assert_string_equal(argv[3], "--token=****");
	assert_string_equal(argv[5], "--token-all");
	assert_string_equal(env[0], "VIVARIUM_TOKEN=****");
	assert_string_equal(env[1], "VIVARIUM_PROXY_SECRET=****");
	assert_string_equal(env[2], "VIVARIUM_TOKENS_FILE=keep");
	assert_string_equal(env[3], "TOKEN=keep");
}

RUN(cmocka_unit_test(defaults_hold_without_settings),
    cmocka_unit_test(flags_win_over_the_environment),
    cmocka_unit_test(a_plus_adds_to_the_default_tools),
    cmocka_unit_test(a_bad_value_is_refused_with_name_value_and_range),
    cmocka_unit_test(bytes_may_have_a_unit),
    cmocka_unit_test(limits_may_be_decimal_or_automatic_and_have_a_least_value),
    cmocka_unit_test(verbs_and_choices_are_understood),
    cmocka_unit_test(what_is_printed_can_be_loaded_again),
    cmocka_unit_test(a_small_result_limit_lowers_the_output_limit),
    cmocka_unit_test(another_address_needs_tokens_or_a_promise),
    cmocka_unit_test(users_by_header_need_what_a_kernel_does_not_know),
    cmocka_unit_test(certificate_and_key_belong_together),
    cmocka_unit_test(hosts_that_nobody_can_name_are_refused),
    cmocka_unit_test(secrets_are_hidden_and_nothing_else))

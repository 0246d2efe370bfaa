// SPDX-License-Identifier: MIT
#include "kernelmgr/proxy.h"

#include "kernelmgr/launch.h"
#include "testing.h"
#include "wire/mem.h"

CASE(what_is_a_proxy_is_read)
{
	static const struct {
		const char *url, *host, *credentials;
		int port;
	} good[] = {
	    {"http://a:1", "a", "", 1},
	    {"HTTP://proxy.example:3128/", "proxy.example", "", 3128},
	    {"http://me:p%40ss@10.0.0.1:65535", "10.0.0.1", "me:p%40ss", 65535},
	    {"http://me:p@ss@a:8", "a", "me:p@ss", 8},
	    {"http://[::1]:3128", "::1", "", 3128},
	    {"http://u@[fe80::1]:1/", "fe80::1", "u", 1},
	};
	struct proxy proxy;

	for (size_t i = 0; i < COUNT_OF(good); i++) {
		assert_true(proxy_read(&proxy, good[i].url));
		assert_string_equal(proxy.host, good[i].host);
		assert_string_equal(proxy.credentials, good[i].credentials);
		assert_int_equal(proxy.port, good[i].port);
	}
}

CASE(what_is_none_is_refused)
{
	static const char *const bad[] = {"",
					  "a:1",
					  "https://a:1",
					  "socks5://a:1",
					  "http://a",
					  "http://:1",
					  "http://a:",
					  "http://a:0",
					  "http://a:65536",
					  "http://a:1x",
					  "http://a:1/x",
					  "http://a:-1",
					  "http://[::1]",
					  "http://[::1:1",
					  "http://a b:1",
					  "http://a\t:1",
					  "http://u p@a:1",
					  "http://a:1//",
					  "http://a:+1"};
	struct proxy proxy;

	for (size_t i = 0; i < COUNT_OF(bad); i++)
		if (proxy_read(&proxy, bad[i]))
			fail_msg("taken for a proxy: '%s'", bad[i]);
	char host[PROXY_HOST_SIZE + 20] = "http://";
	memset(host + 7, 'a', PROXY_HOST_SIZE);
	memcpy(host + 7 + PROXY_HOST_SIZE, ":1", 3);
	assert_false(proxy_read(&proxy, host));
}

#define T(text) ((char *)(uintptr_t)(text))

CASE(the_variables_have_to_agree)
{
	struct proxy proxy;
	struct err err;
	char *const none[] = {T("no_proxy=a"), T("http_proxy="), NULL};
	char *const two[] = {T("http_proxy=http://a:1"),
			     T("HTTPS_PROXY=http://u:p@A:1"), NULL};
	char *const other[] = {T("https_proxy=http://a:1"), T("HTTP_PROXY=http://a:2"),
			       NULL};
	char *const secret[] = {T("https_proxy=ftp://u:s3cret@a:1"), NULL};

	assert_int_equal(proxy_find(&proxy, none, &err), 0);
	assert_string_equal(proxy.host, "");
	assert_int_equal(proxy_find(&proxy, two, &err), 0);
	assert_string_equal(proxy.credentials, "u:p");
	assert_int_equal(proxy_find(&proxy, other, &err), -1);
	assert_int_equal(err.kind, ERR_CONFIG);
	assert_int_equal(proxy_find(&proxy, secret, &err), -1);
	assert_null(strstr(err.msg, "s3cret"));
}

CASE(the_environment_names_it_for_all_programs)
{
	const struct proxy proxy = {.host = "::1", .port = 5, .credentials = "u:p"};
	char *env[PROXY_VARIABLES + 1] = {NULL};

	assert_int_equal(proxy_env(&proxy, env), PROXY_VARIABLES);
	assert_string_equal(launch_env_get(env, "http_proxy"), "http://u:p@[::1]:5");
	assert_string_equal(launch_env_get(env, "HTTPS_PROXY"), "http://u:p@[::1]:5");
	assert_string_equal(launch_env_get(env, "no_proxy"), "localhost,127.0.0.1,::1");
	for (int i = 0; i < PROXY_VARIABLES; i++) {
		assert_true(proxy_is_variable(env[i]));
		free(env[i]);
	}
	assert_true(proxy_is_variable("ALL_PROXY=socks5://a"));
	assert_false(proxy_is_variable("http_proxy_log=1"));
	assert_false(proxy_is_variable("PATH=/bin"));
}

CASE(a_name_becomes_an_address)
{
	struct proxy proxy = {.host = "localhost", .port = 1};

	proxy_resolve(&proxy);
	assert_string_equal(proxy.host, "127.0.0.1");
	proxy = (struct proxy){.host = "::1", .port = 1};
	proxy_resolve(&proxy);
	assert_string_equal(proxy.host, "::1");
	proxy = (struct proxy){.host = "nowhere.invalid", .port = 1};
	proxy_resolve(&proxy);
	assert_string_equal(proxy.host, "nowhere.invalid");
}

RUN(cmocka_unit_test(what_is_a_proxy_is_read),
    cmocka_unit_test(what_is_none_is_refused),
    cmocka_unit_test(the_variables_have_to_agree),
    cmocka_unit_test(the_environment_names_it_for_all_programs),
    cmocka_unit_test(a_name_becomes_an_address))

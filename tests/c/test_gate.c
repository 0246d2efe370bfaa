// SPDX-License-Identifier: MIT
#include "wire/gate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "wire/mem.h"

static const struct gate plain = {.address = "127.0.0.1"};
static const struct gate configured = {
    .address = "192.168.7.9",
    .allowed =
	"py.example.org, Lab.Example.org:8443 fd00::7,[fd00::8]:99;odd,\n10.0.0.3",
};

static void expect(bool allowed, const struct gate *gate, const char *host)
{
	if (gate_allows_host(gate, host) != allowed)
		fail_msg("'%s' is %s", host, allowed ? "refused" : "allowed");
}

static void loopback_and_single_labels_are_let_in(void **state)
{
	static const char *const hosts[] = {
	    "localhost",       "LocalHost", "localhost:8000", "localhost:1",
	    "localhost:65535", "127.0.0.1", "127.0.0.1:80",   "127.1.2.3",
	    "127.255.255.255", "[::1]",     "[::1]:8000",     "vivarium",
	    "vivarium:8000",   "VIVARIUM",  "my_box-2",       "a",
	    "0x7f000001g",     "1e100",     "xn--bcher-kva",  "2130706433x",
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(hosts); i++)
		expect(true, &plain, hosts[i]);
}

static void every_other_spelling_is_refused(void **state)
{
	static const char *const hosts[] = {
	    "",
	    ":",
	    ":8000",
	    "evil.example",
	    "evil.example:8000",
	    "localhost.evil.example",
	    "evil.localhost",
	    "localhost.",
	    "localhost.:8000",
	    "vivarium.",
	    ".localhost",
	    "..",
	    "127.0.0.1.",
	    "127.0.0.1.evil.example",
	    "localhost:",
	    "localhost:0",
	    "localhost:080",
	    "localhost:65536",
	    "localhost:99999999999999999999",
	    "localhost:+80",
	    "localhost:-80",
	    "localhost: 80",
	    "localhost:80 ",
	    "localhost:80a",
	    "localhost:80:90",
	    "localhost:evil",
	    " localhost",
	    "localhost ",
	    "local host",
	    "localhost,evil.example",
	    "localhost, localhost",
	    "localhost/evil",
	    "localhost\\evil",
	    "localhost?x",
	    "localhost#x",
	    "user@localhost",
	    "user:pw@localhost",
	    "localhost@evil.example",
	    "localhost%2eevil",
	    "localhost\tx",
	    "localhost\x7f",
	    "l\xc3\xb6"
	    "calhost",
	    "\xef\xbc\x91\xef\xbc\x92\xef\xbc\x97", /* full-width 127 */
	    "http://localhost",
	    "//localhost",
	    "2130706433",
	    "0",
	    "1",
	    "017700000001",
	    "0177.0.0.1",
	    "0x7f000001",
	    "0X7F000001",
	    "0x7f.0.0.1",
	    "0x",
	    "127.1",
	    "127.0.1",
	    "127.0.0.01",
	    "127.0.0.256",
	    "127.0.0.1.1",
	    "127.0.0.",
	    "127..0.1",
	    "128.0.0.1",
	    "10.0.0.1",
	    "0.0.0.0",
	    "192.168.7.9",
	    "::1",
	    "[::1",
	    "::1]",
	    "[]",
	    "[",
	    "[::1]x",
	    "[::1].",
	    "[::1]:",
	    "[::1]:x",
	    "[::1]evil.example",
	    "[::]",
	    "[0:0:0:0:0:0:0:1]",
	    "[::01]",
	    "[::ffff:127.0.0.1]",
	    "[::127.0.0.1]",
	    "[::1%25lo]",
	    "[fe80::1%lo]",
	    "[fd00::7]",
	    "[localhost]",
	    "[127.0.0.1]",
	    "*",
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(hosts); i++)
		expect(false, &plain, hosts[i]);
}

static void a_name_is_at_most_as_long_as_dns_allows(void **state)
{
	char label[65], name[512];

	(void)state;
	memset(label, 'a', sizeof label);
	label[63] = '\0';
	expect(true, &plain, label);
	label[63] = 'a';
	label[64] = '\0';
	expect(false, &plain, label);
	memset(name, 'a', sizeof name);
	name[sizeof name - 1] = '\0';
	expect(false, &plain, name);
}

static void the_address_listened_on_is_let_in(void **state)
{
	static const struct gate v6 = {.address = "FD00::5"};

	(void)state;
	expect(true, &configured, "192.168.7.9");
	expect(true, &configured, "192.168.7.9:8000");
	expect(false, &configured, "192.168.7.90");
	expect(false, &configured, "192.168.7.8");
	expect(false, &configured, "[192.168.7.9]x");
	expect(false, &configured, "[192.168.7.9]");
	expect(true, &v6, "[fd00::5]");
	expect(true, &v6, "[fd00::5]:80");
	expect(false, &v6, "fd00::5");
	expect(false, &v6, "[fd00:0::5]");
}

static void names_configured_are_let_in_and_only_they(void **state)
{
	static const char *const in[] = {
	    "py.example.org",    "PY.example.ORG:443", "lab.example.org",
	    "lab.example.org:1", "[fd00::7]",          "[FD00::7]:80",
	    "10.0.0.3",
	};
	static const char *const out[] = {
	    "example.org",
	    "a.py.example.org",
	    "py.example.org.",
	    "py.example.or",
	    "py.example.orgg",
	    "lab.example.org:8443:1",
	    "10.0.0.33",
	    "py.example.org, Lab.Example.org",
	    "[fd00::8]",
	    "[fd00::]",
	    "",
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(in); i++)
		expect(true, &configured, in[i]);
	for (size_t i = 0; i < COUNT_OF(out); i++)
		expect(false, &configured, out[i]);
	expect(true, &(struct gate){.allowed = "[fd00::8]:99"}, "[fd00::8]");
	expect(false, &(struct gate){.allowed = " ,, "}, "evil.example");
	expect(true, &(struct gate){0}, "localhost");
	expect(false, &(struct gate){0}, "evil.example");
}

static void an_origin_passes_by_its_host_over_http_and_https(void **state)
{
	static const char *const in[] = {
	    "http://localhost",       "https://localhost:3000", "HTTP://LOCALHOST",
	    "http://127.0.0.1:6274",  "http://[::1]:5173",      "http://vivarium",
	    "https://py.example.org",
	};
	static const char *const out[] = {
	    "",
	    "null",
	    "localhost",
	    "http:",
	    "http://",
	    "http:///",
	    "http:localhost",
	    "http//localhost",
	    "http://localhost/",
	    "http://localhost/path",
	    "http://localhost:3000/",
	    "http://user@localhost",
	    "http://evil.example",
	    "https://evil.example:443",
	    "http://localhost.evil.example",
	    "http://localhost, http://evil.example",
	    "http://2130706433",
	    "http:// localhost",
	    " http://localhost",
	    "ftp://localhost",
	    "file://",
	    "file://localhost",
	    "ws://localhost",
	    "chrome-extension://abcdefgh",
	    "app://localhost",
	    "javascript:alert(1)",
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(in); i++)
		if (!gate_allows_origin(&configured, in[i]))
			fail_msg("'%s' is refused", in[i]);
	for (size_t i = 0; i < COUNT_OF(out); i++)
		if (gate_allows_origin(&configured, out[i]))
			fail_msg("'%s' is allowed", out[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(loopback_and_single_labels_are_let_in),
	    cmocka_unit_test(every_other_spelling_is_refused),
	    cmocka_unit_test(a_name_is_at_most_as_long_as_dns_allows),
	    cmocka_unit_test(the_address_listened_on_is_let_in),
	    cmocka_unit_test(names_configured_are_let_in_and_only_they),
	    cmocka_unit_test(an_origin_passes_by_its_host_over_http_and_https),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

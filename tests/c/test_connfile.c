// SPDX-License-Identifier: MIT
#include "wire/connfile.h"

#include <fcntl.h>
#include <jansson.h>
#include <unistd.h>

#include "testing.h"
#include "wire/mem.h"

#define KEY "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

CASE(the_memory_file_holds_what_jupyter_expects_and_cannot_be_changed)
{
	const struct connfile_snapshot snapshot = {.store = "/s",
						   .spool = "/s/spool",
						   .generation = 3,
						   .manifest = "/s/3.json"};
	const struct connfile connection = {.key = KEY,
					    .runtime_dir = "/run/x \"y\"",
					    .peer_pid = 42,
					    .stream_split = 7,
					    .summary_max = 8,
					    .cell = 5,
					    .snapshot = &snapshot};
	struct err err;
	owned(close_fd) int fd = connfile_memfd(&connection, &err);
	char text[1024] = "";

	assert_true(fd >= 0);
	assert_true(read(fd, text, sizeof text - 1) > 0); /* it stands at its start */
	assert_int_equal(write(fd, "x", 1), -1);
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);

	json_auto_t *root = json_loads(text, 0, NULL);
	const char *key, *scheme, *transport, *ip, *dir;
	const char *store, *spool, *mode, *manifest;
	int shell, iopub, input, control, heartbeat, v, pid, split, summary, cell;
	int generation, most;
	json_t *skip, *older;
	assert_int_equal(
	    json_unpack(root,
			"{ss ss ss ss si si si si si s{si ss s[i!] si si "
			"si s{ss ss ss si si s{ss so so!}!}!} !}",
			"key", &key, "signature_scheme", &scheme, "transport",
			&transport, "ip", &ip, "shell_port", &shell, "iopub_port",
			&iopub, "stdin_port", &input, "control_port", &control,
			"hb_port", &heartbeat, "vivarium", "v", &v, "runtime_dir", &dir,
			"peer_pids", &pid, "stream_split", &split, "summary_max",
			&summary, "cell", &cell, "snapshot", "store", &store, "spool",
			&spool, "mode", &mode, "generation", &generation,
			"namespace_max", &most, "restore", "manifest", &manifest,
			"skip", &skip, "older", &older),
	    0);
	assert_string_equal(key, KEY);
	assert_string_equal(scheme, "hmac-sha256");
	assert_string_equal(transport, "ipc");
	assert_string_equal(dir, "/run/x \"y\"");
	assert_int_equal(shell, CONN_SHELL);
	assert_int_equal(control, CONN_CONTROL);
	assert_int_equal(pid, 42);
	assert_int_equal(cell, 5);
	assert_string_equal(mode, "idle");
	assert_string_equal(manifest, "/s/3.json");
}

CASE(a_path_that_no_socket_can_have_is_refused)
{
	char path[256], dir[200];
	struct err err;

	assert_int_equal(connfile_path(path, sizeof path, "/r", CONN_IOPUB, &err), 0);
	assert_string_equal(path, "/r/k-2");
	memset(dir, 'x', sizeof dir);
	dir[0] = '/';
	dir[103] = '\0'; /* and "/k-2": 107 bytes, the most there can be */
	assert_int_equal(connfile_path(path, sizeof path, dir, CONN_IOPUB, &err), 0);
	dir[103] = 'x';
	dir[104] = '\0';
	assert_int_equal(connfile_path(path, sizeof path, dir, CONN_IOPUB, &err), -1);
	assert_non_null(strstr(err.msg, "XDG_RUNTIME_DIR"));
}

RUN(cmocka_unit_test(the_memory_file_holds_what_jupyter_expects_and_cannot_be_changed),
    cmocka_unit_test(a_path_that_no_socket_can_have_is_refused))

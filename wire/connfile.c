// SPDX-License-Identifier: MIT
#include "wire/connfile.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/un.h>
#include <unistd.h>

#include "wire/mem.h"

#define PREFIX "k"

int connfile_path(char *out, size_t size, const char *runtime_dir,
		  enum connfile_port port, struct err *err)
{
	size_t path_max = sizeof((struct sockaddr_un *)0)->sun_path - 1;
	int len = snprintf(out, size, "%s/" PREFIX "-%d", runtime_dir, (int)port);

	if (len < 0 || (size_t)len >= size || (size_t)len > path_max)
		return err_set(
		    err, ERR_CONFIG,
		    "the runtime directory %.120s is too long for sockets "
		    "in it (%zu bytes); set XDG_RUNTIME_DIR to a shorter one",
		    runtime_dir, path_max);
	return 0;
}

static json_t *list_of(const json_t *given)
{
	return given ? json_deep_copy(given) : json_array();
}

static json_t *snapshot_json(const struct connfile_snapshot *self)
{
	json_t *restore = NULL;

	if (!self)
		return json_null();
	if (self->manifest)
		restore =
		    json_pack("{ss so so ss*}", "manifest", self->manifest, "skip",
			      list_of(self->skip), "older", list_of(self->older),
			      "moved_from", self->moved_from);
	return json_pack("{ss ss ss sI sI so}", "store", self->store, "spool",
			 self->spool, "mode", self->always ? "always" : "idle",
			 "generation", (json_int_t)self->generation, "namespace_max",
			 (json_int_t)self->namespace_max, "restore",
			 restore ? restore : json_null());
}

static char *to_json(const struct connfile *self)
{
	json_auto_t *root = json_pack(
	    "{ss ss si si si si si ss ss s{si ss s[I] si si sI so}}", "transport",
	    "ipc", "ip", PREFIX, "shell_port", CONN_SHELL, "iopub_port", CONN_IOPUB,
	    "stdin_port", CONN_STDIN, "control_port", CONN_CONTROL, "hb_port", CONN_HB,
	    "key", self->key, "signature_scheme", "hmac-sha256", "vivarium", "v", 1,
	    "runtime_dir", self->runtime_dir, "peer_pids", (json_int_t)self->peer_pid,
	    "stream_split", self->stream_split, "summary_max", self->summary_max,
	    "cell", (json_int_t)self->cell, "snapshot", snapshot_json(self->snapshot));

	return root ? json_dumps(root, JSON_COMPACT) : NULL;
}

int connfile_memfd(const struct connfile *self, struct err *err)
{
	owned(free_text) char *text = to_json(self);
	owned(close_fd) int fd =
	    memfd_create("connection", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (!text || fd < 0)
		return err_set(err, ERR_SYSTEM, "make the connection information");
	size_t size = strlen(text);
	if (write(fd, text, size) != (ssize_t)size || lseek(fd, 0, SEEK_SET) < 0 ||
	    fcntl(fd, F_ADD_SEALS,
		  F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
		return err_set(err, ERR_SYSTEM, "write the connection information");
	int out = fd;
	fd = -1; /* handed over */
	return out;
}

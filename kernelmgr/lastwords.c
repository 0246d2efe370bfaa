// SPDX-License-Identifier: MIT
#include "kernelmgr/lastwords.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wire/buf.h"
#include "wire/json.h"
#include "wire/mem.h"

enum {
	HANDED = 3, /* descriptors: the memory, and two pipes */
	/* Each stream's part of the memory: the bytes written so far, as a native
	 * uint64_t, then a ring.  One write fills at most half of it, so that the
	 * newest half is whole even if the writer was killed in the middle. */
	RING = 256 * 1024,
	WHOLE = RING / 2,
	PIPE_MAX =
	    1 << 20, /* bytes; a pipe has 64 KiB unless somebody asked for more */
};

void lastwords_init(struct lastwords *self)
{
	*self = (struct lastwords){-1, {-1, -1}, {0, 0}};
}

void lastwords_close(struct lastwords *self)
{
	close_fd(&self->memory);
	close_fd(&self->pipes[0]);
	close_fd(&self->pipes[1]);
}

/* A read from any of these cannot hang, whoever made them: only a memory file has
 * seals. */
static bool are_right(const int fds[HANDED])
{
	struct stat st;

	return fcntl(fds[0], F_GET_SEALS) >= 0 && fstat(fds[1], &st) == 0 &&
	       S_ISFIFO(st.st_mode) && fstat(fds[2], &st) == 0 && S_ISFIFO(st.st_mode);
}

static void accept_handed(struct lastwords *self, const int *fds, size_t count)
{
	if (count == HANDED && self->memory < 0 && are_right(fds)) {
		self->memory = fds[0];
		self->pipes[0] = fds[1];
		self->pipes[1] = fds[2];
		return;
	}
	for (size_t i = 0; i < count; i++)
		close(fds[i]);
}

ssize_t lastwords_recv(struct lastwords *self, int socket, char *out, size_t size)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int[HANDED]))];
	} handed;
	struct iovec part = {out, size};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = &handed,
				 .msg_controllen = sizeof handed};
	int fds[sizeof handed / sizeof(int)]; /* the room may hold more than we want */
	ssize_t len = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (len < 0)
		return len;
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	if (header && header->cmsg_level == SOL_SOCKET &&
	    header->cmsg_type == SCM_RIGHTS) {
		size_t bytes = header->cmsg_len - CMSG_LEN(0);

		memcpy(fds, CMSG_DATA(header), bytes);
		accept_handed(self, fds, bytes / sizeof fds[0]);
	}
	return len;
}

void lastwords_note(struct lastwords *self, const struct jmsg *message)
{
	if (self->memory < 0 || strcmp(message->type, "stream") != 0)
		return;
	bool is_err = strcmp(json_text(message->content, "name", ""), "stderr") == 0;
	long long end =
	    json_integer_of(json_object_get(message->metadata, "vivarium"), "end", -1);
	if (end >= 0)
		self->came[is_err] = (uint64_t)end;
}

/* Adds what the ring still has of what has not come; returns how many bytes it has not.
 */
static uint64_t add_ring(const struct lastwords *self, bool is_err, struct buf *out)
{
	off_t start = is_err ? (off_t)sizeof(uint64_t) + RING : 0;
	uint64_t from = self->came[is_err], end, lost;

	if (pread(self->memory, &end, sizeof end, start) != (ssize_t)sizeof end ||
	    end <= from)
		return 0;
	start += (off_t)sizeof end;
	lost = end - from > WHOLE ? end - from - WHOLE : 0;
	for (from += lost; from < end;) {
		size_t at = from % RING, size = (size_t)(end - from);

		if (size > RING - at)
			size = RING - at;
		ssize_t len = pread(self->memory, buf_reserve(out, size), size,
				    start + (off_t)at);
		if (len <= 0)
			break;
		out->data[out->size += (size_t)len] = '\0';
		from += (uint64_t)len;
	}
	return lost;
}

/* Adds what lies in the pipe, and no more: somebody else may still write to it. */
static void add_pipe(int fd, struct buf *out)
{
	int left;

	if (ioctl(fd, FIONREAD, &left) < 0 || left <= 0)
		return;
	size_t size = left < PIPE_MAX ? (size_t)left : PIPE_MAX;
	fcntl(fd, F_SETFL, O_NONBLOCK);
	ssize_t len = read(fd, buf_reserve(out, size), size);
	if (len > 0)
		out->data[out->size += (size_t)len] = '\0';
}

void lastwords_tell(struct lastwords *self, lastwords_fn *fn, void *arg)
{
	for (int is_err = 0; self->memory >= 0 && is_err < 2; is_err++) {
		owned(buf_finish) struct buf text = {0};
		uint64_t lost = add_ring(self, is_err, &text);

		add_pipe(self->pipes[is_err], &text);
		const struct lastwords_rest rest = {is_err, lost, buf_str(&text),
						    text.size};
		if (rest.size)
			fn(&rest, arg);
	}
}

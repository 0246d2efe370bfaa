// SPDX-License-Identifier: MIT
#include "kernelmgr/lastwords.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "testing.h"
#include "wire/buf.h"
#include "wire/mem.h"

enum { RING = 256 * 1024 };

struct told {
	struct buf text[2];
	uint64_t lost[2];
};

static void on_rest(const struct lastwords_rest *rest, void *arg)
{
	struct told *told = arg;

	buf_add(&told->text[rest->is_err], rest->text, rest->size);
	told->lost[rest->is_err] = rest->lost;
}

static size_t count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t count = 0;

	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static void hand_over(struct lastwords *self, const int *fds, size_t count)
{
	char room[CMSG_SPACE(sizeof(int[8]))] = {0}, got[16];
	struct iovec part = {(char[]){"ready\n"}, 6};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = room,
				 .msg_controllen = CMSG_SPACE(count * sizeof *fds)};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	int ends[2];

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(count * sizeof *fds);
	memcpy(CMSG_DATA(header), fds, count * sizeof *fds);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	assert_int_equal(sendmsg(ends[0], &message, 0), 6);
	assert_int_equal(lastwords_recv(self, ends[1], got, sizeof got), 6);
	assert_memory_equal(got, "ready\n", 6);
	close(ends[0]);
	close(ends[1]);
}

/* As the kernel does it: `end` bytes written in all, those of the ring all letter. */
static void fill(int memory, int stream, uint64_t end, char letter)
{
	off_t start = stream * (off_t)(sizeof end + RING);
	char *ring = xcalloc(1, RING);

	memset(ring, letter, RING);
	ring[end % RING] = '<'; /* the oldest byte, which the newest half has not */
	ring[(end - 1) % RING] = '>';
	assert_int_equal(pwrite(memory, &end, sizeof end, start), sizeof end);
	assert_int_equal(pwrite(memory, ring, RING, start + (off_t)sizeof end), RING);
	free_text(&ring);
}

static void came(struct lastwords *self, const char *name, long long end)
{
	struct jmsg message = {
	    .type = "stream",
	    .content = json_pack("{ss}", "name", name),
	    .metadata = json_pack("{s{sI}}", "vivarium", "end", (json_int_t)end),
	};

	lastwords_note(self, &message);
	jmsg_finish(&message);
}

CASE(what_no_message_brought_is_told_and_the_pipe_after_it)
{
	struct lastwords self;
	struct told told = {0};
	int memory = memfd_create("test", 0), out[2], err[2];

	lastwords_init(&self);
	assert_int_equal(pipe(out) | pipe(err), 0);
	fill(memory, 0, RING + 10, 'o');
	fill(memory, 1, 5000 + RING, 'e');
	hand_over(&self, (int[]){memory, out[0], err[0]}, 3);
	came(&self, "stdout", RING - 2);
	came(&self, "stderr", 5000);
	assert_int_equal(write(out[1], "pipe", 4), 4);
	lastwords_tell(&self, on_rest, &told);
	assert_string_equal(told.text[0].data, "ooooooooooo>pipe");
	assert_int_equal(told.lost[0], 0);
	assert_int_equal(told.text[1].size, RING / 2);
	assert_int_equal(told.lost[1], RING / 2);
	assert_null(strchr(told.text[1].data, '<'));
	for (int i = 0; i < 2; i++)
		buf_finish(&told.text[i]);

	came(&self, "stdout", RING + 10);
	came(&self, "stderr", RING + 5000);
	lastwords_tell(&self, on_rest, &told);
	assert_string_equal(buf_str(&told.text[0]), "");
	assert_string_equal(buf_str(&told.text[1]), "");
	lastwords_close(&self);
	close(memory);
	for (int i = 0; i < 2; i++) {
		close(out[i]);
		close(err[i]);
	}
}

CASE(descriptors_that_are_not_what_they_should_be_are_closed)
{
	struct lastwords self;
	struct told told = {0};
	int null = open("/dev/null", O_RDONLY), memory = memfd_create("test", 0);
	int ends[2];

	lastwords_init(&self);
	assert_int_equal(pipe(ends), 0);
	size_t before = count_fds();
	hand_over(&self, (int[]){null, ends[0], ends[0]}, 3);
	hand_over(&self, (int[]){memory, null, ends[0]}, 3);
	hand_over(&self, (int[]){memory, ends[0]}, 2);
	hand_over(&self, (int[]){memory, ends[0], ends[0], null, null}, 5);
	assert_int_equal(self.memory, -1);
	assert_int_equal(count_fds(), before);
	hand_over(&self, (int[]){memory, ends[0], ends[0]}, 3);
	hand_over(&self, (int[]){memory, ends[0], ends[0]}, 3); /* again */
	assert_int_equal(count_fds(), before + 3);
	lastwords_tell(&self, on_rest, &told); /* an empty file says nothing */
	assert_null(told.text[0].data);
	lastwords_close(&self);
	assert_int_equal(count_fds(), before);
	close(null);
	close(memory);
	close(ends[0]);
	close(ends[1]);
}

RUN(cmocka_unit_test(what_no_message_brought_is_told_and_the_pipe_after_it),
    cmocka_unit_test(descriptors_that_are_not_what_they_should_be_are_closed))

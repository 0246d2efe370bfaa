/*
 * vivarium-image MAX_SIDE MAX_BYTES - reads a PNG from standard input, writes one that
 * fits to standard output (image.h says what fits).  Exit status 0 and on standard
 * error a number that is the same for files that look alike; or 1 and one line that
 * says what is wrong.
 *
 * The picture was made by someone else's code and libpng has had faults, so decoding
 * happens behind a wall: no new privileges, limits on memory and time, no descriptor
 * but the standard three, and from before the first byte is parsed a filter that leaves
 * only the system calls for getting memory, writing and exiting.  Start it with an
 * empty environment.
 *
 * SPDX-License-Identifier: MIT
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "wire/err.h"
#include "wire/image.h"

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

enum {
	MEMORY_MAX = 1536 << 20, /* bytes of address space: 256 MiB of pixels, twice */
	CPU_MAX = 10,            /* seconds; the largest picture takes about two */
	FD_MAX = 3,
	READ_STEP = 1 << 20,
};

static void on_time_is_up(int number)
{
	static const char words[] = "the picture takes too long to decode\n";

	(void)number;
	(void)!write(STDERR_FILENO, words, sizeof words - 1);
	_exit(1);
}

static int limit(int what, rlim_t most, struct err *err)
{
	/* Of CPU time one second more, for on_time_is_up. */
	struct rlimit value = {most, what == RLIMIT_CPU ? most + 1 : most};

	if (setrlimit((__rlimit_resource_t)what, &value))
		return err_set(err, ERR_SYSTEM, "set resource limit %d", what);
	return 0;
}

/* What can be given up before anything is read. */
static int give_up_rights(size_t max_bytes, struct err *err)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return err_set(err, ERR_SYSTEM, "set no_new_privs");
	if (close_range(STDERR_FILENO + 1, UINT_MAX, 0) && errno != ENOSYS)
		return err_set(err, ERR_SYSTEM, "close descriptors");
	sigaction(SIGXCPU, &(struct sigaction){.sa_handler = on_time_is_up}, NULL);
	signal(SIGXFSZ, SIG_IGN); /* writing too much is an error, not death */
	if (limit(RLIMIT_CORE, 0, err) || limit(RLIMIT_CPU, CPU_MAX, err) ||
	    limit(RLIMIT_FSIZE, max_bytes, err))
		return -1;
	if (SANITIZED) /* needs terabytes of address space, and to open files */
		return 0;
	return limit(RLIMIT_AS, MEMORY_MAX, err) || limit(RLIMIT_NOFILE, FD_MAX, err)
		   ? -1
		   : 0;
}

/* All of standard input, at most one byte more than IMAGE_FILE_MAX. */
static int read_input(unsigned char **out, size_t *size, struct err *err)
{
	size_t room = 0, used = 0;
	ssize_t got = 1;

	while (got && used <= IMAGE_FILE_MAX) {
		if (used == room) {
			room = room ? room * 2 : READ_STEP;
			if (room > IMAGE_FILE_MAX)
				room = (size_t)IMAGE_FILE_MAX + 1;
			unsigned char *more = realloc(*out, room);
			if (!more)
				return err_set(err, ERR_LIMIT, "no memory to read it");
			*out = more;
		}
		got = read(STDIN_FILENO, *out + used, room - used);
		if (got < 0 && errno != EINTR)
			return err_set(err, ERR_SYSTEM, "read standard input");
		used += got > 0 ? (size_t)got : 0;
	}
	*size = used;
	return 0;
}

static int allow(scmp_filter_ctx filter)
{
	static const int calls[] = {SCMP_SYS(munmap),      SCMP_SYS(mremap),
				    SCMP_SYS(brk),         SCMP_SYS(madvise),
				    SCMP_SYS(exit_group),  SCMP_SYS(exit),
				    SCMP_SYS(rt_sigreturn)};

	for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
		int rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, calls[i], 0);
		if (rc)
			return rc;
	}
	for (unsigned fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
		int rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(write), 1,
					  SCMP_A0(SCMP_CMP_EQ, fd));
		if (rc)
			return rc;
	}
	/* Memory that no code can be put in, and nothing of a file. */
	return seccomp_rule_add(
	    filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 2,
	    SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0),
	    SCMP_A3(SCMP_CMP_MASKED_EQ, MAP_ANONYMOUS, MAP_ANONYMOUS));
}

/* All other calls fail with ENOSYS rather than kill: a C library that tries something
 * new for its own ends then still works, and an intruder is no better off.  Those of
 * another architecture's table, which nothing here can want, kill. */
static int raise_wall(struct err *err)
{
	scmp_filter_ctx filter;
	int rc;

	if (SANITIZED)
		return 0;
	filter = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
	if (!filter)
		return err_set(err, ERR_LIMIT, "no memory for the system call filter");
	rc = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	if (!rc)
		rc = allow(filter);
	if (!rc)
		rc = seccomp_load(filter);
	seccomp_release(filter);
	errno = -rc;
	return rc ? err_set(err, ERR_SYSTEM, "set the system call filter") : 0;
}

static int write_fully(int fd, const void *data, size_t size)
{
	const char *at = data;

	while (size) {
		ssize_t put = write(fd, at, size);
		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return -1;
		at += put;
		size -= (size_t)put;
	}
	return 0;
}

static int parse_limit(const char *text, uintmax_t most, uintmax_t *out,
		       struct err *err)
{
	char *end;

	errno = 0;
	*out = strtoumax(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || !*out || *out > most)
		return err_set(err, ERR_ARGUMENT,
			       "\"%.40s\" is not a limit: give a number from 1 to %ju",
			       text, most);
	return 0;
}

static void free_bytes(unsigned char **p)
{
	free(*p);
}

static int run(int argc, char **argv, uint64_t *look, struct err *err)
{
	owned(free_bytes) unsigned char *png = NULL;
	owned(image_finish) struct image image = {0};
	uintmax_t max_side, max_bytes;
	size_t size = 0;

	if (argc != 3)
		return err_set(err, ERR_ARGUMENT,
			       "usage: vivarium-image MAX_SIDE MAX_BYTES <png >png");
	if (parse_limit(argv[1], UINT_MAX, &max_side, err) ||
	    parse_limit(argv[2], SIZE_MAX, &max_bytes, err) ||
	    give_up_rights(max_bytes, err) || read_input(&png, &size, err) ||
	    raise_wall(err) ||
	    image_fit(png, size, (unsigned)max_side, max_bytes, &image, err))
		return -1;
	if (write_fully(STDOUT_FILENO, image.data, image.size))
		return err_set(err, ERR_SYSTEM, "write standard output");
	*look = image.look;
	return 0;
}

int main(int argc, char **argv)
{
	struct err err = {0};
	char line[sizeof err.msg + 1];
	uint64_t look = 0;
	bool failed = run(argc, argv, &look, &err) != 0;
	int len = failed ? snprintf(line, sizeof line, "%s\n", err.msg)
			 : snprintf(line, sizeof line, "%016" PRIx64 "\n", look);

	if (len > 0)
		(void)!write_fully(STDERR_FILENO, line, (size_t)len);
	_exit(failed);
}

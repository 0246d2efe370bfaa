// SPDX-License-Identifier: MIT
/*
 * vivarium-filter LIST OUT - writes the kernels' filters of system calls as C arrays;
 * runs while the program is built.  LIST has the names of the calls that are allowed.
 *
 * What is not named is answered ENOSYS, so that a call nobody thought of looks like an
 * older Linux.  Four filters: "private" behind namespaces; "shared" without them, where
 * watching files must be refused too; "proxied" like shared, with no internet sockets
 * but TCP, whose ports Landlock rules; "offline" like shared, with no internet sockets.
 */
#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define NEW_NAMESPACE 0x7E020080u /* every CLONE_NEW*, time included */
#define FAST_OPEN 0x20000000u     /* MSG_FASTOPEN: a send that connects */
#define SOCKET_TYPE 0xfu          /* without SOCK_NONBLOCK and SOCK_CLOEXEC */

enum {
	TIOCSTI_NUMBER = 0x5412, /* types into a terminal */
	TIOCLINUX_NUMBER = 0x541C,
	TCP_NUMBER = 6,
	PROTOCOL_MAX = 17, /* UDP; MPTCP is far above */
};

enum internet { ALL, TCP_ONLY, NONE };

struct filter {
	const char *name;
	bool shared;
	enum internet internet;
};

static scmp_filter_ctx context;

/* libseccomp refuses some rules, such as two comparisons of one argument: a rule that
 * was refused must never go unseen. */
static void must(int result, const char *what)
{
	if (result < 0) {
		fprintf(stderr, "vivarium-filter: %s: %s\n", what, strerror(-result));
		exit(1);
	}
}

static int number(const char *name)
{
	static const struct {
		const char *name;
		int number;
	} newer[] = {/* than libseccomp 2.5.4 */
		     {"futex_waitv", 449},
		     {"fchmodat2", 452},
		     {"mseal", 462}};
	int found = seccomp_syscall_resolve_name(name);

	for (size_t i = 0; i < sizeof newer / sizeof newer[0]; i++)
		if (found == __NR_SCMP_ERROR && strcmp(name, newer[i].name) == 0)
			found = newer[i].number;
	must(found == __NR_SCMP_ERROR ? -ENOSYS : 0, name);
	return found;
}

#define RULE(action, name, ...)                                                        \
	must(seccomp_rule_add(context, action, number(name),                           \
			      sizeof((struct scmp_arg_cmp[]){__VA_ARGS__}) /           \
				  sizeof(struct scmp_arg_cmp),                         \
			      __VA_ARGS__),                                            \
	     name)

static const uint32_t yes = SCMP_ACT_ALLOW, no = SCMP_ACT_ERRNO(EPERM);

static void add_list(FILE *list)
{
	char name[64];

	rewind(list);
	while (fscanf(list, "%63s", name) == 1) {
		int call = seccomp_syscall_resolve_name(name);

		if (call < 0 && call != __NR_SCMP_ERROR)
			continue; /* not a call of this architecture, such as open */
		must(seccomp_rule_add(context, yes, number(name), 0), name);
	}
}

/* These say so instead of ENOSYS: programs know what EPERM means here. */
static void add_refused(const struct filter *filter)
{
	static const char *const refused[] = {"mbind",
					      "set_mempolicy",
					      "ptrace",
					      "process_vm_readv",
					      "process_vm_writev",
					      "keyctl",
					      "add_key",
					      "request_key",
					      "unshare",
					      "setns",
					      "mount",
					      "umount2",
					      "pivot_root",
					      "chroot",
					      "personality",
					      "setuid",
					      "setgid",
					      "setgroups",
					      "setresuid",
					      "setresgid",
					      "bpf",
					      "perf_event_open",
					      "userfaultfd",
					      "chown",
					      "lchown",
					      "pidfd_getfd",
					      "shmget",
					      "shmat",
					      "shmctl",
					      "semget",
					      "semctl",
					      "semop",
					      "msgget",
					      "msgsnd",
					      "msgrcv",
					      "msgctl",
					      "mq_open",
					      "mq_unlink",
					      "io_uring_setup"};
	static const char *const watching[] = {"inotify_init", "inotify_init1",
					       "inotify_add_watch", "inotify_rm_watch"};

	for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
		if (seccomp_syscall_resolve_name(refused[i]) >= 0)
			must(seccomp_rule_add(context, no, number(refused[i]), 0),
			     refused[i]);
	for (size_t i = 0; i < sizeof watching / sizeof watching[0]; i++)
		if (seccomp_syscall_resolve_name(watching[i]) >= 0)
			must(seccomp_rule_add(context, filter->shared ? no : yes,
					      number(watching[i]), 0),
			     watching[i]);
}

/* Only of the caller itself.  libzmq aborts at an error of sched_set*: it is told that
 * all went well. */
static void add_own_process_only(void)
{
	static const char *const schedule[] = {"sched_setaffinity",
					       "sched_setscheduler", "sched_setparam",
					       "sched_setattr"};
	const uint32_t pretend = SCMP_ACT_ERRNO(0);

	for (size_t i = 0; i < sizeof schedule / sizeof schedule[0]; i++) {
		RULE(yes, schedule[i], SCMP_A0(SCMP_CMP_EQ, 0));
		RULE(pretend, schedule[i], SCMP_A0(SCMP_CMP_NE, 0));
	}
	RULE(yes, "prlimit64", SCMP_A0(SCMP_CMP_EQ, 0));
	RULE(no, "prlimit64", SCMP_A0(SCMP_CMP_NE, 0));
	RULE(yes, "setpriority", SCMP_A1(SCMP_CMP_EQ, 0));
	RULE(no, "setpriority", SCMP_A1(SCMP_CMP_NE, 0));
	RULE(yes, "ioprio_set", SCMP_A1(SCMP_CMP_EQ, 0));
	RULE(no, "ioprio_set", SCMP_A1(SCMP_CMP_NE, 0));
}

static void add_sockets(const struct filter *filter)
{
	RULE(yes, "socket", SCMP_A0(SCMP_CMP_EQ, AF_UNIX));
	/* libzmq and getaddrinfo() ask for the interfaces' addresses, and libzmq aborts
	 * when it may not. */
	RULE(yes, "socket", SCMP_A0(SCMP_CMP_EQ, AF_NETLINK), SCMP_A2(SCMP_CMP_EQ, 0));
	for (int i = 0; i < 2 && filter->internet != NONE; i++) {
		const uint64_t family = i ? AF_INET6 : AF_INET;

		if (filter->internet == TCP_ONLY)
			RULE(yes, "socket", SCMP_A0(SCMP_CMP_EQ, family),
			     SCMP_A1(SCMP_CMP_MASKED_EQ, SOCKET_TYPE, SOCK_STREAM),
			     SCMP_A2(SCMP_CMP_LE, TCP_NUMBER));
		else
			RULE(yes, "socket", SCMP_A0(SCMP_CMP_EQ, family),
			     SCMP_A2(SCMP_CMP_LE, PROTOCOL_MAX));
	}
	RULE(yes, "sendto", SCMP_A3(SCMP_CMP_MASKED_EQ, FAST_OPEN, 0));
	RULE(yes, "sendmsg", SCMP_A2(SCMP_CMP_MASKED_EQ, FAST_OPEN, 0));
	RULE(yes, "sendmmsg", SCMP_A3(SCMP_CMP_MASKED_EQ, FAST_OPEN, 0));
}

static void add_ioctl(void)
{
	RULE(yes, "ioctl", SCMP_A1(SCMP_CMP_LT, TIOCSTI_NUMBER));
	for (unsigned i = TIOCSTI_NUMBER + 1; i < TIOCLINUX_NUMBER; i++)
		RULE(yes, "ioctl", SCMP_A1(SCMP_CMP_EQ, i));
	RULE(yes, "ioctl", SCMP_A1(SCMP_CMP_GT, TIOCLINUX_NUMBER));
}

static void print(const struct filter *filter, FILE *out)
{
	FILE *program = tmpfile();
	uint64_t instruction;
	int column = 0;

	must(program ? seccomp_export_bpf(context, fileno(program)) : -errno, "export");
	rewind(program);
	fprintf(out, "static const uint64_t filter_%s[] = {\n", filter->name);
	while (fread(&instruction, sizeof instruction, 1, program) == 1)
		fprintf(out, "0x%016llxull,%s", (unsigned long long)instruction,
			++column % 4 ? " " : "\n");
	fputs("};\n", out);
	fclose(program);
}

int main(int argc, char **argv)
{
	static const struct filter filters[] = {{"private", false, ALL},
						{"shared", true, ALL},
						{"proxied", true, TCP_ONLY},
						{"offline", true, NONE}};
	FILE *list = argc > 1 ? fopen(argv[1], "r") : NULL;

	FILE *out = argc > 2 ? fopen(argv[2], "w") : NULL;

	must(list ? 0 : -ENOENT, "list of calls");
	must(out ? 0 : -ENOENT, "file to write");
	fputs("#include <stdint.h>\n", out);
	for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++) {
		context = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
		must(context ? 0 : -ENOMEM, "begin");
		must(seccomp_attr_set(context, SCMP_FLTATR_CTL_OPTIMIZE, 2),
		     "optimize");
		add_list(list);
		add_refused(&filters[i]);
		add_own_process_only();
		add_sockets(&filters[i]);
		RULE(yes, "clone", SCMP_A0(SCMP_CMP_MASKED_EQ, NEW_NAMESPACE, 0));
		add_ioctl();
		print(&filters[i], out);
		seccomp_release(context);
	}
	fclose(list);
	must(fclose(out) ? -errno : 0, "write");
	return 0;
}

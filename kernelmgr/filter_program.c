// SPDX-License-Identifier: MIT
/*
 * vivarium-filter LIST OUT - writes the kernels' filters of system calls as C arrays;
 * runs while the program is built.  LIST has the names of the calls that are allowed.
 *
 * What is not named is answered ENOSYS, so that a call nobody thought of looks like an
 * older Linux.  Five filters: "private" behind namespaces; "shared" without them, where
 * watching files must be refused too; "proxied" like shared, with no internet sockets
 * but TCP, whose ports Landlock rules; "offline" like shared, with no internet sockets;
 * "copying" like offline, for cp, which opens the directory it copies to by O_PATH.
 * More hold on top of one of these and refuse single uses of what it allows: "never",
 * "set_id" where files are the daemon's on the disk, and "guarded", which leaves
 * connect() to the supervisor (guard.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define NEW_NAMESPACE 0x7E020080u /* every CLONE_NEW*, time included */
#define FAST_OPEN 0x20000000u     /* MSG_FASTOPEN: a send that connects */
#define SOCKET_TYPE 0xfu          /* without SOCK_NONBLOCK and SOCK_CLOEXEC */

enum {
	TIOCSTI_NUMBER = 0x5412, /* types into a terminal */
	TIOCLINUX_NUMBER = 0x541C,
	SOCK_PACKET_TYPE = 10,
	FAMILY_MAX = 45, /* of Linux 6.x */
	TCP_NUMBER = 6,
	PROTOCOL_MAX = 17, /* UDP; MPTCP is far above */
	IO_PRIORITY_OF_PROCESS = 1,
	API_WITH_NOTICES = 5, /* of libseccomp */
};

enum internet { ALL, TCP_ONLY, NONE };

struct filter {
	const char *name;
	bool shared, paths;
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

/* Those that have rules of their own where files and processes are shared. */
static bool is_special(const char *name)
{
	static const char *const special[] = {
	    "getxattr",   "lgetxattr",   "setxattr",     "lsetxattr", "listxattr",
	    "llistxattr", "removexattr", "lremovexattr", "fchmodat2", "getpriority",
	    "getsid",     "openat",      "open",         "openat2"};

	for (size_t i = 0; i < sizeof special / sizeof special[0]; i++)
		if (strcmp(name, special[i]) == 0)
			return true;
	return false;
}

static void add_list(const struct filter *filter, FILE *list)
{
	char name[64];

	rewind(list);
	while (fscanf(list, "%63s", name) == 1) {
		int call = seccomp_syscall_resolve_name(name);

		if (call < 0 && call != __NR_SCMP_ERROR)
			continue; /* not a call of this architecture, such as open */
		if (!filter->shared || !is_special(name))
			must(seccomp_rule_add(context, yes, number(name), 0), name);
	}
}

/* These say so instead of ENOSYS: programs know what EPERM means here. */
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

static void add_refused(const struct filter *filter)
{
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
	/* Of the other kinds 0 means the whole group or user. */
	RULE(yes, "setpriority", SCMP_A0(SCMP_CMP_EQ, PRIO_PROCESS),
	     SCMP_A1(SCMP_CMP_EQ, 0));
	RULE(yes, "ioprio_set", SCMP_A0(SCMP_CMP_EQ, IO_PRIORITY_OF_PROCESS),
	     SCMP_A1(SCMP_CMP_EQ, 0));
	for (int i = 0; i < 2; i++) {
		const char *name = i ? "ioprio_set" : "setpriority";
		const uint64_t process = i ? IO_PRIORITY_OF_PROCESS : PRIO_PROCESS;

		RULE(no, name, SCMP_A0(SCMP_CMP_NE, process));
		RULE(no, name, SCMP_A0(SCMP_CMP_EQ, process), SCMP_A1(SCMP_CMP_NE, 0));
	}
}

/* Families that are neither allowed nor named here do not exist (yet). */
static void add_families(const struct filter *filter)
{
	for (unsigned family = 0; family <= FAMILY_MAX; family++) {
		bool internet = family == AF_INET || family == AF_INET6;

		if (family == AF_UNIX || family == AF_NETLINK ||
		    (internet && filter->internet != NONE))
			continue;
		RULE(SCMP_ACT_ERRNO(internet ? EACCES : EAFNOSUPPORT), "socket",
		     SCMP_A0(SCMP_CMP_EQ, family));
	}
	RULE(SCMP_ACT_ERRNO(EAFNOSUPPORT), "socket", SCMP_A0(SCMP_CMP_GT, FAMILY_MAX));
}

static void add_internet(const struct filter *filter, unsigned family)
{
	static const int other[] = {SOCK_DGRAM,     SOCK_RAW,  SOCK_RDM,
				    SOCK_SEQPACKET, SOCK_DCCP, SOCK_PACKET_TYPE};
	const unsigned most = filter->internet == TCP_ONLY ? TCP_NUMBER : PROTOCOL_MAX;

	if (filter->internet == ALL) {
		RULE(yes, "socket", SCMP_A0(SCMP_CMP_EQ, family),
		     SCMP_A2(SCMP_CMP_LE, most));
		RULE(SCMP_ACT_ERRNO(EPROTONOSUPPORT), "socket",
		     SCMP_A0(SCMP_CMP_EQ, family), SCMP_A2(SCMP_CMP_GT, most));
		return;
	}
	RULE(yes, "socket", SCMP_A0(SCMP_CMP_EQ, family),
	     SCMP_A1(SCMP_CMP_MASKED_EQ, SOCKET_TYPE, SOCK_STREAM),
	     SCMP_A2(SCMP_CMP_LE, most));
	RULE(SCMP_ACT_ERRNO(EPROTONOSUPPORT), "socket", SCMP_A0(SCMP_CMP_EQ, family),
	     SCMP_A1(SCMP_CMP_MASKED_EQ, SOCKET_TYPE, SOCK_STREAM),
	     SCMP_A2(SCMP_CMP_GT, most));
	for (size_t i = 0; i < sizeof other / sizeof other[0]; i++)
		RULE(SCMP_ACT_ERRNO(EACCES), "socket", SCMP_A0(SCMP_CMP_EQ, family),
		     SCMP_A1(SCMP_CMP_MASKED_EQ, SOCKET_TYPE, (scmp_datum_t)other[i]));
}

static void add_sockets(const struct filter *filter)
{
	static const struct {
		const char *name;
		unsigned flags; /* which argument they are */
	} sends[] = {{"sendto", 3}, {"sendmsg", 2}, {"sendmmsg", 3}};

	RULE(yes, "socket", SCMP_A0(SCMP_CMP_EQ, AF_UNIX));
	RULE(yes, "socketpair", SCMP_A0(SCMP_CMP_EQ, AF_UNIX));
	RULE(SCMP_ACT_ERRNO(EAFNOSUPPORT), "socketpair", SCMP_A0(SCMP_CMP_NE, AF_UNIX));
	/* libzmq and getaddrinfo() ask for the interfaces' addresses, and libzmq aborts
	 * when it may not. */
	RULE(yes, "socket", SCMP_A0(SCMP_CMP_EQ, AF_NETLINK), SCMP_A2(SCMP_CMP_EQ, 0));
	RULE(SCMP_ACT_ERRNO(EPROTONOSUPPORT), "socket",
	     SCMP_A0(SCMP_CMP_EQ, AF_NETLINK), SCMP_A2(SCMP_CMP_NE, 0));
	add_families(filter);
	if (filter->internet != NONE) {
		add_internet(filter, AF_INET);
		add_internet(filter, AF_INET6);
	}
	for (size_t i = 0; i < sizeof sends / sizeof sends[0]; i++) {
		RULE(yes, sends[i].name,
		     SCMP_CMP(sends[i].flags, SCMP_CMP_MASKED_EQ, FAST_OPEN, 0));
		RULE(
		    SCMP_ACT_ERRNO(EOPNOTSUPP), sends[i].name,
		    SCMP_CMP(sends[i].flags, SCMP_CMP_MASKED_EQ, FAST_OPEN, FAST_OPEN));
	}
}

/* FIFOs, sockets and plain files; no devices. */
static void add_nodes(void)
{
	static const mode_t types[] = {0, S_IFIFO, S_IFREG, S_IFSOCK};
	static const mode_t devices[] = {S_IFCHR, S_IFBLK};

	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
		RULE(yes, "mknodat", SCMP_A2(SCMP_CMP_MASKED_EQ, S_IFMT, types[i]));
		RULE(yes, "mknod", SCMP_A1(SCMP_CMP_MASKED_EQ, S_IFMT, types[i]));
	}
	for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++) {
		RULE(no, "mknodat", SCMP_A2(SCMP_CMP_MASKED_EQ, S_IFMT, devices[i]));
		RULE(no, "mknod", SCMP_A1(SCMP_CMP_MASKED_EQ, S_IFMT, devices[i]));
	}
}

static void add_clone(void)
{
	RULE(yes, "clone", SCMP_A0(SCMP_CMP_MASKED_EQ, NEW_NAMESPACE, 0));
	for (unsigned bit = 1; bit; bit <<= 1)
		if (bit & NEW_NAMESPACE)
			RULE(no, "clone", SCMP_A0(SCMP_CMP_MASKED_EQ, bit, bit));
}

/* Without namespaces these would reach what Landlock does not keep: attributes of files
 * whose path is known, and foreign processes. */
static void add_shared(const struct filter *filter)
{
	static const char *const attributes[] = {
	    "getxattr",  "lgetxattr",  "setxattr",    "lsetxattr",
	    "listxattr", "llistxattr", "removexattr", "lremovexattr"};

	for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++)
		must(seccomp_rule_add(context, SCMP_ACT_ERRNO(EOPNOTSUPP),
				      number(attributes[i]), 0),
		     attributes[i]);
	RULE(yes, "getpriority", SCMP_A1(SCMP_CMP_EQ, 0));
	RULE(no, "getpriority", SCMP_A1(SCMP_CMP_NE, 0));
	RULE(yes, "getsid", SCMP_A0(SCMP_CMP_EQ, 0));
	RULE(no, "getsid", SCMP_A0(SCMP_CMP_NE, 0));
	RULE(yes, "openat", SCMP_A2(SCMP_CMP_MASKED_EQ, O_PATH, 0));
	RULE(filter->paths ? yes : no, "openat",
	     SCMP_A2(SCMP_CMP_MASKED_EQ, O_PATH, O_PATH));
	RULE(yes, "open", SCMP_A1(SCMP_CMP_MASKED_EQ, O_PATH, 0));
	RULE(no, "open", SCMP_A1(SCMP_CMP_MASKED_EQ, O_PATH, O_PATH));
}

/* ---- single uses ---- */

/* Linux looks at the lower half of such an argument only: so do these. */
#define INT_IS(argument, value)                                                        \
	SCMP_CMP(argument, SCMP_CMP_MASKED_EQ, UINT32_MAX, value)
#define HAS(argument, bits) SCMP_CMP(argument, SCMP_CMP_MASKED_EQ, bits, bits)

static void add_never(void)
{
	RULE(no, "ioctl", INT_IS(1, TIOCSTI_NUMBER));
	RULE(no, "ioctl", INT_IS(1, TIOCLINUX_NUMBER));
	/* A lease on a file that all share holds up whoever opens it; notices of a
	 * directory tell what others do there. */
	RULE(no, "fcntl", INT_IS(1, F_SETLEASE));
	RULE(no, "fcntl", INT_IS(1, F_NOTIFY));
	/* Whoever is the last to close such a socket waits; descriptors can be sent, so
	 * that may be the daemon. */
	RULE(no, "setsockopt", INT_IS(1, SOL_SOCKET), INT_IS(2, SO_LINGER));
}

/* A program with one of these bits has its owner's rights, whoever runs it. */
static void add_set_id(void)
{
	static const struct {
		const char *name;
		unsigned mode; /* which argument */
	} changes[] = {{"chmod", 1}, {"fchmod", 1}, {"fchmodat", 2}, {"fchmodat2", 2},
		       {"creat", 1}, {"mknod", 1},  {"mknodat", 2}},
	  opens[] = {{"open", 2}, {"openat", 3}}; /* the flags come before it */
	static const unsigned bits[] = {S_ISUID, S_ISGID},
			      makes[] = {O_CREAT, O_TMPFILE};

	for (unsigned i = 0; i < 2; i++) {
		for (size_t j = 0; j < sizeof changes / sizeof changes[0]; j++)
			RULE(no, changes[j].name, HAS(changes[j].mode, bits[i]));
		for (unsigned j = 0; j < 4; j++)
			RULE(no, opens[j % 2].name,
			     HAS(opens[j % 2].mode - 1, makes[j / 2]),
			     HAS(opens[j % 2].mode, bits[i]));
	}
}

static void add_guarded(void)
{
	static const char *const makers[] = {"socket", "socketpair"};
	/* A send of these names whom it goes to each time, so that there is nothing to
	 * guard; Linux takes the one for the other. */
	static const int types[] = {SOCK_DGRAM, SOCK_RAW};

	/* Once the supervisor is gone, what it leaves could let its calls through by a
	 * listener of its own: the newest is asked, and no other. */
	RULE(SCMP_ACT_ERRNO(EBUSY), "seccomp",
	     HAS(1, SECCOMP_FILTER_FLAG_NEW_LISTENER));
	must(seccomp_rule_add(context, SCMP_ACT_NOTIFY, number("connect"), 0),
	     "connect");
	for (size_t i = 0; i < 4; i++)
		RULE(no, makers[i / 2], INT_IS(0, AF_UNIX),
		     SCMP_A1(SCMP_CMP_MASKED_EQ, SOCKET_TYPE,
			     (scmp_datum_t)types[i % 2]));
}

/* ---- output ---- */

static void begin(uint32_t otherwise)
{
	context = seccomp_init(otherwise);
	must(context ? 0 : -ENOMEM, "begin");
	must(seccomp_attr_set(context, SCMP_FLTATR_CTL_OPTIMIZE, 2), "optimize");
}

/* And ends it. */
static void print(const char *filter, FILE *out)
{
	FILE *program = tmpfile();
	uint64_t instruction;
	int column = 0;

	must(program ? seccomp_export_bpf(context, fileno(program)) : -errno, "export");
	rewind(program);
	fprintf(out, "static const uint64_t filter_%s[] = {\n", filter);
	while (fread(&instruction, sizeof instruction, 1, program) == 1)
		fprintf(out, "0x%016llxull,%s", (unsigned long long)instruction,
			++column % 4 ? " " : "\n");
	fputs("};\n", out);
	fclose(program);
	seccomp_release(context);
}

int main(int argc, char **argv)
{
	static const struct filter filters[] = {
	    {"private", .internet = ALL},
	    {"shared", .shared = true, .internet = ALL},
	    {"proxied", .shared = true, .internet = TCP_ONLY},
	    {"offline", .shared = true, .internet = NONE},
	    {"copying", .shared = true, .paths = true, .internet = NONE}};
	FILE *list = argc > 1 ? fopen(argv[1], "r") : NULL;

	FILE *out = argc > 2 ? fopen(argv[2], "w") : NULL;

	/* It is another machine that has to know all actions. */
	must(seccomp_api_set(API_WITH_NOTICES), "know of notices");
	must(list ? 0 : -ENOENT, "list of calls");
	must(out ? 0 : -ENOENT, "file to write");
	fputs("#include <stdint.h>\n", out);
	for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++) {
		begin(SCMP_ACT_ERRNO(ENOSYS));
		add_list(&filters[i], list);
		add_refused(&filters[i]);
		add_own_process_only();
		add_sockets(&filters[i]);
		add_nodes();
		add_clone();
		if (filters[i].shared)
			add_shared(&filters[i]);
		print(filters[i].name, out);
	}
	begin(SCMP_ACT_ALLOW);
	add_never();
	print("never", out);
	begin(SCMP_ACT_ALLOW);
	add_set_id();
	print("set_id", out);
	begin(SCMP_ACT_ALLOW);
	add_guarded();
	print("guarded", out);
	fclose(list);
	must(fclose(out) ? -errno : 0, "write");
	return 0;
}

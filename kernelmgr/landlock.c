// SPDX-License-Identifier: MIT
#include "kernelmgr/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernelmgr/nolinks.h"

enum { ABI_NET = LANDLOCK_ABI_PORTS, ABI_SCOPE = LANDLOCK_ABI_NAMES, ABI_KNOWN = 9 };
enum { RULE_PATH = 1, RULE_PORT = 2 };
enum { NET_BIND = 1, NET_CONNECT = 2 };
enum { SCOPE_ABSTRACT_SOCKET = 1, SCOPE_SIGNAL = 2 };

enum {
	FS_EXECUTE = 1,
	FS_WRITE = 2,
	FS_READ = 4,
	FS_LIST = 8,
	FS_REMOVE_DIR = 0x10,
	FS_REMOVE_FILE = 0x20,
	FS_MAKE_CHAR = 0x40,
	FS_MAKE_REG = 0x100,
	FS_MAKE_BLOCK = 0x800,
	FS_TRUNCATE = 0x4000,
	FS_IOCTL_DEV = 0x8000,
	FS_RESOLVE_UNIX = 0x10000,
	/* what a rule for a file that is no directory may name */
	FS_OF_FILES = FS_EXECUTE | FS_WRITE | FS_READ | FS_TRUNCATE | FS_IOCTL_DEV |
		      FS_RESOLVE_UNIX,
};

/* The rights that each ABI knows. */
static const uint64_t known[ABI_KNOWN + 1] = {0,      0x1fff, 0x3fff, 0x7fff, 0x7fff,
					      0xffff, 0xffff, 0xffff, 0xffff, 0x1ffff};

struct ruleset_attr {
	uint64_t fs, net, scoped;
};
struct path_rule {
	uint64_t access;
	int32_t fd;
} __attribute__((packed));
struct port_rule {
	uint64_t access, port;
};

static int newest_abi = ABI_KNOWN; /* that is used; tests take an older one */

int landlock_abi(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, 1);

	return abi < 0 ? 0 : abi > newest_abi ? newest_abi : (int)abi;
}

static int begin(int abi, const struct ruleset_attr *attr)
{
	size_t size = abi >= ABI_SCOPE ? sizeof *attr
		      : abi >= ABI_NET ? offsetof(struct ruleset_attr, scoped)
				       : offsetof(struct ruleset_attr, net);

	return (int)syscall(SYS_landlock_create_ruleset, attr, size, 0);
}

int landlock_begin(bool connect)
{
	int abi = landlock_abi();
	const struct ruleset_attr attr = {
	    .fs = known[abi],
	    .net = connect && abi >= ABI_NET ? NET_BIND | NET_CONNECT : 0,
	    .scoped = abi >= ABI_SCOPE ? SCOPE_ABSTRACT_SOCKET | SCOPE_SIGNAL : 0,
	};

	return begin(abi, &attr);
}

int landlock_begin_ports(void)
{
	const struct ruleset_attr attr = {.net = NET_CONNECT};
	int abi = landlock_abi();

	errno = ENOSYS;
	return abi < ABI_NET ? -1 : begin(abi, &attr);
}

static uint64_t rights(enum landlock_may may)
{
	uint64_t all = known[landlock_abi()];
	uint64_t change =
	    all & ~(uint64_t)(FS_MAKE_CHAR | FS_MAKE_BLOCK | FS_IOCTL_DEV);

	switch (may) {
	case LANDLOCK_LOOK:
		return FS_READ | FS_LIST;
	case LANDLOCK_RUN:
		return FS_READ | FS_LIST | FS_EXECUTE;
	case LANDLOCK_CHANGE:
		return change;
	case LANDLOCK_DEVICES:
		return all &
		       (FS_READ | FS_WRITE | FS_LIST | FS_TRUNCATE | FS_IOCTL_DEV);
	case LANDLOCK_DROP:
		return all & (FS_READ | FS_WRITE | FS_MAKE_REG | FS_REMOVE_FILE |
			      FS_TRUNCATE);
	}
	return 0;
}

int landlock_allow(int rules, const char *path, enum landlock_may may)
{
	struct path_rule rule = {.access = rights(may),
				 .fd = may == LANDLOCK_CHANGE
					   ? nolinks_open(path, O_PATH)
					   : open(path, O_PATH | O_CLOEXEC)};
	struct stat st;
	int rc = -1;

	if (rule.fd >= 0 && fstat(rule.fd, &st) == 0) {
		if (!S_ISDIR(st.st_mode))
			rule.access &= FS_OF_FILES;
		rc = (int)syscall(SYS_landlock_add_rule, rules, RULE_PATH, &rule, 0);
	}
	int failed = errno;
	if (rule.fd >= 0)
		close(rule.fd);
	errno = failed;
	return rc;
}

int landlock_allow_port(int rules, uint16_t port)
{
	const struct port_rule rule = {.access = NET_CONNECT, .port = port};

	if (landlock_abi() < ABI_NET)
		return 0;
	return (int)syscall(SYS_landlock_add_rule, rules, RULE_PORT, &rule, 0);
}

int landlock_enter(int rules)
{
	int rc = (int)syscall(SYS_landlock_restrict_self, rules, 0);
	int failed = errno;

	close(rules);
	errno = failed;
	return rc;
}

int landlock_keep_names(void)
{
	const struct ruleset_attr attr = {.scoped = SCOPE_ABSTRACT_SOCKET};
	int abi = landlock_abi();

	if (abi < ABI_SCOPE)
		return 0;
	int rules = begin(abi, &attr);
	return rules < 0 ? -1 : landlock_enter(rules);
}

// SPDX-License-Identifier: MIT
/* The order in which a process gives up what it could do, and why this order: mounts
 * need capabilities, Landlock and the filter need no_new_privs, and the filter comes
 * last because it forbids all of the others. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernelmgr/guard.h"
#include "kernelmgr/landlock.h"
#include "kernelmgr/supervise.h"

#include "filters.inc" /* made by filter_program.c */

/* Among those that may be ended when memory is short; of 1000. */
#define GO_FIRST "500"

/* ---- namespaces ---- */

int confine_clone(const struct plan *plan)
{
	unsigned long flags =
	    CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | SIGCHLD;

	if (plan->own_net)
		flags |= CLONE_NEWNET;
	if (!plan->become)
		flags |= CLONE_NEWUSER;
	return (int)syscall(SYS_clone, flags, NULL, NULL, NULL, NULL);
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		fail("write %s", path);
	close(fd);
}

static void map_ids(const struct plan *plan)
{
	char line[64];

	put("/proc/self/setgroups", "deny");
	snprintf(line, sizeof line, "%u %u 1", plan->uid, plan->outer_uid);
	put("/proc/self/uid_map", line);
	snprintf(line, sizeof line, "%u %u 1", plan->gid, plan->outer_gid);
	put("/proc/self/gid_map", line);
}

/* A new network has nothing but a loopback interface that is down. */
static void loopback_up(void)
{
	struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0)
		fail("bring the loopback interface up");
	close(fd);
}

/* A namespace of control groups begins at the group in which it is made. */
void confine_begin(const struct plan *plan)
{
	if (!plan->become)
		map_ids(plan);
	confine_group(plan);
	if (unshare(CLONE_NEWCGROUP) < 0)
		fail("make a namespace of control groups");
	if (sethostname("vivarium", strlen("vivarium")) < 0)
		fail("set the host name");
	if (plan->own_net)
		loopback_up();
}

/* ---- rights ---- */

static void become(const struct plan *plan)
{
	if (plan->uid == 0) {
		errno = EPERM;
		fail("run a kernel as root");
	}
	if (setgroups(0, NULL) < 0 || setresgid(plan->gid, plan->gid, plan->gid) < 0 ||
	    setresuid(plan->uid, plan->uid, plan->uid) < 0)
		fail("become user %u", plan->uid);
}

static void drop_capabilities(void)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	const struct __user_cap_data_struct none[2] = {{0, 0, 0}, {0, 0, 0}};

	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (syscall(SYS_capset, &header, none) < 0)
		fail("drop capabilities");
}

/* Before the ids change: after that it may be refused. */
static void drop_bounding_set(void)
{
	for (int i = 0; prctl(PR_CAPBSET_READ, i) >= 0; i++)
		if (prctl(PR_CAPBSET_READ, i) == 1 && prctl(PR_CAPBSET_DROP, i) < 0 &&
		    errno != EPERM) /* no right to; no_new_privs does it */
			fail("drop capability %d", i);
}

/* ---- Landlock ---- */

static void allow(int rules, const char *path, enum landlock_may may)
{
	if (landlock_allow(rules, path, may) < 0 && errno != ENOENT)
		fail("allow %s by Landlock", path);
}

static void allow_mounts(int rules, const struct plan *plan)
{
	for (size_t i = 0; i < plan->mount_count; i++) {
		const struct plan_mount *mount = &plan->mounts[i];
		enum landlock_may may =
		    mount->kind == PLAN_RW ? LANDLOCK_CHANGE : LANDLOCK_RUN;

		if (mount->kind != PLAN_LINK && (plan->tier != 'N' || mount->placed))
			allow(rules, plan->tier == 'N' ? mount->to : mount->from, may);
	}
}

/* Not what it shows of other processes, nor the sockets in /proc/self/net. */
static void allow_proc(int rules)
{
	static const char *const names[] = {
	    "cpuinfo",
	    "filesystems",
	    "loadavg",
	    "meminfo",
	    "stat",
	    "sys",
	    "uptime",
	    "version",
	    "vmstat",
	    "self/attr",
	    "self/auxv",
	    "self/cgroup",
	    "self/cmdline",
	    "self/comm",
	    "self/environ",
	    "self/fd",
	    "self/fdinfo",
	    "self/io",
	    "self/limits",
	    "self/maps",
	    "self/mountinfo",
	    "self/mounts",
	    "self/oom_score",
	    "self/smaps",
	    "self/smaps_rollup",
	    "self/stat",
	    "self/statm",
	    "self/status",
	    "self/task",
	};
	char path[64];

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		snprintf(path, sizeof path, "/proc/%s", names[i]);
		allow(rules, path, LANDLOCK_LOOK);
	}
}

static void allow_shared_system(int rules, char tier)
{
	static const char *const devices[] = {"/dev/null", "/dev/zero", "/dev/full",
					      "/dev/random", "/dev/urandom"};

	for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++)
		allow(rules, devices[i], LANDLOCK_DEVICES);
	if (tier == 'U') { /* those of others belong to other users */
		allow(rules, "/dev/ptmx", LANDLOCK_DEVICES);
		allow(rules, "/dev/pts", LANDLOCK_DEVICES);
	}
	allow(rules, "/dev/shm", LANDLOCK_DROP); /* others' names stay unknown */
	allow_proc(rules);
}

static void enter_landlock(const struct plan *plan)
{
	int rules;

	if (landlock_abi() == 0)
		return; /* of tier N the rest stands; the others ask for it first */
	rules = landlock_begin(plan->no_internet);
	if (rules < 0)
		fail("begin Landlock rules");
	if (plan->tier == 'N') {
		allow(rules, "/", LANDLOCK_LOOK);
		allow(rules, "/dev", LANDLOCK_DEVICES);
		allow(rules, "/dev/shm", LANDLOCK_CHANGE);
		allow(rules, "/tmp", LANDLOCK_CHANGE);
	} else {
		allow_shared_system(rules, plan->tier);
	}
	allow_mounts(rules, plan);
	if (plan->port && landlock_allow_port(rules, (uint16_t)plan->port) < 0)
		fail("allow port %ld by Landlock", plan->port);
	if (landlock_enter(rules) < 0)
		fail("enter Landlock");
}

/* ---- the filter of system calls ---- */

#define FILTER(name)                                                                   \
	(struct sock_fprog)                                                            \
	{                                                                              \
		.len = sizeof filter_##name / sizeof filter_##name[0],                 \
		.filter = (struct sock_filter *)(uintptr_t)filter_##name               \
	}

static void enter(struct sock_fprog filter)
{
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) < 0)
		fail("enter the filter of system calls");
}

static int enter_guarded(void)
{
	struct sock_fprog filter = FILTER(guarded);
	long fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, guard_flags(), &filter);

	if (fd < 0)
		fail("guard connect()");
	return (int)fd;
}

/* Returns the listener of "guarded", or -1. */
static int enter_filters(const struct plan *plan)
{
	enter(FILTER(never));
	if (plan->tier != 'U' &&
	    !plan->all_modes) /* there it gives nobody more than its maker has */
		enter(FILTER(set_id));
	enter(plan->tier == 'N'    ? FILTER(private)
	      : plan->all_modes    ? FILTER(copying)
	      : !plan->no_internet ? FILTER(shared)
	      : plan->port         ? FILTER(proxied)
				   : FILTER(offline));
	return plan->guard ? enter_guarded() : -1;
}

void confine_rights(const struct plan *plan)
{
	if (plan->become)
		become(plan);
	drop_capabilities();
}

int confine(const struct plan *plan)
{
	if (plan->tier == '0')
		return -1;
	drop_bounding_set();
	confine_rights(plan);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		fail("set no_new_privs");
	enter_landlock(plan);
	return enter_filters(plan);
}

/* ---- limits ---- */

void confine_group(const struct plan *plan)
{
	char path[PATH_MAX];

	put("/proc/self/oom_score_adj", GO_FIRST);
	for (size_t i = 0; i < plan->group_count; i++) {
		snprintf(path, sizeof path, "%.4000s/cgroup.procs", plan->groups[i]);
		put(path, "0");
	}
}

void confine_remove_groups(const struct plan *plan)
{
	char above[PATH_MAX];

	for (size_t i = 0; i < plan->group_count; i++) {
		snprintf(above, sizeof above, "%.4000s", plan->groups[i]);
		rmdir(above);
		*strrchr(above, '/') = '\0';
		rmdir(above); /* if it was the last one */
	}
}

void confine_limits(const struct plan *plan)
{
	for (size_t i = 0; i < plan->limit_count; i++) {
		const struct plan_limit *limit = &plan->limits[i];
		__rlimit_resource_t what = (__rlimit_resource_t)limit->what;
		struct rlimit value;

		if (getrlimit(what, &value) < 0)
			fail("get resource limit %d", limit->what);
		if (limit->most < value.rlim_max)
			value.rlim_max = limit->most;
		value.rlim_cur = value.rlim_max;
		if (setrlimit(what, &value) < 0)
			fail("set resource limit %d", limit->what);
	}
}

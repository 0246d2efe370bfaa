// SPDX-License-Identifier: MIT
/* The kernel's own view of the file system: nothing of the machine but what the plan
 * names.  By the mount calls of Linux 5.2 and newer, which copy first and attach later,
 * so that no mount can hide the source of a later one. */
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernelmgr/nolinks.h"
#include "kernelmgr/supervise.h"

/* <sys/mount.h> has these too, but clashes with <linux/mount.h>. */
int mount(const char *what, const char *where, const char *type, unsigned long flags,
	  const void *data);
int umount2(const char *where, int flags);
int pivot_root(const char *root, const char *put_old);
enum { REC = 0x4000, PRIVATE = 1 << 18, DETACH = 2 };

enum { PATH_SIZE = 4096, COUNT_DEVICES = 5 };

static const char *const devices[COUNT_DEVICES] = {"dev/null", "dev/zero", "dev/full",
						   "dev/random", "dev/urandom"};
static int device_trees[COUNT_DEVICES];
static int old_proc = -1; /* the machine's, for where a new one is refused */

/* ---- system calls without a wrapper in glibc 2.35 and older ---- */

static int set_flags(int tree, unsigned flags, __u64 set, int owners)
{
	struct mount_attr attr = {.attr_set = set,
				  .userns_fd = (__u64)(owners < 0 ? 0 : owners)};

	return (int)syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | flags, &attr,
			    sizeof attr);
}

/* ---- owners ---- */

static void write_map(pid_t pid, const char *name, unsigned on_disk, unsigned here)
{
	char path[64], line[64];

	snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
	int len = snprintf(line, sizeof line, "%u %u 1", on_disk, here);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, line, (size_t)len) != len)
		fail("write %s", path);
	close(fd);
}

/* A user namespace in which the id on the disk is the kernel's id. */
static int make_owners(const struct plan *plan, const struct stat *st)
{
	char path[64];
	pid_t pid =
	    (pid_t)syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);

	if (pid < 0)
		fail("make a user namespace");
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	write_map(pid, "uid_map", st->st_uid, plan->uid);
	write_map(pid, "gid_map", st->st_gid, plan->gid);
	snprintf(path, sizeof path, "/proc/%d/ns/user", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		fail("open %s", path);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return fd;
}

void rootfs_map_owners(struct plan *plan)
{
	struct stat known[PLAN_MOUNTS_MAX];

	for (size_t i = 0; i < plan->mount_count; i++) {
		struct plan_mount *mount = &plan->mounts[i];

		if (mount->kind != PLAN_RW && mount->kind != PLAN_OWN)
			continue;
		if (stat(mount->from, &known[i]) < 0)
			fail("find %s", mount->from);
		for (size_t j = 0; j < i && mount->owners < 0; j++)
			if (plan->mounts[j].owners >= 0 &&
			    known[j].st_uid == known[i].st_uid &&
			    known[j].st_gid == known[i].st_gid)
				mount->owners = plan->mounts[j].owners;
		if (mount->owners < 0)
			mount->owners = make_owners(plan, &known[i]);
	}
}

/* ---- gathering ---- */

/* What is written to may lie in a directory that code writes to, which could put a link
 * there. */
static int grab(const char *from, bool read_only)
{
	int fd =
	    read_only ? open(from, O_PATH | O_CLOEXEC) : nolinks_open(from, O_PATH);
	int tree = fd < 0 ? -1
			  : (int)syscall(SYS_open_tree, fd, "",
					 OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC |
					     AT_EMPTY_PATH | AT_RECURSIVE);

	if (fd >= 0)
		close(fd);
	if (tree >= 0 &&
	    set_flags(tree, AT_RECURSIVE,
		      MOUNT_ATTR_NOSUID | (read_only ? MOUNT_ATTR_RDONLY : 0), -1) < 0)
		fail("set the flags of %s", from);
	return tree;
}

void rootfs_gather(struct plan *plan)
{
	if (mount(NULL, "/", NULL, REC | PRIVATE, NULL) < 0)
		fail("make mounts private");
	for (size_t i = 0; i < plan->mount_count; i++) {
		struct plan_mount *mount = &plan->mounts[i];

		if (mount->kind == PLAN_LINK)
			continue;
		mount->tree = grab(mount->from, mount->kind != PLAN_RW);
		if (mount->tree < 0 && mount->kind != PLAN_OPT)
			fail("show %s", mount->from);
		if (mount->owners >= 0 &&
		    set_flags(mount->tree, 0, MOUNT_ATTR_IDMAP, mount->owners) < 0)
			fail("map the owner of %s", mount->from);
	}
	for (int i = 0; i < COUNT_DEVICES; i++) {
		char path[32];

		snprintf(path, sizeof path, "/%s", devices[i]);
		device_trees[i] = grab(path, false);
		if (device_trees[i] < 0)
			fail("show %s", path);
	}
	old_proc = grab("/proc", true);
}

/* ---- the new root: everything relative to the current directory ---- */

/* The directories above path, and path as a directory or as a file to mount on. */
static void make(const char *path, bool directory)
{
	char part[PATH_SIZE];

	if (snprintf(part, sizeof part, "%s", path) >= (int)sizeof part) {
		errno = ENAMETOOLONG;
		fail("make %.100s", path);
	}
	for (char *slash = strchr(part, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(part, 0755) < 0 && errno != EEXIST)
			fail("make %s", part);
		*slash = '/';
	}
	if (directory) {
		if (mkdir(part, 0755) < 0 && errno != EEXIST)
			fail("make %s", part);
		return;
	}
	int fd = open(part, O_CREAT | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0 && errno != EROFS) /* it lies in what is mounted already */
		fail("make %s", part);
	close(fd);
}

static void place(int tree, const char *at)
{
	if (syscall(SYS_move_mount, tree, "", AT_FDCWD, at, MOVE_MOUNT_F_EMPTY_PATH) <
	    0)
		fail("mount on %s", at);
	close(tree);
}

struct option {
	const char *name, *value;
};

/* A new file system that is mounted nowhere yet; -1 if it may not be. */
static int make_fs(const char *type, const struct option *options, __u64 flags)
{
	int fs = (int)syscall(SYS_fsopen, type, FSOPEN_CLOEXEC);

	if (fs < 0)
		return -1;
	for (; options && options->name; options++)
		if (syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, options->name,
			    options->value, 0) < 0)
			return -1;
	if (syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -1;
	int tree = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, flags);
	close(fs);
	return tree;
}

static void place_fs(const char *type, const struct option *options, __u64 flags,
		     const char *at)
{
	int tree = make_fs(type, options, flags | MOUNT_ATTR_NOSUID);

	if (tree < 0)
		fail("make a %s for /%s", type, at);
	make(at, true);
	place(tree, at);
}

static void place_tmpfs(const char *size, const char *mode, __u64 flags, const char *at)
{
	const struct option options[] = {{"size", size}, {"mode", mode}, {NULL, NULL}};

	place_fs("tmpfs", options, flags | MOUNT_ATTR_NODEV, at);
}

/* What says more of the machine than a program needs.  Empty files lie over these. */
static void mask_proc(void)
{
	static const char *const hidden[] = {
	    "proc/kcore",       "proc/keys",          "proc/key-users",
	    "proc/kmsg",        "proc/kallsyms",      "proc/latency_stats",
	    "proc/sched_debug", "proc/sysrq-trigger", "proc/timer_list",
	    "proc/timer_stats",
	};

	for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++)
		if (access(hidden[i], F_OK) == 0)
			place(grab("dev/null", true), hidden[i]);
}

/* Of the new pid namespace.  A container that hides parts of its /proc allows no new
 * one: there the container's own is shown, in which the kernel may read no other's. */
static void place_proc(void)
{
	int tree = make_fs("proc", NULL,
			   MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);

	make("proc", true);
	if (tree < 0 && errno != EPERM)
		fail("make a proc");
	place(tree < 0 ? old_proc : tree, "proc");
	if (tree >= 0 && old_proc >= 0)
		close(old_proc);
	mask_proc();
}

static void make_dev(const struct plan *plan)
{
	static const struct option pts[] = {
	    {"ptmxmode", "0666"}, {"mode", "0600"}, {NULL, NULL}};
	static const char *const links[][2] = {{"/proc/self/fd", "dev/fd"},
					       {"/proc/self/fd/0", "dev/stdin"},
					       {"/proc/self/fd/1", "dev/stdout"},
					       {"/proc/self/fd/2", "dev/stderr"},
					       {"pts/ptmx", "dev/ptmx"}};

	make("dev", true);
	for (int i = 0; i < COUNT_DEVICES; i++) {
		make(devices[i], false);
		place(device_trees[i], devices[i]);
	}
	place_tmpfs(plan->shm, "1777", MOUNT_ATTR_NOEXEC, "dev/shm");
	place_fs("devpts", pts, MOUNT_ATTR_NOEXEC, "dev/pts");
	for (size_t i = 0; i < sizeof links / sizeof links[0]; i++)
		if (symlink(links[i][0], links[i][1]) < 0)
			fail("link %s", links[i][1]);
}

static void place_mount(struct plan_mount *mount)
{
	const char *to = mount->to + strspn(mount->to, "/");
	struct stat st;

	if (mount->kind == PLAN_LINK) {
		if (symlink(mount->from, to) < 0)
			fail("link %s", mount->to);
		return;
	}
	if (mount->tree < 0)
		return;
	if (fstat(mount->tree, &st) < 0)
		fail("look at %s", mount->from);
	make(to, S_ISDIR(st.st_mode));
	place(mount->tree, to);
	mount->placed = true;
}

/* The new root is put on this directory of the old one until it is the root. */
static const char *scaffold(const struct plan *plan)
{
	for (size_t i = 0; i < plan->mount_count; i++)
		if (plan->mounts[i].kind == PLAN_RW)
			return plan->mounts[i].from;
	errno = EINVAL;
	fail("find a directory to write to in the plan");
}

void rootfs_enter(struct plan *plan)
{
	static const struct option options[] = {
	    {"size", "1m"}, {"mode", "755"}, {NULL, NULL}};
	const char *base = scaffold(plan);
	struct mount_attr read_only = {.attr_set = MOUNT_ATTR_RDONLY};
	int root = make_fs("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);

	if (root < 0)
		fail("make a tmpfs for the root");
	place(root, base);
	if (chdir(base) < 0)
		fail("enter the new root");
	make_dev(plan);
	place_tmpfs(plan->tmp, "1777", 0, "tmp");
	place_proc();
	for (size_t i = 0; i < plan->mount_count; i++)
		place_mount(&plan->mounts[i]);
	if (syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", DETACH) < 0 ||
	    chdir("/") < 0)
		fail("leave the old root");
	if (syscall(SYS_mount_setattr, AT_FDCWD, "/", 0, &read_only, sizeof read_only) <
	    0)
		fail("make the root read-only");
}

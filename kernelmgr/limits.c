// SPDX-License-Identifier: MIT
#include "kernelmgr/limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "kernelmgr/idmap.h"
#include "wire/log.h"
#include "wire/mem.h"
#include "wire/words.h"

enum {
	FILES_MAX = 4096, /* open in one process */
	SWEEP_US = 100 * 1000,
	US_OF_MILLI = 100,     /* of 100 ms, of a thousandth of a processor */
	ROOM_PART = 4,         /* of the memory limit for each file system in memory */
	ROOM_PERCENT = 25,     /* of the machine, where there is no limit */
	FILE_LEAST = 16 << 20, /* bytes: our own files in the spool must fit */
	NEARLY = 90,           /* percent of a limit that was reached */
	LAST_LOOKS = 50,       /* at the end, for groups to become empty */
	LAST_LOOK_US = 2 * 1000,
};
#define MEMORY_AUTO (INT64_C(4) << 30)
#define DATA_ROOM (INT64_C(4) << 30) /* see limits_plan() */

static void sweep(void *arg);

/* ---- all kernels ---- */

static int64_t memory_of(const struct config *config)
{
	int64_t machine = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
	int64_t own = (int64_t)cgroup_own_memory("/proc/self");

	if (config->kernel_memory != CONFIG_AUTO)
		return config->kernel_memory;
	if (own && own < machine)
		machine = own;
	return machine / 2 < MEMORY_AUTO ? machine / 2 : MEMORY_AUTO;
}

void limits_open(struct limits *out, struct loop *loop, const struct config *config,
		 const struct walls *walls)
{
	*out = (struct limits){.walls = walls,
			       .loop = loop,
			       .quota = config->quota,
			       .values = {.memory = memory_of(config),
					  .pids = config->kernel_pids,
					  .cpu_us = config->kernel_cpus * US_OF_MILLI}};
	cgroups_open(&out->groups, "/proc/self");
}

void limits_close(struct limits *self)
{
	if (!self->walls) /* it was never opened */
		return;
	for (int i = 0; i < LAST_LOOKS && self->left_count; i++) {
		usleep(LAST_LOOK_US);
		sweep(self);
	}
	if (self->loop)
		loop_timer_stop(&self->sweep);
	cgroups_close(&self->groups);
	free(self->left);
	self->left = NULL;
}

/* The machine's root, whatever it is called here, may start as many as it likes. */
static bool is_machines_root(void)
{
	unsigned self = geteuid();
	struct idmap_range range;

	return idmap_find(self, &range) ? range.outside + (self - range.inside) == 0
					: self == 0;
}

/* RLIMIT_NPROC counts all processes of a user: it must be a kernel's own one.  Since
 * Linux 5.14 one in a user namespace of its own is, but for root. */
static bool counts_own_processes(const struct walls *walls)
{
	struct utsname system;
	int major = 0, minor = 0;

	if (walls->tier == 'U' || walls->become)
		return true;
	return walls->tier == 'N' && !is_machines_root() && uname(&system) == 0 &&
	       sscanf(system.release, "%d.%d", &major, &minor) == 2 &&
	       (major > 5 || (major == 5 && minor >= 14));
}

/* ---- in words ---- */

static const char *comma(const struct buf *text)
{
	return text->size ? ", " : "";
}

static void describe_memory(const struct limits *self, struct buf *kept,
			    struct buf *missing)
{
	char most[SIZE_TEXT];

	if (!self->values.memory)
		return;
	size_text(most, (uint64_t)self->values.memory);
	if (cgroups_tree(&self->groups, CGROUP_MEMORY))
		buf_printf(kept, "memory %s", most);
	else
		buf_printf(missing,
			   "memory %s holds for each process, not for all of "
			   "a kernel together",
			   most);
}

static void describe_pids(const struct limits *self, struct buf *kept,
			  struct buf *missing)
{
	bool group = cgroups_tree(&self->groups, CGROUP_PIDS) != NULL;

	if (!self->values.pids)
		return;
	if (group || counts_own_processes(self->walls))
		buf_printf(kept, "%s%lld processes", comma(kept),
			   (long long)self->values.pids);
	else
		buf_printf(missing, "%sno limit of processes", comma(missing));
}

static void describe_cpu(const struct limits *self, struct buf *kept,
			 struct buf *missing)
{
	if (!cgroups_tree(&self->groups, CGROUP_CPU))
		buf_printf(missing, "%sno equal shares%s of the processors",
			   comma(missing), self->values.cpu_us ? " and no limit" : "");
	else if (self->values.cpu_us)
		buf_printf(kept, "%s%g processors", comma(kept),
			   (double)self->values.cpu_us / US_OF_MILLI / 1000);
	else
		buf_printf(kept, "%sequal shares of the processors", comma(kept));
}

static void describe_quota(const struct limits *self, struct buf *kept)
{
	char most[SIZE_TEXT];

	if (!self->quota)
		return;
	size_text(most, (uint64_t)self->quota);
	buf_printf(kept, "%sfiles of its workspace %s", comma(kept), most);
}

void limits_describe(const struct limits *self, struct buf *kept, struct buf *missing)
{
	bool v1 = false, v2 = false;

	describe_memory(self, kept, missing);
	describe_pids(self, kept, missing);
	describe_cpu(self, kept, missing);
	for (size_t i = 0; i < self->groups.count; i++)
		if (self->groups.trees[i].kinds)
			*(self->groups.trees[i].v2 ? &v2 : &v1) = true;
	if (v1 || v2)
		buf_printf(kept, " (control groups version %s)",
			   v1 && v2 ? "1 and 2"
			   : v2     ? "2"
				    : "1");
	describe_quota(self, kept);
	if (missing->size && self->groups.why[0])
		buf_printf(missing, " (%s)", self->groups.why);
}

void limits_log(const struct limits *self)
{
	owned(buf_finish) struct buf kept = {0}, missing = {0};

	limits_describe(self, &kept, &missing);
	if (kept.size)
		log_info("limits", "of a kernel: %s", buf_str(&kept));
	if (missing.size)
		log_warn("limits", "not kept here: %s", buf_str(&missing));
}

/* ---- one kernel ---- */

int limits_begin(struct limits *self, struct limits_kernel *kernel, unsigned number,
		 struct err *err)
{
	*kernel = (struct limits_kernel){.number = number};
	return cgroups_make(&self->groups, number, &self->values, err);
}

static void plan_limit(struct buf *out, const char *name, int64_t most)
{
	buf_printf(out, "limit\t%s\t%lld\n", name, (long long)most);
}

/* What lies in its file systems in memory counts as its memory. */
static void plan_rooms(const struct limits *self, struct buf *out)
{
	if (self->walls->tier != 'N')
		return;
	if (self->values.memory) {
		plan_limit(out, "shm", self->values.memory / ROOM_PART);
		plan_limit(out, "tmp", self->values.memory / ROOM_PART);
	} else {
		buf_printf(out, "limit\tshm\t%d%%\nlimit\ttmp\t%d%%\n", ROOM_PERCENT,
			   ROOM_PERCENT);
	}
}

void limits_plan(const struct limits *self, const struct limits_kernel *kernel,
		 struct buf *out)
{
	const struct cgroup_values *values = &self->values;
	bool group = cgroups_tree(&self->groups, CGROUP_MEMORY) != NULL;
	char path[PATH_MAX];

	for (size_t i = 0; i < self->groups.count; i++)
		if (self->groups.trees[i].kinds) {
			cgroup_path(&self->groups.trees[i], kernel->number, path);
			buf_printf(out, "group\t%s\n", path);
		}
	plan_rooms(self, out);
	plan_limit(out, "core", 0);
	plan_limit(out, "nofile", FILES_MAX);
	/* A group knows only of memory that is used, and to be over its limit is the
	 * end.  One request that could never be fulfilled is refused at once, which
	 * costs no more than an exception; what was asked for and not used, such as
	 * the stacks of threads, has its room. */
	if (values->memory)
		plan_limit(out, "data", values->memory + (group ? DATA_ROOM : 0));
	if (values->pids && !cgroups_tree(&self->groups, CGROUP_PIDS) &&
	    counts_own_processes(self->walls))
		plan_limit(out, "nproc", values->pids);
	if (self->quota)
		plan_limit(out, "fsize",
			   self->quota > FILE_LEAST ? self->quota : FILE_LEAST);
}

void limits_tell(const struct limits *self, struct limits_kernel *kernel,
		 struct buf *out)
{
	struct cgroup_use use;
	char most[SIZE_TEXT];

	cgroups_use(&self->groups, kernel->number, &use);
	uint64_t ended = use.ended - kernel->told.ended;
	if (use.ended > kernel->told.ended) {
		size_text(most, (uint64_t)self->values.memory);
		buf_printf(out,
			   "The system ended %llu process%s that the kernel had "
			   "started: out of memory (limit %s: "
			   "VIVARIUM_KERNEL_MEMORY).\n",
			   (unsigned long long)ended, ended == 1 ? "" : "es", most);
	}
	if (use.not_started > kernel->told.not_started)
		buf_printf(out,
			   "The kernel was at its limit of %lld processes and threads "
			   "(VIVARIUM_KERNEL_PIDS): no more could be started.\n",
			   (long long)self->values.pids);
	kernel->told = use;
}

bool limits_tell_death(const struct limits *self, const struct limits_kernel *kernel,
		       char *words, size_t size)
{
	uint64_t limit = (uint64_t)self->values.memory;
	char used[SIZE_TEXT], most[SIZE_TEXT];
	struct cgroup_use use;

	cgroups_use(&self->groups, kernel->number, &use);
	if (use.ended <= kernel->told.ended)
		return false;
	if (!use.peak) /* an old version 2 does not say */
		use.peak = limit;
	size_text(used, use.peak);
	size_text(most, limit);
	if (limit && use.peak / NEARLY >= limit / 100)
		snprintf(words, size,
			 "was ended by the system: out of memory (%s used, limit %s: "
			 "VIVARIUM_KERNEL_MEMORY)",
			 used, most);
	else
		snprintf(words, size,
			 "was ended by the system: the machine was out of memory (the "
			 "kernel used %s of it)",
			 used);
	return true;
}

/* ---- the end ---- */

static void sweep(void *arg)
{
	struct limits *self = arg;
	size_t kept = 0;

	for (size_t i = 0; i < self->left_count; i++)
		if (!cgroups_remove(&self->groups, self->left[i]))
			self->left[kept++] = self->left[i];
	self->left_count = kept;
	if (kept)
		loop_timer_start(self->loop, &self->sweep, SWEEP_US, sweep, self);
}

void limits_end(struct limits *self, const struct limits_kernel *kernel)
{
	if (!kernel->number)
		return;
	self->left = xrealloc(self->left, (self->left_count + 1) * sizeof *self->left);
	self->left[self->left_count++] = kernel->number;
	sweep(self);
}

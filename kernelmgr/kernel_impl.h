/* kernel_impl - what the kernel files share.  Nobody else includes it.
 * SPDX-License-Identifier: MIT */
#ifndef KERNELMGR_KERNEL_IMPL_H
#define KERNELMGR_KERNEL_IMPL_H

#include <limits.h>

#include "kernelmgr/kernel.h"
#include "kernelmgr/lastwords.h"
#include "wire/buf.h"

struct kernel {
	/* fixed at create */
	const struct kernel_place *place; /* borrowed */
	struct kernel_owner owner;
	char name[80]; /* for the log: workspace and number */
	char runtime_dir[PATH_MAX];
	unsigned number; /* of all kernels of this daemon */

	enum kernel_state state;
	struct loop_timer deadline, probe;
	struct child *supervisor; /* NULL once it has ended */
	struct loop_watch *control_watch, *report_watch, *output_watch;
	int control, report, output; /* borrowed from the watches */
	int notices;                 /* owned; to the kernel, -1 none */
	char spool[PATH_MAX];        /* "": it saves nothing */
	bool restoring;
	long long restored_upto; /* its progress when we last looked */
	struct buf reported;     /* a line of its report that is not whole yet */
	pid_t pid;
	struct limits_kernel limits;

	struct zsock *sockets[KERNEL_CHANNEL_COUNT];
	struct replay_guard replays[KERNEL_CHANNEL_COUNT];
	struct jmsg_session session;
	char probe_id[JMSG_ID_SIZE];
	bool probe_answered, iopub_heard;
	unsigned long long messages, dropped;

	struct lastwords last_words;
	struct buf crash_output;
	struct kernel_death death;
	int closing_turns;
	unsigned long long messages_at_turn;
};

/* kernel.c: the only way to change state. */
void kernel_set_state(struct kernel *self, enum kernel_state next, const char *why);
/* The process is gone; what it had sent may still be on the way to us. */
void kernel_begin_closing(struct kernel *self, const char *why);

/* kernel_start.c: opens its channels and starts its supervisor, whose reports it takes.
 */
int kernel_start(struct kernel *self, const struct kernel_begin *begin,
		 struct err *err) must_check;
/* Reads how far it is with restoring: the number of the name it is at and the name;
 * -1 when it has not begun. */
long long kernel_progress(const struct kernel *self, char name[KERNEL_NAME_SIZE]);

/* kernel_messages.c */
/* Connects to the sockets that the kernel has bound and begins to probe it. */
void kernel_connect(struct kernel *self);
/* Sends a kernel_info_request; while PROBING, again and again. */
void kernel_probe(void *self);

#endif

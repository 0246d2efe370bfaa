/* call_impl - what call.c and workspace.c share.  Nobody else includes it.
 * SPDX-License-Identifier: MIT */
#ifndef KERNELMGR_CALL_IMPL_H
#define KERNELMGR_CALL_IMPL_H

#include <sys/queue.h>

#include "kernelmgr/call.h"
#include "kernelmgr/kernel.h"
#include "kernelmgr/proof.h"
#include "kernelmgr/quota.h"
#include "kernelmgr/viewer.h"
#include "kernelmgr/workspace.h"
#include "wire/buf.h"
#include "wire/loop.h"

struct call {
	TAILQ_ENTRY(call) link;      /* workspace::calls */
	struct workspace *workspace; /* borrowed */
	struct buf code;
	struct call_options options;
	call_done_fn *done;
	void *arg;
	call_print_fn *print; /* NULL: nobody looks on */
	void *print_arg;
	unsigned long long lines; /* that came on its streams */

	enum call_state state;
	struct loop_timer deadline;
	int64_t since_us;       /* it is in this state */
	int64_t run_us, ask_us; /* that it may still run, wait for answers */
	char msg_id[JMSG_ID_SIZE];
	unsigned long long cell;
	uint64_t noted;       /* its number in the journal */
	int restarts;         /* kernels that ended before its code began */
	bool recycled;        /* the old kernel has been sent away */
	bool looking, looked; /* the store was asked whether it can go back, and can */
	bool going;           /* the store was asked to go back */
	json_t *back;         /* what it went back to */
	int64_t started_us, ended_us;
	long long interrupted_s; /* after its start */
	unsigned long long messages, messages_at_deadline;
	int extensions; /* of REPLIED, while a backlog of output comes in */

	enum call_end end;
	int exit_code;
	struct buf notice, late;
	size_t notice_before;
	struct outputs outputs;
	struct files_scan before, after;
	struct files_list wrote;
	struct pictures *pictures;
	size_t pictures_left_out;
	bool pictured;   /* its pictures are done */
	bool measuring;  /* it waits to know what its workspace's files take */
	bool over_quota; /* the reason why it was interrupted */
};
TAILQ_HEAD(call_queue, call);

struct saving {              /* what saving.c keeps for a workspace */
	struct store *store; /* NULL: nothing is saved */
	bool asking;         /* the store was asked which state to begin with */
	bool fresh;          /* the next kernel begins with none */
	uint64_t generation; /* that the present kernel began with; 0 none */
	long long cell;      /* the newest state is the one after it; 0 there is none */
	long long began; /* the cell after which the present kernel's beginning was */
	long long base;  /* cells up to this one were left when that state was chosen */
	long long kept;  /* the same of what the store has */
	bool untold;     /* the present kernel restored a state, and no reply said so */
	int adopting; /* generations that the store was told of and has not answered */
	uint64_t postponed; /* one that it was not told of yet; 0 none */
	/* What the present kernel has had said of it: code in it can tell us anything.
	 */
	int damages, refusals;
	int failures; /* kernels that died restoring, one after the other */
	char culprit[KERNEL_NAME_SIZE]; /* the name that the last of them was at */
};

enum { WRITTEN_MAX = 64 };
struct written { /* a file as workspace_write() left it */
	uint64_t inode;
	int64_t mtime_ns;
};

struct workspace {
	struct workspace_place *place; /* borrowed */
	char name[WORKSPACE_NAME_SIZE];
	char dir[PATH_MAX], home[PATH_MAX];
	uid_t owner; /* of its kernels; 0: the daemon's own, or the walls' choice */
	struct files *files;
	struct kernel *kernel; /* NULL when there is none */
	struct saving saving;
	struct proving proving;
	struct quota quota;
	struct branching *branching; /* NULL: no branch is being made */
	struct call_queue calls;     /* call::link; the head has the kernel */
	struct call_queue finishing; /* call::link; their pictures are in work */
	size_t waiting;              /* in calls, the head included */
	bool draining;
	unsigned long long cells; /* number of the last one in this kernel */
	json_t *summary;          /* of the last reply: what a crash would lose */
	json_t *known;            /* the same, and what a restart will bring back */
	struct buf notice;        /* for the next call */
	struct loop_timer idle;
	bool idle_stopped; /* by the idle timer */
	struct clip late;  /* output that belongs to no open call */
	bool exiting;      /* the last cell called exit() */
	struct written written[WRITTEN_MAX];
	size_t next_written;
	struct loop_timer pump;
};

/* call.c: what its workspace tells it.  Each may finish the call. */
void call_starting(struct call *self);
void call_send(struct call *self);
void call_on_begun(struct call *self);
void call_on_message(struct call *self, enum kernel_channel channel,
		     const struct jmsg *message);
void call_on_death(struct call *self, const struct kernel_death *death);
/* The workspace is at the saved state that the call asked for. */
void call_on_back(const json_t *answer, void *arg);
/* The branch that the call asked for is there. */
void call_on_branched(struct call *self, const json_t *answer);
/* Its workspace's files take too much: it is interrupted. */
void call_over_quota(struct call *self);
/* What its workspace's files take is known, or will not be. */
void call_on_measured(struct call *self);

/* Seconds until the deadline of a state. */
double call_deadline_s(enum call_state state);

/* call_words.c: appends whole lines to the notice, of a run that ended by itself or was
 * interrupted; of one whose kernel died. */
void call_tell_end(struct call *self);
void call_tell_death(struct call *self, const struct kernel_death *death);
/* So far. */
long long call_seconds_run(const struct call *self);

/* call_live.c: a message of iopub, for who watches. */
void call_show(struct call *self, const struct jmsg *message);

/* call_pictures.c: makes the pictures that come with the answer; then done(self). */
void call_begin_pictures(struct call *self, pictures_done_fn *done);
void call_fail(struct call *self, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void call_destroy(struct call **self);

/* workspace.c: what its calls tell it. */
/* The call that the kernel is working on, or NULL. */
struct call *workspace_running(const struct workspace *self);
/* Soon, from the loop: gives the kernel to the call at the head of the queue. */
void workspace_pump(struct workspace *self);
/* Appends " (a, b, +3 more)": the names in the kernel's namespace after the last cell.
 */
void workspace_list_names(const struct workspace *self, struct buf *out);
/* What the next call will find, as in a reply's metadata.  Consumes it; NULL: who
 * knows.
 */
void workspace_remember(struct workspace *self, json_t *summary);
/* Tells whoever wants to know. */
void workspace_changed(const struct workspace *self, const struct files_change *change);
/* The call needs the kernel no more; the next one may have it. */
void workspace_release(struct workspace *self, struct call *call);
/* Starts a kernel.  snapshot is borrowed; NULL: it saves nothing. */
int workspace_start_kernel(struct workspace *self,
			   const struct connfile_snapshot *snapshot,
			   struct err *err) must_check;
/* Appends what the kernel's end costs, as the end of a sentence and more. */
void workspace_tell_loss(const struct workspace *self, struct buf *out);

/* saving.c: saved states.  All are harmless where nothing is saved. */
int saving_open(struct workspace *self, struct err *err) must_check;
void saving_close(struct workspace *self);
/* Finds out which state to restore, then starts a kernel; the calls that wait for it
 * fail if that fails. */
void saving_begin(struct workspace *self);
/* The kernel tells of its work. */
void saving_on_saved(struct workspace *self, uint64_t generation);
void saving_on_damaged(struct workspace *self, const char *names);
/* True if the kernel died of what it restored; the next one does without. */
bool saving_on_death(struct workspace *self, const struct kernel_death *death);
/* A cell is over: writes it down, learns what was saved. */
void saving_on_cell(struct workspace *self, const struct call *call);
/* Appends whole lines about what the kernel restored, if this is its first reply. */
void saving_tell_restored(struct workspace *self, const json_t *reply, struct buf *out);
/* The same in short, for a kernel that died before its first reply. */
void saving_tell_begun(struct workspace *self, struct buf *out);
/* While a kernel lives: true until it is known that there is such a state.  The call
 * fails if there is none, and the kernel is not disturbed. */
bool saving_look_back(struct workspace *self, struct call *call);
/* The daemon ended while this cell ran: its number is not used again. */
void saving_on_lost(unsigned long long cell, long long since, void *workspace);
/* Puts an older state in force; call_on_back() follows. */
void saving_go_back(struct workspace *self, struct call *call);
/* It is done: the store's answer says what the next kernel begins with. */
void saving_went_back(struct workspace *self, const json_t *answer);

/* branch.c */
/* Makes the branch that the call at the head of the queue asks for, step by step: call
 * it again when something has changed.  call_on_branched() or call_fail() follow. */
void branch_go(struct workspace *self, struct call *call);
/* The call is over: whatever was begun for it is taken back. */
void branch_drop(struct workspace *self, const struct call *call);

#endif

/*
 * kernel - one live Jupyter kernel: its supervisor, its sockets, and its state.  It
 * belongs to one owner (a workspace), which hears of it through struct kernel_owner.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef KERNELMGR_KERNEL_H
#define KERNELMGR_KERNEL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "kernelmgr/lastwords.h"
#include "kernelmgr/launch.h"
#include "kernelmgr/limits.h"
#include "kernelmgr/states.h"
#include "kernelmgr/walls.h"
#include "wire/buf.h"
#include "wire/connfile.h"
#include "wire/err.h"
#include "wire/jmsg.h"
#include "wire/loop.h"

/* One row per state: enum name, text, legal next states (a mask, see kernel.c),
 * seconds until its deadline (0: none), what happens then. */
#define KERNEL_STATES(X)                                                               \
	X(LAUNCHING, "launching", TO(PROBING) | TO(KILLING) | TO(CLOSING), 60, "kill") \
	X(PROBING, "probing", TO(RESTORING) | TO(IDLE) | TO(KILLING) | TO(CLOSING),    \
	  30, "kill")                                                                  \
	X(RESTORING, "restoring",                                                      \
	  TO(RESTORING) | TO(PROBING) | TO(KILLING) | TO(CLOSING), 20,                 \
	  "kill, unless it got on")                                                    \
	X(IDLE, "idle", TO(BUSY) | TO(STOPPING) | TO(KILLING) | TO(CLOSING), 0, "")    \
	X(BUSY, "busy",                                                                \
	  TO(IDLE) | TO(INTERRUPTING) | TO(STOPPING) | TO(KILLING) | TO(CLOSING), 0,   \
	  "")                                                                          \
	X(INTERRUPTING, "interrupting",                                                \
	  TO(INTERRUPTING) | TO(IDLE) | TO(STOPPING) | TO(KILLING) | TO(CLOSING), 1,   \
	  "interrupt again")                                                           \
	X(STOPPING, "stopping", TO(KILLING) | TO(CLOSING), 2, "kill")                  \
	X(KILLING, "killing", TO(CLOSING), 3, "kill the supervisor")                   \
	X(CLOSING, "closing", TO(CLOSING) | TO(DEAD), 0.03, "dead")                    \
	X(DEAD, "dead", 0, 0, "")

enum kernel_state {
#define X(id, text, next, deadline_s, then) KERNEL_##id,
	KERNEL_STATES(X)
#undef X
	    KERNEL_STATE_COUNT
};

enum kernel_channel {
	KERNEL_SHELL,
	KERNEL_IOPUB,
	KERNEL_CONTROL,
	KERNEL_STDIN,
	KERNEL_CHANNEL_COUNT
};

enum { KERNEL_NAME_SIZE = 508 };

struct kernel_death {
	bool started;                  /* it had answered at least once */
	bool requested;                /* we asked it to stop, or killed it */
	int status;                    /* as from waitpid(), or -1 when nobody saw it */
	int64_t memory_kb;             /* its peak resident memory; 0 unknown */
	char last_begun[JMSG_ID_SIZE]; /* request whose code was the last to begin */
	bool tells_begun;              /* it is a kernel that reports this */
	bool restoring;                /* it died while it restored a namespace */
	char culprit[KERNEL_NAME_SIZE]; /* the name it was restoring; "" none yet */
	char words[800]; /* "was killed by signal 9 (SIGKILL)": what follows
			    "the kernel" in a sentence */
};

/* All are called from the loop, never from inside a call of kernel_*().  begun, saved,
 * damaged and last_words may be NULL: not wanted. */
struct kernel_owner {
	void (*ready)(void *arg); /* it answers: now IDLE for the first time */
	/* The code of this request begins to run. */
	void (*begun)(const char *id, void *arg);
	/* A verified message; message lives until the function returns. */
	void (*message)(enum kernel_channel channel, const struct jmsg *message,
			void *arg);
	/* It has written this generation of its namespace to the spool. */
	void (*saved)(uint64_t generation, void *arg);
	/* Names whose saved bytes turned out to be damaged after they were restored. */
	void (*damaged)(const char *names, void *arg);
	/* After its end, what it had written that no message brought. */
	lastwords_fn *last_words;
	/* All its output has been delivered; the kernel is gone when this returns. */
	void (*dead)(const struct kernel_death *death, void *arg);
	void *arg;
};

struct kernel_place { /* what all kernels of the daemon share; outlives them */
	struct loop *loop;
	const struct launch_paths *paths;
	const struct walls *walls;
	struct limits *limits;
	char *const *env;        /* launch_env() */
	const char *runtime_dir; /* of the daemon, mode 0700 */
};

struct kernel;

struct kernel_begin { /* what it begins with; borrowed while kernel_create() runs */
	const char *workdir;
	const char *home; /* for what programs keep of their own */
	uid_t owner;      /* walls_owner() */
	long long cell;   /* execution count of its first cell */
	const struct connfile_snapshot *snapshot; /* NULL: nothing is saved */
};

/* Starts a kernel.  Borrows place until its death.  name: for the log.  owner is
 * copied. */
int kernel_create(struct kernel **out, const struct kernel_place *place,
		  const char *name, const struct kernel_begin *begin,
		  const struct kernel_owner *owner, struct err *err) must_check;
/* Without ceremony, for the daemon's own end: no more calls of the owner; the
 * supervisor kills the process tree. */
void kernel_destroy(struct kernel **self);

enum kernel_state kernel_state(const struct kernel *self);
const char *kernel_state_name(enum kernel_state state);
/* The rows as a Markdown table, for ARCHITECTURE.md. */
void kernel_states_markdown(FILE *to);
/* Its own, as the machine sees it. */
const char *kernel_runtime_dir(const struct kernel *self);
/* Of the kernel process; 0 before it has started. */
pid_t kernel_pid(const struct kernel *self);

/* False only if no code of this request can have run. */
bool kernel_has_begun(const struct kernel_death *death, const char *id);
/* IDLE to BUSY: sends an execute_request (code is UTF-8) and stores its id.  asks: its
 * input() may ask (input_request on KERNEL_STDIN). */
int kernel_execute(struct kernel *self, const char *code, size_t size, bool asks,
		   char id[JMSG_ID_SIZE], struct err *err) must_check;
/* Answers an input_request with a line of UTF-8. */
void kernel_answer(struct kernel *self, const char *text, size_t size);
/* The execution is over: back to IDLE.  Harmless in other states. */
void kernel_release(struct kernel *self);
/* SIGINT to its process group and a nudge on the shell channel, since an awaiting
 * cell only looks up when a message comes; again every second until released. */
void kernel_interrupt(struct kernel *self);
/* Asks it to go (its exit handlers run), kills it after two seconds. */
void kernel_stop(struct kernel *self);
/* Tells it one line about its saved states (the launch contract's "kept N", "refused N
 * WHY").  Lost if it does not read. */
void kernel_tell(struct kernel *self, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Adds lines about what the system refused it, or ended of what it had started, since
 * the last time. */
void kernel_tell_limits(struct kernel *self, struct buf *out);
/* Kills the whole process tree. */
void kernel_kill(struct kernel *self);
/* The same, of one that is not needed any more: no fault, so words say what its end was
 * ("had shown its file"). */
void kernel_dismiss(struct kernel *self, const char *words);

#endif

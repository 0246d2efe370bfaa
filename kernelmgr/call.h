/*
 * call - one execution: queued, sent, running, replied, done.  It belongs to its
 * workspace, not to whoever asked: when the asker leaves, it goes on.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef KERNELMGR_CALL_H
#define KERNELMGR_CALL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "kernelmgr/files.h"
#include "kernelmgr/names.h"
#include "kernelmgr/outputs.h"
#include "kernelmgr/pictures.h"
#include "kernelmgr/states.h"
#include "wire/err.h"

/* One row per state: enum name, text, legal next states, seconds until its deadline
 * (0: none; LIMIT: the call's own timeout), what happens then. */
#define CALL_STATES(X)                                                                 \
	X(QUEUED, "queued", TO(STARTING) | TO(SENT) | TO(DONE), 0, "")                 \
	X(STARTING, "starting", TO(SENT) | TO(DONE), 120, "fail")                      \
	X(SENT, "sent",                                                                \
	  TO(STARTING) | TO(RUNNING) | TO(REPLIED) | TO(IDLED) | TO(INTERRUPTING) |    \
	      TO(PICTURES),                                                            \
	  30, "interrupt")                                                             \
	X(RUNNING, "running",                                                          \
	  TO(ASKING) | TO(REPLIED) | TO(IDLED) | TO(INTERRUPTING) | TO(PICTURES),      \
	  STATE_OWN_TIMEOUT, "interrupt")                                              \
	X(ASKING, "asking",                                                            \
	  TO(RUNNING) | TO(REPLIED) | TO(IDLED) | TO(INTERRUPTING) | TO(PICTURES),     \
	  600, "go on without")                                                        \
	X(INTERRUPTING, "interrupting", TO(REPLIED) | TO(IDLED) | TO(PICTURES), 5,     \
	  "kill the kernel")                                                           \
	X(REPLIED, "replied", TO(REPLIED) | TO(PICTURES), 2,                           \
	  "finish without idle, unless output still comes")                            \
	X(IDLED, "idled", TO(PICTURES), 2, "kill the kernel")                          \
	X(PICTURES, "pictures", TO(DONE), 60, "finish without them")                   \
	X(DONE, "done", 0, 0, "")

enum call_state {
#define X(id, text, next, deadline_s, then) CALL_##id,
	CALL_STATES(X)
#undef X
	    CALL_STATE_COUNT
};

enum call_end {
	CALL_OK,          /* the code ran to its end */
	CALL_ERROR,       /* it raised, or ended by SystemExit with a status */
	CALL_TIMED_OUT,   /* interrupted at its timeout; the kernel lives */
	CALL_CANCELLED,   /* interrupted because somebody asked; the kernel lives */
	CALL_KILLED,      /* ignored the interrupt, so the kernel was killed */
	CALL_KERNEL_DIED, /* the kernel went away by itself */
	CALL_NOT_RUN,     /* never sent: no kernel, or it waited too long */
	CALL_GOES_ON,     /* it is not over: see call_peek() */
};

/* Instead of running code: which saved state to go back to. */
enum call_back {
	BACK_NOT,
	BACK_BY, /* that many cells */
	BACK_TO, /* the state after that cell */
};

struct outcome { /* all of it is borrowed from the call */
	enum call_end end;
	int exit_code;        /* 0; 1 exception; n sys.exit(n); 124; 128+signal */
	const char *notice;   /* whole lines about restarts, timeouts, losses; "" */
	size_t notice_before; /* bytes of it that tell what was before the run */
	const struct outputs *outputs;
	unsigned long long lines;       /* that were printed, in all */
	const char *late;               /* output that came between the calls; "" */
	const struct picture *pictures; /* displays first, then files */
	size_t picture_count, pictures_left_out;
	const struct files_list *wrote;     /* new and changed files */
	const struct files_scan *workspace; /* all files, after */
	int64_t duration_us;                /* of the run, not of the queue */
	unsigned long long cell;            /* n of the kernel's Out[n] */
	const char *walls;                  /* what is amiss with them; "" */
	const char *branch;                 /* that was made; "" */
	const json_t *back; /* the state it went back to, or that was copied */
};

struct workspace;
struct call;
typedef void call_done_fn(const struct outcome *outcome, void *arg);

/* The code wants a line of text, with this prompt: it waits for call_answer(), and its
 * time does not count.  UTF-8 of bounded length; NULL: it waits no longer. */
typedef void call_input_fn(const char *prompt, void *arg);

struct call_options {
	int64_t timeout_s;    /* of the run, and anew with each answer; at least 1 */
	call_input_fn *input; /* its arg is done's; NULL: input() fails */
	bool fresh;           /* in a new kernel */
	enum call_back back;
	long long cells;               /* how far, or to which */
	char branch[BRANCH_NAME_SIZE]; /* instead: copy the workspace; "" not */
};

/* Queues a call; done(outcome, arg) comes once, from the loop, and ends it.  code is
 * UTF-8 and copied. */
int call_create(struct call **out, struct workspace *workspace, const char *code,
		size_t size, const struct call_options *options, call_done_fn *done,
		void *arg, struct err *err) must_check;
/* Interrupts it if it runs, takes it out of the queue if it waits. */
void call_cancel(struct call *self);

/* What the code asked for, as UTF-8; NULL: there is no answer, EOFError for it. */
void call_answer(struct call *self, const char *text, size_t size);

/* Text of a stream, as it comes. */
typedef void call_print_fn(bool is_err, const char *text, size_t size, void *arg);
/* Tells from now on what it prints, one at a time. */
void call_watch(struct call *self, call_print_fn *fn, void *arg);
/* Not to this one any more. */
void call_unwatch(struct call *self, const void *arg);
/* What there is of it so far; good until the loop goes on. */
void call_peek(const struct call *self, struct outcome *out);

enum call_state call_state(const struct call *self);
const char *call_state_name(enum call_state state);
/* The rows as a Markdown table, for ARCHITECTURE.md. */
void call_states_markdown(FILE *to);

#endif

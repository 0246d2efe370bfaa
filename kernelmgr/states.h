/*
 * states - what the tables of states have in common.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef KERNELMGR_STATES_H
#define KERNELMGR_STATES_H

#include <stdio.h>

enum { STATE_OWN_TIMEOUT = -1 /* a deadline that each object brings along */ };

struct state_row {
	const char *name;
	unsigned next;     /* mask of the legal next states */
	double deadline_s; /* 0: none, or STATE_OWN_TIMEOUT */
	const char *then;  /* what happens at the deadline; "" without one */
};

/* Prints the rows as a Markdown table. */
void states_markdown(const struct state_row *rows, int count, FILE *to);

#endif

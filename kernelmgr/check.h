/*
 * check - whether this machine can run kernels: what --check reports, and what is
 * looked at before each start.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef KERNELMGR_CHECK_H
#define KERNELMGR_CHECK_H

#include "kernelmgr/config.h"
#include "kernelmgr/launch.h"

/* Prints one line a finding, "ok" or "no" first, to stdout.  Returns the exit status:
 * 0 when kernels can run, else 1. */
int check_machine(const struct config *config, char *const env[]);
/* Finds the kernels' interpreter, and asks it whether it is one. */
int check_python(struct launch_paths *paths, const struct config *config,
		 char *const env[], struct err *err) must_check;

#endif

/*
 * check - what --check reports: whether this machine can run kernels.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef KERNELMGR_CHECK_H
#define KERNELMGR_CHECK_H

#include "kernelmgr/config.h"

/* Prints one line a finding, "ok" or "no" first, to stdout.  Returns the exit status:
 * 0 when kernels can run, else 1. */
int check_machine(const struct config *config, char *const env[]);

#endif

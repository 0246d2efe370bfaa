/*
 * address - whether a TCP address can be listened on, and if not, why and what to do.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef WIRE_ADDRESS_H
#define WIRE_ADDRESS_H

#include "wire/err.h"

/* Listens for a moment.  address is numeric, or "localhost". */
int address_try(const char *address, int port, struct err *err) must_check;

#endif

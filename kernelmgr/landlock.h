/*
 * landlock - the kernel's own file and network rules for one process and all that it
 * starts, from ABI 1 to 9 (docs.kernel.org/userspace-api/landlock.html).  Debian 12's
 * header ends at ABI 2, so the structures are spelled out here.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef KERNELMGR_LANDLOCK_H
#define KERNELMGR_LANDLOCK_H

#include <stdbool.h>
#include <stdint.h>

enum landlock_may {                   /* what a path below a rule may be used for */
		    LANDLOCK_LOOK,    /* read files, list directories */
		    LANDLOCK_RUN,     /* the same, and execute */
		    LANDLOCK_CHANGE,  /* all that a workspace needs: no device nodes */
		    LANDLOCK_DEVICES, /* read, write and control devices that are there
				       */
		    LANDLOCK_DROP, /* make and use files of known names, without listing
				    */
};

enum {                         /* the first that has */
       LANDLOCK_ABI_PORTS = 4, /* rules for TCP ports */
       LANDLOCK_ABI_NAMES = 6, /* a rule for abstract names of sockets */
       LANDLOCK_ABI_UNIX = 9,  /* rules for paths of sockets */
};

/* The ABI that the running kernel has; 0: none. */
int landlock_abi(void);
/* Begins a set of rules: nothing is allowed yet.  connect: TCP connections need a rule
 * too (ABI 4 and newer).  Returns its descriptor, or -1 and errno. */
int landlock_begin(bool connect);
/* The same for nothing but TCP connections; -1 and ENOSYS before ABI 4. */
int landlock_begin_ports(void);
/* -1 and errno if the path cannot be opened; for LANDLOCK_CHANGE it must lead over no
 * link: such a directory may lie in another that code writes to. */
int landlock_allow(int rules, const char *path, enum landlock_may may);
/* Connections to this TCP port, wherever to. */
int landlock_allow_port(int rules, uint16_t port);
/* Puts this thread, and whatever it starts, behind the rules for good; needs
 * no_new_privs.  Closes rules. */
int landlock_enter(int rules);
/* The same for abstract names of sockets: only those that this process, or whatever it
 * starts, has bound can be connected to.  Before ABI 6 it does nothing. */
int landlock_keep_names(void);

#endif

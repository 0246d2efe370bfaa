/*
 * unixsock - UNIX stream sockets whose other side is hostile.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef WIRE_UNIXSOCK_H
#define WIRE_UNIXSOCK_H

/* As connect(), to the socket at path; -1 and ENOTSOCK if it is none, ELOOP if it is a
 * link: the other side may own the directory.  Needs /proc. */
int unixsock_connect(int fd, const char *path);
/* Descriptors that are sent to fd are refused from now on, since to close what came may
 * take long (Linux 6.16 and newer; before that nothing changes). */
void unixsock_refuse_descriptors(int fd);

#endif

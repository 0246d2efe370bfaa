// SPDX-License-Identifier: MIT
#include "wire/pipeline.h"

#include <linux/bpf.h> /* the states of TCP, under names that clash with nothing */
#include <linux/sockios.h>
#include <linux/tcp.h> /* not netinet/tcp.h: its tcp_info is older */
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* 0 when the connection is no more.  Linux counts the peer's "no more from me" (FIN)
 * as a byte that was received, but not as one that can be read. */
static unsigned long long received(int fd)
{
	struct tcp_info info = {.tcpi_state = BPF_TCP_CLOSE};
	socklen_t size = sizeof info;

	getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size);
	switch (info.tcpi_state) {
	case BPF_TCP_CLOSE:
		return 0;
	case BPF_TCP_CLOSE_WAIT: /* the states after a FIN */
	case BPF_TCP_LAST_ACK:
	case BPF_TCP_CLOSING:
	case BPF_TCP_TIME_WAIT:
		return info.tcpi_bytes_received - 1;
	default:
		return info.tcpi_bytes_received;
	}
}

unsigned long long pipeline_bytes_read(int fd)
{
	unsigned long long before, after = received(fd);
	int unread = 0;

	do { /* until nothing arrived between the two questions */
		before = after;
		ioctl(fd, SIOCINQ, &unread);
		if (!before || !unread) /* what came in between would be */
			return before;
		after = received(fd);
	} while (before != after);
	return after - (unsigned long long)unread;
}

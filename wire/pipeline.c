// SPDX-License-Identifier: MIT
#include "wire/pipeline.h"

#include <linux/sockios.h>
#include <linux/tcp.h> /* not netinet/tcp.h: its tcp_info is older */
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* Linux counts the peer's "no more from me" (FIN) as a byte that was received, and
 * leaves one out of those that wait after it: never more than this is wrong. */
enum { SLACK = 2 };

static unsigned long long received(int fd)
{
	struct tcp_info info = {0};
	socklen_t size = sizeof info;

	getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size);
	return info.tcpi_bytes_received;
}

unsigned long long pipeline_bytes_read(int fd)
{
	unsigned long long before, after = received(fd);
	int unread = 0;

	do { /* until nothing arrived between the two questions */
		before = after;
		ioctl(fd, SIOCINQ, &unread);
		if (!unread) /* what came in between would be */
			return before;
		after = received(fd);
	} while (before != after);
	return after - (unsigned long long)unread;
}

bool pipeline_has_read(unsigned long long before, unsigned long long now)
{
	return now > before + SLACK; /* a head has more bytes than that */
}

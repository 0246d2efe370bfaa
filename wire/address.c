// SPDX-License-Identifier: MIT
#include "wire/address.h"

#include <errno.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "wire/mem.h"

static const char *advice(int why)
{
	switch (why) {
	case EADDRINUSE:
		return "another program has this port: stop it, or choose another with "
		       "--port";
	case EADDRNOTAVAIL:
		return "this machine does not have this address: choose another with "
		       "--host";
	case EACCES:
		return "this port needs a privilege: choose one above 1023 with --port";
	default:
		return "choose another with --host and --port";
	}
}

int address_try(const char *address, int port, struct err *err)
{
	struct addrinfo hints = {.ai_flags = AI_NUMERICHOST,
				 .ai_socktype = SOCK_STREAM};
	struct addrinfo *info;
	char text[12];
	const bool is_v6 = strchr(address, ':') != NULL;
	bool is_name = strcasecmp(address, "localhost") == 0;

	snprintf(text, sizeof text, "%d", port);
	if (getaddrinfo(is_name ? "127.0.0.1" : address, text, &hints, &info) != 0)
		return err_set(err, ERR_CONFIG, "listen on %s:%d: not an IP address",
			       address, port);
	owned(close_fd) int fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
	int rc = fd < 0 ? -1 : bind(fd, info->ai_addr, info->ai_addrlen);
	if (rc == 0)
		rc = listen(fd, 1);
	int why = errno;
	freeaddrinfo(info);
	if (rc == 0)
		return 0;
	errno = why;
	err_set(err, ERR_SYSTEM, is_v6 ? "listen on [%s]:%d" : "listen on %s:%d",
		address, port);
	return err_wrap(err, "%s", advice(why));
}

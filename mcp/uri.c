// SPDX-License-Identifier: MIT
#include "mcp/uri.h"

#include <string.h>

#include "kernelmgr/branches.h"

static bool is_plain(char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
	       (byte >= '0' && byte <= '9') || (byte && strchr("-._~/", byte));
}

void uri_of_path(struct buf *out, const char *workspace, const char *path)
{
	buf_printf(out, URI_START "%s/", branch_of(workspace));
	for (const char *at = path; *at; at++)
		if (is_plain(*at))
			buf_add(out, at, 1);
		else
			buf_printf(out, "%%%02X", (unsigned char)*at);
}

static int digit(char byte)
{
	static const char digits[] = "0123456789abcdef";
	const char *at =
	    byte ? strchr(digits, byte >= 'A' && byte <= 'F' ? byte | 32 : byte) : NULL;

	return at ? (int)(at - digits) : -1;
}

bool uri_to_path(struct buf *branch, struct buf *path, const char *uri, size_t size)
{
	size_t at = strlen(URI_START);

	if (size < at || memcmp(uri, URI_START, at) != 0)
		return false;
	while (at < size && uri[at] != '/')
		buf_add(branch, &uri[at++], 1);
	if (at++ == size || (branch->size && !branch_name_is_good(buf_str(branch))))
		return false;
	for (; at < size; at++) {
		char byte = uri[at];

		if (byte == '%') {
			int high = at + 2 < size ? digit(uri[at + 1]) : -1;
			int low = at + 2 < size ? digit(uri[at + 2]) : -1;

			if (high < 0 || low < 0)
				return false;
			byte = (char)(high << 4 | low);
			at += 2;
		}
		buf_add(path, &byte, 1);
	}
	return true;
}

// SPDX-License-Identifier: MIT
#include "mcp/who.h"

#include <ctype.h>

#include "wire/header.h"

void who_init(struct who *self, struct workspaces *workspaces,
	      const struct config *config)
{
	*self = (struct who){.workspaces = workspaces};
	for (size_t i = 0; config->user_header[i]; i++)
		self->user_header[i] =
		    (char)tolower((unsigned char)config->user_header[i]);
}

static struct claim claim_of(struct exchange *exchange, const char *name, char *room,
			     size_t size)
{
	int len = name[0] ? http_header(exchange, name, room, size) : HEADER_ABSENT;

	return (struct claim){.state = len >= 0               ? CLAIM_ONE
				       : len == HEADER_ABSENT ? CLAIM_ABSENT
							      : CLAIM_UNREADABLE,
			      .value = len >= 0 ? room : NULL};
}

void who_find(const struct who *self, struct exchange *exchange,
	      struct server_context *out)
{
	char user[256], secret[512];
	const struct claim user_claim =
	    claim_of(exchange, self->user_header, user, sizeof user);
	/* who has no name needs none to vouch for it */
	const struct claim secret_claim =
	    claim_of(exchange, self->user_header[0] ? PRINCIPAL_SECRET_HEADER : "",
		     secret, sizeof secret);

	if (workspaces_principal(self->workspaces, http_user(exchange), &user_claim,
				 &secret_claim, &out->workspace, &out->refusal) < 0)
		out->workspace = NULL;
}

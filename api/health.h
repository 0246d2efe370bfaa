/*
 * health - GET /health, for container health checks and people.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef API_HEALTH_H
#define API_HEALTH_H

#include "kernelmgr/workspaces.h"
#include "wire/http.h"

/* Answers 200 and {"status": "healthy", "version", "workspaces", "kernels", "calls"}:
 * how many of each there are.  Borrows workspaces. */
struct http_route health_route(struct workspaces *workspaces);

#endif

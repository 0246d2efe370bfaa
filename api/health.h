/*
 * health - GET /health, for container health checks and people.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef API_HEALTH_H
#define API_HEALTH_H

#include "kernelmgr/workspace.h"
#include "wire/http.h"

/* Answers 200 and {"status": "healthy", "version", "workspaces": [{"name", "kernel",
 * "calls"}]}.  Borrows workspace. */
struct http_route health_route(struct workspace *workspace);

#endif

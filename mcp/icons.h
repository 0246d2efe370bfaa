/*
 * icons - small pictures for people, of tools, prompts and the server (since
 * 2025-11-25).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MCP_ICONS_H
#define MCP_ICONS_H

#include <jansson.h>

/* What an SVG of 24 x 24 holds in its one path, as strokes. */
#define ICON_PLAY "M7 4v16l13-8z"
#define ICON_BACK "M9 7L4 12l5 5M4 12h10a6 6 0 0 1 6 6"
#define ICON_CLOCK "M12 3a9 9 0 1 0 .1 0zM12 7v5l3 3"
#define ICON_BRANCH "M6 4v16M6 14c8 0 12-2 12-8M15 8l3-3 3 3"
#define ICON_FOLDER "M3 6h6l2 2h10v11H3z"
#define ICON_FILE "M6 3h8l4 4v14H6zM9 12h6M9 16h6"
#define ICON_PEN "M4 20l4-1L20 7l-3-3L5 16z"
#define ICON_CHART "M4 4v16h16M8 16v-4M12 16V8M16 16v-6"
#define ICON_SNAKE "M16 5H9a4 4 0 0 0 0 7h6a4 4 0 0 1 0 7H5"

/* The `icons` of who has this one: its picture is in the URI.  Caller owns. */
json_t *icons_json(const char *path);

#endif

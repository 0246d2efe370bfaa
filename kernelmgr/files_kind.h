/*
 * files_kind - what a file is: by its first bytes, and by its name where those leave it
 * open.  A name alone is believed only for text.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef KERNELMGR_FILES_KIND_H
#define KERNELMGR_FILES_KIND_H

#include <stddef.h>

enum files_view { /* as what read_text_file shows it, besides plain text */
		  FILES_PLAIN,
		  FILES_NOTEBOOK,
		  FILES_EXCEL,
		  FILES_PARQUET,
};

struct files_kind {
	const char *words; /* "a PNG picture" */
	const char *mime;
	const char *reader; /* Python that reads it; "" when we know of none */
	enum files_view view;
};

enum { FILES_HEAD = 8192 }; /* bytes by which kind and coding are told */

/* Of a file that begins with head (FILES_HEAD bytes of it, or all).  NULL: its bytes
 * are none that we know, so it may be text. */
const struct files_kind *files_kind_of(const char *path, size_t path_size,
				       const char *head, size_t size);
/* The media type that a name promises; NULL for an ending that we do not know. */
const char *files_mime_of_name(const char *path);
/* The same for a file whose content is text; NULL too for one that should not be. */
const char *files_mime_of_text(const char *path);

#endif

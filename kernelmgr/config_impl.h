/* config_impl - the table of settings, for config.c that reads, checks and shows them.
 * SPDX-License-Identifier: MIT */
#ifndef KERNELMGR_CONFIG_IMPL_H
#define KERNELMGR_CONFIG_IMPL_H

#include "kernelmgr/config.h"

enum opt_type {
	OPT_INT,
	OPT_DECIMAL, /* stored in thousandths */
	OPT_BYTES,   /* "512M", "4G", "1048576"; the last of the numbers */
	OPT_TEXT,
	OPT_SWITCH,
	OPT_CHOICE
};

struct opt {
	const char
	    *name; /* as a flag; the variable is VIVARIUM_ and this in capitals */
	enum opt_type type;
	size_t at;           /* offset in struct config */
	int64_t min, max;    /* of a number as stored; of the bytes of a text */
	int64_t least;       /* of a number that is not 0 */
	bool automatic;      /* a number that may be "auto" */
	const char *choices; /* of OPT_CHOICE: separated by '|', stored as index */
	const char *fallback;
	const char *shown; /* the default in the help where fallback is "" */
	bool secret;       /* not printed */
	bool header;       /* the name of an HTTP header */
	bool bare;         /* the flag alone says 1 */
	const char *help;
};

/* Every setting, in the order of the help. */
extern const struct opt config_options[];
extern const size_t config_option_count;

#endif

/*
 * config - every setting, from one table: its default, environment variable, flag,
 * range, --help line and README row.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef KERNELMGR_CONFIG_H
#define KERNELMGR_CONFIG_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "wire/err.h"

#define CONFIG_TOOLS "run_python,wait,undo,list_files,read_text_file,write_file"
#define CONFIG_TOOLS_BETWEEN ", +"

struct config {
	char host[64];
	int64_t port; /* 0: any free one */
	char workdir[PATH_MAX];
	char state_dir[PATH_MAX]; /* "": see config_state_dir() */
	char python[PATH_MAX];    /* "": see config_python() */
	int64_t max_timeout_s;
	int64_t output_limit;    /* characters a stream */
	int64_t result_limit;    /* bytes of one whole answer */
	int64_t max_images;      /* 0: none */
	int64_t max_image_side;  /* pixels */
	int64_t structure;       /* enum structure */
	int64_t state_summary;   /* 0 or 1 */
	int64_t persist;         /* 0 or 1 */
	int64_t durability;      /* enum durability */
	int64_t verify;          /* enum verify */
	int64_t namespace_max;   /* bytes; 0: by the disk, see config_namespace_max() */
	int64_t snapshot_keep;   /* generations */
	int64_t snapshot_max;    /* bytes; 0: twice the above */
	char tools[512];         /* names, with CONFIG_TOOLS_BETWEEN between them */
	int64_t walls;           /* enum walls_asked */
	int64_t network;         /* enum network */
	char read_dirs[4096];    /* shown to all kernels; separated by ':' */
	int64_t kernel_memory;   /* bytes; 0: no limit; CONFIG_AUTO: by the machine */
	int64_t kernel_pids;     /* 0: no limit */
	int64_t kernel_cpus;     /* thousandths of one; 0: all */
	int64_t quota;           /* bytes of a workspace's files; 0: no limit */
	int64_t queue_limit;     /* calls waiting in one workspace */
	int64_t soft_deadline_s; /* until a call gives a partial answer; 0: never */
	int64_t replay_keep_s;   /* what was sent or is to be fetched */
	int64_t replay_max;      /* bytes of it */
	int64_t idle_timeout_s;  /* 0: never */
	int64_t max_kernels;
	char user_header[64]; /* "": one workspace for all */
	char user[128];       /* of --stdio; "": nobody in particular */
	char proxy_secret[256];
	char token[256];            /* "": none */
	char tokens_file[PATH_MAX]; /* "": none */
	char tls_cert[PATH_MAX];    /* "": plain HTTP */
	char tls_key[PATH_MAX];
	char allowed_hosts[1024];
	int64_t anonymous;   /* 0 or 1 */
	int64_t confirm;     /* 0 or 1 */
	int64_t conformance; /* 0 or 1 */
	int64_t log_format;  /* index into "text", "json" */
	int64_t log_level;   /* enum log_level */
	uint64_t by_flag;    /* bit n: the n-th setting was given as a flag */
	const char *operand; /* of the verb: --new-token's NAME; borrowed from argv */
};

enum {
	CONFIG_AUTO = -1,       /* a number that is left to the program */
	CONFIG_SECRET_MIN = 16, /* characters of a token or secret that people choose */
};

/* When a cell's namespace is on disk: some time after the reply, before it, never. */
enum durability { DURABILITY_IDLE, DURABILITY_ALWAYS, DURABILITY_OFF };

/* Whether results have a structure besides their text: but for clients that hide the
 * text behind it; for all; for none. */
enum structure { STRUCTURE_AUTO, STRUCTURE_ALWAYS, STRUCTURE_NEVER };

/* When a saved state is tried by loading it. */
enum verify { VERIFY_IDLE, VERIFY_ALWAYS, VERIFY_OFF };

/* The walls that are wanted around kernels (walls.h has the tiers). */
enum walls_asked { WALLS_AUTO, WALLS_OFF, WALLS_N, WALLS_U, WALLS_L };

/* What kernels may reach: decided by the environment; nothing; the proxy; all. */
enum network { NETWORK_AUTO, NETWORK_NONE, NETWORK_PROXY, NETWORK_HOST };

/* What the command line asks for besides settings. */
enum config_verb {
	CONFIG_SERVE,
	CONFIG_STDIO,
	CONFIG_CHECK,
	CONFIG_PRINT,
	CONFIG_NEW_TOKEN,
	CONFIG_HELP,
	CONFIG_HELP_MARKDOWN,
	CONFIG_VERSION
};

/* Defaults, then VIVARIUM_* variables, then flags.  A value out of range fails with
 * the setting's name, the value and what is allowed; unknown VIVARIUM_* variables
 * are warned about in the log. */
int config_load(struct config *out, enum config_verb *verb, int argc,
		char *const argv[], char *const env[], struct err *err) must_check;

/* All settings as NAME=value lines, as --print-config shows them. */
void config_print(const struct config *self, FILE *to);
void config_help(FILE *to);
/* The same as rows of the README's table. */
void config_help_markdown(FILE *to);

/* The setting's name as the user knows it: the flag ("--host") if it was given as one,
 * else its variable.  Borrows until the next call. */
const char *config_name(const struct config *self, const char *option);
/* Whether it was given as a flag. */
bool config_is_flag(const struct config *self, const char *option);
/* For a failure that lies in this setting: puts its name before the message, and makes
 * it one of the configuration.  Returns -1. */
int config_blame(const struct config *self, const char *option, struct err *err);
/* Refuses an address that lets other machines in, unless tokens are asked for, or the
 * settings say that the network keeps strangers out: whoever is let in can run code. */
int config_check_exposure(const struct config *self, struct err *err) must_check;
/* Refuses users that a header names, if a kernel could come to the port as another one
 * of them.  kernels_apart: they cannot reach it, being in networks of their own. */
int config_check_users(const struct config *self, bool kernels_apart,
		       struct err *err) must_check;
/* Refuses what can never be the name in a Host header, such as a pattern. */
int config_check_hosts(const struct config *self, struct err *err) must_check;
/* Fixtures of the conformance suite are for this machine alone. */
int config_check_conformance(const struct config *self, struct err *err) must_check;
/* Certificate and key: both or neither. */
int config_check_tls(const struct config *self, struct err *err) must_check;
/* Refuses files that say who may come in, or as whom we appear, in the work directory:
 * code could change and read them there. */
int config_check_outside(const struct config *self, struct err *err) must_check;
/* Once they are read: takes the secrets out of what /proc shows of this process, its
 * arguments and its environment. */
void config_hide_secrets(char *const argv[], char *const env[]);

/* The path without links and dots; of one that does not exist, as far as it does. */
void config_real_path(char out[PATH_MAX], const char *path);
/* True if path is the directory, or lies below it.  Both are real paths. */
bool config_is_inside(const char *path, const char *dir);

/* Characters of one stream that are kept: the output limit, or less where a small
 * result limit makes it so: a text part is at most three quarters of the result, holds
 * four streams, twice (text and structure), at up to 6 bytes a character. */
size_t config_output_chars(const struct config *self);
/* Bytes of one saved namespace at most: the setting, else 4 GiB or a quarter of what is
 * free where dir is, whichever is less. */
uint64_t config_namespace_max(const struct config *self, const char *dir);
/* Whether states of namespaces are saved. */
bool config_saves(const struct config *self);
/* True if the list of tools names this one, or has a plus and the default names it. */
bool config_offers_tool(const struct config *self, const char *name);
/* True if host is a loopback address or name. */
bool config_is_loopback(const char *host);

#endif

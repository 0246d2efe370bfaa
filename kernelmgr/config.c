// SPDX-License-Identifier: MIT
#include "kernelmgr/config.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "kernelmgr/config_impl.h"
#include "kernelmgr/number.h"
#include "wire/log.h"
#include "wire/mem.h"
#include "wire/words.h"

static const struct {
	const char *flag;
	enum config_verb verb;
	const char *help;    /* NULL: not listed */
	const char *operand; /* what follows it, or NULL */
} verbs[] = {
    {"--stdio", CONFIG_STDIO,
     "Speak MCP on standard input and output; HTTP too only with --port.", NULL},
    {"--check", CONFIG_CHECK, "Report what this machine can do, then exit.", NULL},
    {"--print-config", CONFIG_PRINT, "Print the settings in force, then exit.", NULL},
    {"--new-token", CONFIG_NEW_TOKEN,
     "Make a token for a user, add it to the tokens file, and print it.", "NAME"},
    {"--version", CONFIG_VERSION, "Print the version, then exit.", NULL},
    {"--help", CONFIG_HELP, "Print this, then exit.", NULL},
    {"-h", CONFIG_HELP, NULL, NULL},
    {"--help-markdown", CONFIG_HELP_MARKDOWN, NULL, NULL},
};

enum { NAME_MAX_BYTES = 64, RANGE_MAX_BYTES = 96 };
#define HEADER_CHARACTERS /* RFC 9110, token */                                        \
	"!#$%&'*+-.^_`|~"                                                              \
	"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

static const char *env_name(const struct opt *opt, char out[NAME_MAX_BYTES])
{
	int len = snprintf(out, NAME_MAX_BYTES, "VIVARIUM_%s", opt->name);

	for (int i = 0; i < len; i++)
		out[i] = out[i] == '-' ? '_' : (char)toupper((unsigned char)out[i]);
	return out;
}

static int64_t *number_at(struct config *self, const struct opt *opt)
{
	return (int64_t *)(void *)((char *)self + opt->at);
}

/* Index of text in "a|b|c", or -1. */
static int64_t choice_index(const char *choices, const char *text)
{
	int64_t index = 0;
	size_t len = strlen(text);

	for (;; index++) {
		size_t n = strcspn(choices, "|");

		if (n == len && strncasecmp(choices, text, n) == 0)
			return index;
		if (!choices[n])
			return -1;
		choices += n + 1;
	}
}

static const char *choice_name(const char *choices, int64_t index, char out[16])
{
	for (; index > 0; index--)
		choices += strcspn(choices, "|") + 1;
	snprintf(out, 16, "%.*s", (int)strcspn(choices, "|"), choices);
	return out;
}

static long long read_number(const struct opt *opt, const char *text, char **end)
{
	errno = 0;
	if (opt->type == OPT_DECIMAL)
		return number_read_decimal(text, end);
	return opt->type == OPT_BYTES ? number_read_bytes(text, end)
				      : strtoll(text, end, 10);
}

/* A number as it is stored, for people. */
static void show_number(const struct opt *opt, int64_t value, char out[32])
{
	if (opt->automatic && value == CONFIG_AUTO)
		snprintf(out, 32, "auto");
	else if (opt->type == OPT_BYTES)
		number_show_bytes(value, out);
	else if (opt->type == OPT_DECIMAL)
		snprintf(out, 32, "%g", (double)value / NUMBER_UNIT);
	else
		snprintf(out, 32, "%lld", (long long)value);
}

/* "0, or 32 to 1048576" */
static void show_range(const struct opt *opt, char out[RANGE_MAX_BYTES])
{
	char least[32], most[32];

	show_number(opt, opt->least ? opt->least : opt->min, least);
	show_number(opt, opt->max, most);
	snprintf(out, RANGE_MAX_BYTES, "%s%s to %s", opt->least ? "0, or " : "", least,
		 most);
}

static int set_number(struct config *self, const struct opt *opt, const char *name,
		      const char *text, struct err *err)
{
	static const char *const kinds[] = {[OPT_INT] = "whole number",
					    [OPT_DECIMAL] = "number",
					    [OPT_BYTES] =
						"number of bytes that it takes"};
	char *end, range[RANGE_MAX_BYTES];

	if (opt->automatic && strcasecmp(text, "auto") == 0) {
		*number_at(self, opt) = CONFIG_AUTO;
		return 0;
	}
	long long value = read_number(opt, text, &end);
	show_range(opt, range);
	if (errno || end == text || *end || value < opt->min || value > opt->max ||
	    (value && value < opt->least))
		return err_set(err, ERR_CONFIG, "%s='%.60s' is not a %s%s %s", name,
			       text, kinds[opt->type], opt->least ? ":" : " from",
			       range);
	*number_at(self, opt) = value;
	return 0;
}

static int set(struct config *self, const struct opt *opt, const char *name,
	       const char *text, struct err *err)
{
	size_t len = strlen(text);

	switch (opt->type) {
	case OPT_INT:
	case OPT_DECIMAL:
	case OPT_BYTES:
		return set_number(self, opt, name, text, err);
	case OPT_SWITCH:
		if (strcmp(text, "0") != 0 && strcmp(text, "1") != 0)
			return err_set(err, ERR_CONFIG, "%s='%.60s' is neither 0 nor 1",
				       name, text);
		*number_at(self, opt) = text[0] - '0';
		return 0;
	case OPT_CHOICE:
		*number_at(self, opt) = choice_index(opt->choices, text);
		if (*number_at(self, opt) < 0)
			return err_set(err, ERR_CONFIG, "%s='%.60s' is not one of %s",
				       name, text, opt->choices);
		return 0;
	case OPT_TEXT:
		break;
	}
	if ((int64_t)len < opt->min || (int64_t)len > opt->max)
		return err_set(err, ERR_CONFIG, "%s has %zu byte%s, not %lld to %lld",
			       name, len, plural_s(len), (long long)opt->min,
			       (long long)opt->max);
	if (opt->header && strspn(text, HEADER_CHARACTERS) != len)
		return err_set(err, ERR_CONFIG,
			       "%s='%.60s' is not the name of an HTTP header: letters, "
			       "digits and hyphens, without a colon",
			       name, text);
	memcpy((char *)self + opt->at, text, len + 1);
	return 0;
}

static const struct opt *find_env(const char *name, size_t len)
{
	char want[NAME_MAX_BYTES];

	for (size_t i = 0; i < config_option_count; i++)
		if (strlen(env_name(&config_options[i], want)) == len &&
		    strncmp(want, name, len) == 0)
			return &config_options[i];
	return NULL;
}

static int load_env(struct config *self, char *const env[], struct err *err)
{
	for (; *env; env++) {
		size_t len = strcspn(*env, "=");
		char name[NAME_MAX_BYTES];

		if (strncmp(*env, "VIVARIUM_", 9) != 0)
			continue;
		const struct opt *opt = find_env(*env, len);
		if (!opt)
			log_warn("config",
				 "%.*s is not a setting of this version: ignored",
				 (int)len, *env);
		else if (set(self, opt, env_name(opt, name), *env + len + 1, err) < 0)
			return -1;
	}
	return 0;
}

static const struct opt *find_flag(const char *flag, size_t len)
{
	for (size_t i = 0; i < config_option_count; i++)
		if (strlen(config_options[i].name) == len &&
		    strncmp(config_options[i].name, flag, len) == 0)
			return &config_options[i];
	return NULL;
}

/* Takes one setting at argv[0]; returns how many words it used, or -1. */
static int load_flag(struct config *self, char *const argv[], struct err *err)
{
	const char *word = argv[0] + 2, *value = strchr(word, '=');
	size_t len = strcspn(word, "=");
	const struct opt *opt =
	    strncmp(argv[0], "--", 2) == 0 ? find_flag(word, len) : NULL;
	char shown[NAME_MAX_BYTES];

	if (!opt)
		return err_set(err, ERR_CONFIG,
			       "unknown argument '%.60s'; --help lists them all",
			       argv[0]);
	bool bare = opt->bare && !value;
	if (!value && !bare && !argv[1])
		return err_set(err, ERR_CONFIG, "%s needs a value", argv[0]);
	snprintf(shown, sizeof shown, "--%s", opt->name);
	if (set(self, opt, shown, value ? value + 1 : bare ? "1" : argv[1], err) < 0)
		return -1;
	self->by_flag |= UINT64_C(1) << (opt - config_options);
	return value || bare ? 1 : 2;
}

/* How many words of argv are a verb; 0: it is none. */
static int load_verb(struct config *self, enum config_verb *verb, char *const argv[],
		     struct err *err)
{
	for (size_t i = 0; i < COUNT_OF(verbs); i++) {
		if (strcmp(argv[0], verbs[i].flag) != 0)
			continue;
		*verb = verbs[i].verb;
		if (!verbs[i].operand)
			return 1;
		if (!argv[1])
			return err_set(err, ERR_CONFIG, "%s needs a %s", argv[0],
				       verbs[i].operand);
		self->operand = argv[1];
		return 2;
	}
	return 0;
}

static int load_flags(struct config *self, enum config_verb *verb, char *const argv[],
		      struct err *err)
{
	for (int used = 0; *argv; argv += used) {
		used = load_verb(self, verb, argv, err);
		if (!used)
			used = load_flag(self, argv, err);
		if (used < 0)
			return -1;
	}
	return 0;
}

/* By length: in what ps shows, an argument that became shorter would end the list. */
static void hide(char *value)
{
	memset(value, '*', strlen(value));
}

static void hide_argument(char *const argv[])
{
	size_t len = strcspn(argv[0], "=");
	const struct opt *opt = strncmp(argv[0], "--", 2) == 0 && len > 2
				    ? find_flag(argv[0] + 2, len - 2)
				    : NULL;

	if (!opt || !opt->secret)
		return;
	if (argv[0][len])
		hide(argv[0] + len + 1);
	else if (argv[1])
		hide(argv[1]);
}

void config_hide_secrets(char *const argv[], char *const env[])
{
	for (; *argv; argv++)
		hide_argument(argv);
	for (; *env; env++) {
		size_t len = strcspn(*env, "=");
		const struct opt *opt = find_env(*env, len);

		if (opt && opt->secret && (*env)[len])
			hide(*env + len + 1);
	}
}

int config_load(struct config *out, enum config_verb *verb, int argc,
		char *const argv[], char *const env[], struct err *err)
{
	*out = (struct config){0};
	*verb = CONFIG_SERVE;
	for (size_t i = 0; i < config_option_count; i++)
		if (set(out, &config_options[i], config_options[i].name,
			config_options[i].fallback, err) < 0)
			return -1;
	if (load_env(out, env, err) < 0)
		return -1;
	return argc > 1 ? load_flags(out, verb, argv + 1, err) : 0;
}

const char *config_name(const struct config *self, const char *option)
{
	static char name[NAME_MAX_BYTES];
	const struct opt *opt = find_flag(option, strlen(option));

	assert(opt);
	if (self->by_flag & UINT64_C(1) << (opt - config_options))
		snprintf(name, sizeof name, "--%s", option);
	else
		env_name(opt, name);
	return name;
}

bool config_is_flag(const struct config *self, const char *option)
{
	return config_name(self, option)[0] == '-';
}

int config_blame(const struct config *self, const char *option, struct err *err)
{
	err->kind = ERR_CONFIG;
	return err_wrap(err, "%s", config_name(self, option));
}

static void print_text(const struct opt *opt, const char *text, FILE *to)
{
	char name[NAME_MAX_BYTES];

	fprintf(to, "%s=%s\n", env_name(opt, name),
		opt->secret && text[0] ? "(hidden)" : text);
}

void config_print(const struct config *self, FILE *to)
{
	struct config copy = *self; /* number_at() wants it writable */
	char name[NAME_MAX_BYTES], choice[16], shown[32];

	for (size_t i = 0; i < config_option_count; i++) {
		const struct opt *opt = &config_options[i];
		const int64_t *number = number_at(&copy, opt);

		if (opt->type == OPT_TEXT)
			print_text(opt, (const char *)&copy + opt->at, to);
		else if (opt->type == OPT_CHOICE)
			fprintf(to, "%s=%s\n", env_name(opt, name),
				choice_name(opt->choices, *number, choice));
		else {
			show_number(opt, *number, shown);
			fprintf(to, "%s=%s\n", env_name(opt, name), shown);
		}
	}
}

/* " (0 to 65535)" of a number, " (text|json)" of a choice. */
static const char *shown_range(const struct opt *opt, char out[RANGE_MAX_BYTES + 3])
{
	char range[RANGE_MAX_BYTES];

	out[0] = '\0';
	if (opt->type <= OPT_BYTES) {
		show_range(opt, range);
		snprintf(out, RANGE_MAX_BYTES + 3, " (%s)", range);
	} else if (opt->type == OPT_SWITCH) {
		snprintf(out, NAME_MAX_BYTES, " (0 or 1)");
	} else if (opt->choices) {
		snprintf(out, NAME_MAX_BYTES, " (%s)", opt->choices);
	}
	return out;
}

static const char *shown_default(const struct opt *opt)
{
	return opt->shown ? opt->shown : opt->fallback;
}

void config_help(FILE *to)
{
	char name[NAME_MAX_BYTES], range[RANGE_MAX_BYTES + 3];

	fprintf(to,
		"usage: vivarium [--SETTING VALUE]...\n\n"
		"Serves live IPython kernels over MCP at http://HOST:PORT/mcp.\n\n");
	for (size_t i = 0; i < COUNT_OF(verbs); i++) {
		const char *operand = verbs[i].operand ? verbs[i].operand : "";
		int room = 16 - (int)strlen(verbs[i].flag) - 1;

		if (verbs[i].help)
			fprintf(to, "  %s %-*s %s\n", verbs[i].flag, room, operand,
				verbs[i].help);
	}
	fprintf(to, "\nSettings, each also an environment variable (flags win):\n");
	for (size_t i = 0; i < config_option_count; i++) {
		const struct opt *opt = &config_options[i];

		fprintf(to, "\n  --%s, %s%s", opt->name, env_name(opt, name),
			shown_range(opt, range));
		fprintf(to, "\n      %s\n      Default: %s\n", opt->help,
			shown_default(opt));
	}
	fprintf(to, "\nExit status: 0 stopped by a signal, 1 could not start, 2 bad "
		    "setting.\n");
}

void config_help_markdown(FILE *to)
{
	char name[NAME_MAX_BYTES], range[RANGE_MAX_BYTES + 3];

	fprintf(to, "| variable | default | meaning |\n|---|---|---|\n");
	for (size_t i = 0; i < config_option_count; i++) {
		const struct opt *opt = &config_options[i];

		shown_range(opt, range);
		for (char *bar; (bar = strchr(range, '|'));)
			*bar = '/'; /* a bar would end the table's cell */
		fprintf(to, "| `%s` | `%s` | %s%s |\n", env_name(opt, name),
			shown_default(opt), opt->help, range);
	}
}

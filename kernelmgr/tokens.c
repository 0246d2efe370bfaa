// SPDX-License-Identifier: MIT
#include "kernelmgr/tokens.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernelmgr/users.h"
#include "wire/buf.h"
#include "wire/log.h"
#include "wire/mem.h"
#include "wire/words.h"

enum {
	FILE_MAX = 1 << 20, /* bytes */
	TOKEN_BYTES = 32,
};
#define TOKEN_PREFIX "viv_" /* so that scanners for secrets know it */
#define TOKEN_CHARACTERS                                                               \
	"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-._~+/="

static const char subject[] = "tokens";

static void hash_of(const char *token, unsigned char out[TOKEN_HASH_SIZE])
{
	crypto_generichash(out, TOKEN_HASH_SIZE, (const unsigned char *)token,
			   strlen(token), NULL, 0);
}

bool tokens_wanted(const struct config *config)
{
	return config->token[0] || config->tokens_file[0];
}

/* ---- the file ---- */

static int check_file(const char *path, const struct stat *st, struct err *err)
{
	if (!S_ISREG(st->st_mode))
		return err_set(err, ERR_CONFIG, "%.120s is not a file", path);
	if (st->st_mode & (S_IRWXG | S_IRWXO))
		return err_set(err, ERR_CONFIG,
			       "%.100s is open to others than its owner (mode %04o): "
			       "chmod 600 it",
			       path, (unsigned)st->st_mode & 07777);
	if (st->st_uid != geteuid() && st->st_uid != 0)
		return err_set(err, ERR_CONFIG,
			       "%.100s belongs to another user (uid %u): its owner "
			       "could let anybody in",
			       path, st->st_uid);
	if (st->st_size > FILE_MAX)
		return err_set(err, ERR_LIMIT, "%.120s has over %d bytes", path,
			       FILE_MAX);
	return 0;
}

static int read_text(const char *path, struct buf *out, struct err *err)
{
	/* not to wait for the writer of a pipe */
	owned(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	if (fd < 0 && errno == ENOENT)
		return err_set(err, ERR_CONFIG,
			       "there is no %.150s; `vivarium --new-token NAME` with "
			       "this setting makes it",
			       path);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, ERR_SYSTEM, "read %.150s", path);
	if (check_file(path, &st, err) < 0)
		return -1;
	for (;;) {
		ssize_t len = read(fd, buf_reserve(out, FILE_MAX), FILE_MAX);

		if (len < 0)
			return err_set(err, ERR_SYSTEM, "read %.150s", path);
		if (len == 0)
			return 0;
		out->size += (size_t)len;
		out->data[out->size] = '\0';
		if (out->size > FILE_MAX)
			return err_set(err, ERR_LIMIT, "%.120s has over %d bytes", path,
				       FILE_MAX);
	}
}

static int read_hash(const char *text, unsigned char out[TOKEN_HASH_SIZE])
{
	size_t len;
	const char *end;

	if (sodium_hex2bin(out, TOKEN_HASH_SIZE, text, strlen(text), NULL, &len, &end) <
	    0)
		return -1;
	return len == TOKEN_HASH_SIZE && !*end ? 0 : -1;
}

/* One line, which is changed.  1: a token, 0: nothing on it. */
static int read_line(char *line, struct token *out, struct err *err)
{
	static const char blanks[] = " \t\r";
	char *rest = line + strspn(line, blanks);

	rest[strcspn(rest, "#")] = '\0';
	if (!*rest)
		return 0;
	char *user = strsep(&rest, blanks);
	if (users_check_name(user, err) < 0)
		return -1;
	char *hash = rest ? rest + strspn(rest, blanks) : user + strlen(user);
	size_t len = strcspn(hash, blanks);
	if (hash[len + strspn(hash + len, blanks)])
		return err_set(err, ERR_CONFIG, "more than NAME HASH");
	hash[len] = '\0';
	if (read_hash(hash, out->hash) < 0)
		return err_set(err, ERR_CONFIG,
			       "after '%s' stands no hash: 64 hexadecimal digits, "
			       "which vivarium --new-token prints",
			       user);
	snprintf(out->user, sizeof out->user, "%s", user);
	return 1;
}

static int by_hash(const void *a, const void *b)
{
	return memcmp(((const struct token *)a)->hash, ((const struct token *)b)->hash,
		      TOKEN_HASH_SIZE);
}

static int refuse_doubles(struct token *all, size_t count, struct err *err)
{
	if (count)
		qsort(all, count, sizeof *all, by_hash);
	for (size_t i = 1; i < count; i++)
		if (by_hash(&all[i - 1], &all[i]) == 0)
			return err_set(err, ERR_CONFIG,
				       "lines %u and %u have the same token",
				       all[i - 1].line, all[i].line);
	return 0;
}

static int read_all(char *text, struct token *all, size_t *count, struct err *err)
{
	unsigned number = 0;

	for (char *line; (line = strsep(&text, "\n"));) {
		struct token token = {.line = ++number};
		int found = read_line(line, &token, err);

		if (found < 0)
			return err_wrap(err, "line %u", number);
		if (found && *count == TOKENS_MAX)
			return err_set(err, ERR_LIMIT, "over %d tokens", TOKENS_MAX);
		if (found)
			all[(*count)++] = token;
	}
	return refuse_doubles(all, *count, err);
}

int tokens_read(struct tokens *self, struct err *err)
{
	const char *path = self->config->tokens_file;
	owned(buf_finish) struct buf text = {0};
	size_t count = 0;

	if (read_text(path, &text, err) < 0)
		return -1;
	if (memchr(buf_str(&text), '\0', text.size))
		return err_set(err, ERR_CONFIG, "%.120s is no text", path);
	struct token *all = xcalloc(TOKENS_MAX, sizeof *all);
	if (text.size && read_all(text.data, all, &count, err) < 0) {
		free(all);
		return err_wrap(err, "%.100s", path);
	}
	free(self->all);
	self->all = count ? xrealloc(all, count * sizeof *all) : NULL;
	self->count = count;
	if (!count)
		free(all);
	log_info(subject, "%s: %zu token%s", path, count, plural_s(count));
	return 0;
}

/* ---- the list ---- */

static int take_shared(struct tokens *self, const char *token, struct err *err)
{
	size_t len = strlen(token);

	if (len < CONFIG_SECRET_MIN || token[strspn(token, TOKEN_CHARACTERS)])
		return err_set(err, ERR_CONFIG,
			       "a token has at least %d characters, letters and digits "
			       "and - . _ ~ + / =; vivarium --new-token makes one",
			       CONFIG_SECRET_MIN);
	hash_of(token, self->shared);
	self->has_shared = true;
	return 0;
}

int tokens_open(struct tokens *self, const struct config *config, struct err *err)
{
	*self = (struct tokens){.config = config};
	if (config->token[0] && take_shared(self, config->token, err) < 0)
		return config_blame(config, "token", err);
	if (config->tokens_file[0] && tokens_read(self, err) < 0)
		return config_blame(config, "tokens-file", err);
	return 0;
}

void tokens_close(struct tokens *self)
{
	free(self->all);
	*self = (struct tokens){0};
}

static uint64_t id_of(const unsigned char hash[TOKEN_HASH_SIZE])
{
	uint64_t id;

	memcpy(&id, hash, sizeof id);
	return id;
}

/* Looks at all of them, however soon it is found: how long it takes says nothing. */
static const struct token *find(const struct tokens *self,
				const unsigned char hash[TOKEN_HASH_SIZE])
{
	const struct token *found = NULL;

	for (size_t i = 0; i < self->count; i++)
		if (sodium_memcmp(self->all[i].hash, hash, TOKEN_HASH_SIZE) == 0)
			found = &self->all[i];
	return found;
}

bool tokens_admit(void *arg, const char *token, struct pass *out)
{
	const struct tokens *self = arg;
	unsigned char hash[TOKEN_HASH_SIZE];

	hash_of(token, hash);
	bool is_shared = sodium_memcmp(self->shared, hash, sizeof hash) == 0;
	const struct token *found = find(self, hash);
	*out = (struct pass){.id = id_of(hash)};
	if (found)
		snprintf(out->user, sizeof out->user, "%s", found->user);
	return found || (is_shared && self->has_shared);
}

bool tokens_honour(void *arg, const struct pass *pass)
{
	const struct tokens *self = arg;

	if (!pass->user[0])
		return self->has_shared && id_of(self->shared) == pass->id;
	for (size_t i = 0; i < self->count; i++)
		if (id_of(self->all[i].hash) == pass->id)
			return strcmp(self->all[i].user, pass->user) == 0;
	return false;
}

/* ---- a new one ---- */

static int append(const char *path, const char *line, struct err *err)
{
	owned(close_fd) int fd =
	    open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0600);
	struct stat st;
	char last = '\n';

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, ERR_SYSTEM, "write %.150s", path);
	if (check_file(path, &st, err) < 0)
		return -1;
	if (st.st_size && pread(fd, &last, 1, st.st_size - 1) != 1)
		return err_set(err, ERR_SYSTEM, "read %.150s", path);
	owned(free_text) char *text =
	    xasprintf("%s%s\n", last == '\n' ? "" : "\n", line);
	size_t size = strlen(text);
	if (write(fd, text, size) != (ssize_t)size)
		return err_set(err, ERR_SYSTEM, "write %.150s", path);
	return 0;
}

int tokens_make(const struct config *config, const char *user, struct err *err)
{
	unsigned char bytes[TOKEN_BYTES], hash[TOKEN_HASH_SIZE];
	char token[sizeof TOKEN_PREFIX + 2 * TOKEN_BYTES] = TOKEN_PREFIX;
	char hex[2 * TOKEN_HASH_SIZE + 1], line[PASS_USER_SIZE + sizeof hex];
	const char *path = config->tokens_file;

	if (users_check_name(user, err) < 0)
		return -1;
	randombytes_buf(bytes, sizeof bytes);
	sodium_bin2base64(token + strlen(TOKEN_PREFIX),
			  sizeof token - strlen(TOKEN_PREFIX), bytes, sizeof bytes,
			  sodium_base64_VARIANT_URLSAFE_NO_PADDING);
	hash_of(token, hash);
	sodium_bin2hex(hex, sizeof hex, hash, sizeof hash);
	snprintf(line, sizeof line, "%s %s", user, hex);
	if (path[0] && append(path, line, err) < 0)
		return config_blame(config, "tokens-file", err);
	printf("%s\n", token);
	if (path[0])
		fprintf(stderr, "vivarium: added to %s; the token is shown only once\n",
			path);
	else
		fprintf(stderr,
			"vivarium: the token is shown only once; its line for "
			"VIVARIUM_TOKENS_FILE:\n%s\n",
			line);
	return 0;
}

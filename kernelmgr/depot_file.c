// SPDX-License-Identifier: MIT
/* Files of a depot: read whole, written so that they are there whole or not at all. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "kernelmgr/depot_impl.h"
#include "wire/mem.h"

int depot_read_file(int dir, const char *name, size_t max, struct buf *out,
		    struct err *err)
{
	owned(close_fd) int fd =
	    openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, ERR_SYSTEM, "read %.80s", name);
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > max)
		return err_set(err, ERR_PARSE, "%.80s is no file of at most %zu bytes",
			       name, max);
	buf_reserve(out, (size_t)st.st_size + 1);
	while (out->size < (size_t)st.st_size) {
		ssize_t len =
		    read(fd, out->data + out->size, (size_t)st.st_size - out->size);

		if (len < 0 && errno == EINTR)
			continue;
		if (len < 0)
			return err_set(err, ERR_SYSTEM, "read %.80s", name);
		if (len == 0)
			return err_set(err, ERR_PARSE, "%.80s got shorter", name);
		out->size += (size_t)len;
	}
	out->data[out->size] = '\0';
	return 0;
}

static int write_all(int fd, const char *data, size_t size)
{
	while (size) {
		ssize_t len = write(fd, data, size);

		if (len < 0 && errno == EINTR)
			continue;
		if (len < 0)
			return -1;
		data += len;
		size -= (size_t)len;
	}
	return 0;
}

int depot_write_file(int dir, const char *name, const void *data, size_t size,
		     struct err *err)
{
	char partial[80];

	snprintf(partial, sizeof partial, "%.60s.partial", name);
	if (unlinkat(dir, partial, 0) < 0 && errno != ENOENT)
		return err_set(err, ERR_SYSTEM, "replace %s", partial);
	owned(close_fd) int fd =
	    openat(dir, partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || write_all(fd, data, size) < 0 || fdatasync(fd) < 0 ||
	    renameat(dir, partial, dir, name) < 0) {
		err_set(err, ERR_SYSTEM, "write %.80s", name);
		unlinkat(dir, partial, 0);
		return -1;
	}
	if (fsync(dir) < 0)
		return err_set(err, ERR_SYSTEM, "sync the directory of %.80s", name);
	return 0;
}

void depot_each_name(int dir, void (*fn)(int dir, const char *name, void *arg),
		     void *arg)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!list) {
		close_fd(&fd);
		return;
	}
	while ((entry = readdir(list)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			fn(dir, entry->d_name, arg);
	closedir(list);
}

/* ---- N.json ---- */

static void note_manifest(int dir, const char *name, void *arg)
{
	struct depot_numbers *self = arg;
	char *end;

	(void)dir;
	unsigned long long number = strtoull(name, &end, 10);
	if (end == name || strcmp(end, ".json") != 0 || !number)
		return;
	self->at = xrealloc(self->at, (self->count + 1) * sizeof *self->at);
	self->at[self->count++] = number;
}

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

void depot_list_manifests(int dir, struct depot_numbers *out)
{
	depot_each_name(dir, note_manifest, out);
	if (out->count)
		qsort(out->at, out->count, sizeof *out->at, ascending);
}

void depot_numbers_finish(struct depot_numbers *self)
{
	free(self->at);
}

/* ---- chunks ---- */

static void free_state(XXH3_state_t **state)
{
	XXH3_freeState(*state);
}

/* By read(), not a mapping: a kernel that cuts its file short must not crash us. */
static int check_hash(int fd, const struct chunk_ref *ref, struct err *err)
{
	static char part[256 * 1024];
	owned(free_state) XXH3_state_t *state = XXH3_createState();
	char hash[CHUNK_HASH_SIZE];
	uint32_t left = ref->size;

	if (!state || XXH3_128bits_reset(state) != XXH_OK)
		return err_set(err, ERR_SYSTEM, "hash chunk %s", ref->hash);
	while (left) {
		ssize_t len = read(fd, part, left < sizeof part ? left : sizeof part);

		if (len < 0 && errno == EINTR)
			continue;
		if (len < 0)
			return err_set(err, ERR_SYSTEM, "read chunk %s", ref->hash);
		if (len == 0)
			return err_set(err, ERR_PARSE, "chunk %s got shorter",
				       ref->hash);
		XXH3_128bits_update(state, part, (size_t)len);
		left -= (uint32_t)len;
	}
	XXH128_hash_t value = XXH3_128bits_digest(state);
	snprintf(hash, sizeof hash, "%016llx%016llx", (unsigned long long)value.high64,
		 (unsigned long long)value.low64);
	if (strcmp(hash, ref->hash) != 0)
		return err_set(err, ERR_PARSE, "chunk %s has other content", ref->hash);
	return 0;
}

int depot_check_chunk(int dir, const struct chunk_ref *ref, bool hash, struct err *err)
{
	owned(close_fd) int fd =
	    openat(dir, ref->hash, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, ERR_SYSTEM, "read chunk %s", ref->hash);
	if (!S_ISREG(st.st_mode) || st.st_size != ref->size)
		return err_set(err, ERR_PARSE, "chunk %s has %lld bytes, not %u",
			       ref->hash, (long long)st.st_size, ref->size);
	return hash ? check_hash(fd, ref, err) : 0;
}

void depot_mac(const struct depot *self, uint64_t generation, const struct buf *text,
	       char out[2 * 32 + 1])
{
	unsigned char mac[32];
	char name[WORKSPACE_NAME_SIZE + 40];
	crypto_generichash_state state;

	snprintf(name, sizeof name, "vivarium %s %llu\n", self->workspace,
		 (unsigned long long)generation);
	crypto_generichash_init(&state, self->key, sizeof self->key, sizeof mac);
	crypto_generichash_update(&state, (const unsigned char *)name, strlen(name));
	crypto_generichash_update(&state, (const unsigned char *)buf_str(text),
				  text->size);
	crypto_generichash_final(&state, mac, sizeof mac);
	sodium_bin2hex(out, 2 * 32 + 1, mac, sizeof mac);
}

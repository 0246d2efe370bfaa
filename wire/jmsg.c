// SPDX-License-Identifier: MIT
#include "wire/jmsg.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include "wire/json.h"
#include "wire/mem.h"
#include "wire/words.h"

#define DELIMITER "<IDS|MSG>"
#define PROTOCOL "5.3" /* all of 5.x that we use; kernels do not check it */

void jmsg_finish(struct jmsg *self)
{
	json_decref(self->header);
	json_decref(self->parent);
	json_decref(self->metadata);
	json_decref(self->content);
	*self = (struct jmsg){0};
}

static bool is_delimiter(const struct frame *frame)
{
	return frame->size == sizeof DELIMITER - 1 &&
	       memcmp(frame->data, DELIMITER, frame->size) == 0;
}

int jmsg_split(struct jmsg_frames *out, const struct frame *frames, size_t count,
	       struct err *err)
{
	size_t at = 0;

	while (at < count && !is_delimiter(&frames[at]))
		at++;
	if (at == count)
		return err_set(err, ERR_PARSE, "a message without a delimiter");
	if (count - at < 2 + SIGN_PARTS)
		return err_set(err, ERR_PARSE,
			       "a message of %zu frame%s after its delimiter",
			       count - at - 1, plural_s(count - at - 1));
	for (size_t i = at; i < count; i++)
		if (frames[i].size > JMSG_FRAME_MAX)
			return err_set(err, ERR_LIMIT,
				       "a frame of %zu bytes is over the limit of %d",
				       frames[i].size, JMSG_FRAME_MAX);
	*out = (struct jmsg_frames){
	    .signature = &frames[at + 1],
	    .parts = &frames[at + 2],
	    .buffers = &frames[at + 2 + SIGN_PARTS],
	    .buffer_count = count - at - 2 - SIGN_PARTS,
	};
	return 0;
}

static int verify(const struct jmsg_frames *frames, const char *key,
		  struct replay_guard *guard, struct err *err)
{
	struct sign_part parts[SIGN_PARTS];

	for (int i = 0; i < SIGN_PARTS; i++)
		parts[i] =
		    (struct sign_part){frames->parts[i].data, frames->parts[i].size};
	if (!sign_check(key, parts, frames->signature->data, frames->signature->size))
		return err_set(err, ERR_PARSE, "a message with a wrong signature");
	if (guard && !replay_is_new(guard, frames->signature->data))
		return err_set(err, ERR_PARSE, "a message that was sent before");
	return 0;
}

static int parse_object(json_t **out, const struct frame *frame, const char *what,
			struct err *err)
{
	if (json_parse_lossy(out, frame->data, frame->size, err) < 0)
		return err_wrap(err, "%s", what);
	if (json_is_object(*out))
		return 0;
	return err_set(err, ERR_PARSE, "%s is not an object", what);
}

int jmsg_read(struct jmsg *out, const char *key, struct replay_guard *guard,
	      const struct frame *frames, size_t count, struct err *err)
{
	owned(jmsg_finish) struct jmsg self = {0};
	struct jmsg_frames split;

	if (jmsg_split(&split, frames, count, err) < 0 ||
	    verify(&split, key, guard, err) < 0 ||
	    parse_object(&self.header, &split.parts[0], "header", err) < 0 ||
	    parse_object(&self.parent, &split.parts[1], "parent header", err) < 0 ||
	    parse_object(&self.metadata, &split.parts[2], "metadata", err) < 0 ||
	    parse_object(&self.content, &split.parts[3], "content", err) < 0)
		return -1;
	self.type = json_text(self.header, "msg_type", NULL);
	self.id = json_text(self.header, "msg_id", NULL);
	if (!self.type || !self.id)
		return err_set(err, ERR_PARSE, "a header without type or id");
	self.parent_id = json_text(self.parent, "msg_id", "");
	*out = self;
	self = (struct jmsg){0}; /* handed over */
	return 0;
}

void jmsg_session_init(struct jmsg_session *self)
{
	unsigned char bytes[16];

	*self = (struct jmsg_session){0};
	sign_new_key(self->key);
	randombytes_buf(bytes, sizeof bytes);
	sodium_bin2hex(self->id, sizeof self->id, bytes, sizeof bytes);
}

static void format_now(char out[40])
{
	struct timeval now;
	struct tm utc;

	gettimeofday(&now, NULL);
	gmtime_r(&now.tv_sec, &utc);
	size_t len = strftime(out, 32, "%Y-%m-%dT%H:%M:%S", &utc);
	snprintf(out + len, 40 - len, ".%06ldZ", (long)now.tv_usec);
}

static char *build_header(struct jmsg_session *self, const char *type, const char *id)
{
	char date[40];

	format_now(date);
	return xasprintf("{\"msg_id\":\"%s\",\"session\":\"%s\","
			 "\"username\":\"vivarium\",\"date\":\"%s\","
			 "\"msg_type\":\"%s\",\"version\":\"" PROTOCOL "\"}",
			 id, self->id, date, type);
}

int jmsg_send(struct jmsg_session *self, struct zsock *to, const char *type,
	      json_t *content, char id[JMSG_ID_SIZE], struct err *err)
{
	owned(free_text) char *body = json_dumps(content, JSON_COMPACT);
	char signature[SIGN_HEX + 1];

	json_decref(content);
	if (!body)
		return err_set(err, ERR_SYSTEM, "encode a %s", type);
	snprintf(id, JMSG_ID_SIZE, "%s_%llu", self->id, ++self->sent);
	owned(free_text) char *header = build_header(self, type, id);
	struct sign_part parts[SIGN_PARTS] = {
	    {header, strlen(header)}, {"{}", 2}, {"{}", 2}, {body, strlen(body)}};
	struct frame frames[2 + SIGN_PARTS] = {{DELIMITER, sizeof DELIMITER - 1},
					       {signature, SIGN_HEX}};

	sign_parts(self->key, parts, signature);
	for (int i = 0; i < SIGN_PARTS; i++)
		frames[2 + i] = (struct frame){parts[i].data, parts[i].size};
	return zsock_send(to, frames, COUNT_OF(frames), err);
}

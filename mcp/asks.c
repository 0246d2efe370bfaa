// SPDX-License-Identifier: MIT
#include "mcp/asks.h"

#include <string.h>
#include <time.h>

#include "wire/base64.h"
#include "wire/json.h"
#include "wire/mem.h"

enum { STATE_MAX = 64 * 1024 /* bytes of a sealed one */ };

static const struct {
	const char *method, *capability;
	unsigned client;
} kinds[] = {
    [ASK_USER] = {"elicitation/create", "elicitation", CLIENT_ELICITS},
    [ASK_MODEL] = {"sampling/createMessage", "sampling", CLIENT_SAMPLES},
    [ASK_ROOTS] = {"roots/list", "roots", CLIENT_ROOTS},
};

bool asks_can(const struct asks *self, enum ask_kind kind)
{
	return self->client & kinds[kind].client;
}

void asks_finish(struct asks *self)
{
	json_decref(self->params);
	json_decref(self->answers);
	json_decref(self->state);
	json_decref(self->wanted);
	self->params = self->answers = self->state = self->wanted = NULL;
}

/* ---- the state between two rounds ---- */

static void hash_text(crypto_generichash_state *hash, const char *text)
{
	crypto_generichash_update(hash, (const unsigned char *)text, strlen(text) + 1);
}

enum { BINDING_SIZE = 32, BINDING_TEXT = 2 * BINDING_SIZE + 1 };

/* Of the method, the name, the arguments and who asks, in hex. */
static void bind_state(const struct asks *self, char out[BINDING_TEXT])
{
	const json_t *arguments = json_object_get(self->params, "arguments");
	owned(free_text) char *text =
	    arguments ? json_dumps(arguments, JSON_SORT_KEYS | JSON_COMPACT) : NULL;
	unsigned char digest[BINDING_SIZE];
	crypto_generichash_state hash;

	crypto_generichash_init(&hash, NULL, 0, sizeof digest);
	hash_text(&hash, self->method);
	hash_text(&hash, json_text(self->params, "name", ""));
	hash_text(&hash, self->workspace);
	hash_text(&hash, text ? text : "");
	crypto_generichash_final(&hash, digest, sizeof digest);
	sodium_bin2hex(out, BINDING_TEXT, digest, sizeof digest);
}

/* Caller owns. */
static json_t *seal(const struct asks *self, json_t *state)
{
	owned(buf_finish) struct buf plain = {0}, box = {0};
	char binding[BINDING_TEXT];

	bind_state(self, binding);
	json_auto_t *all = json_pack("{ss sI so}", "for", binding, "until",
				     (json_int_t)time(NULL) + ASKS_STATE_S, "state",
				     state ? state : json_null());

	json_write(&plain, all);
	size_t size =
	    plain.size + crypto_secretbox_NONCEBYTES + crypto_secretbox_MACBYTES;
	unsigned char *bytes = (unsigned char *)buf_reserve(&box, size);
	randombytes_buf(bytes, crypto_secretbox_NONCEBYTES);
	crypto_secretbox_easy(bytes + crypto_secretbox_NONCEBYTES,
			      (const unsigned char *)plain.data, plain.size, bytes,
			      self->key->bytes);
	return base64_json(bytes, size, BASE64_URL);
}

/* What seal() sealed; caller owns.  NULL: it did not. */
static json_t *unseal(const struct asks *self, const char *text, size_t length)
{
	owned(buf_finish) struct buf box = {0}, plain = {0};
	const size_t least = crypto_secretbox_NONCEBYTES + crypto_secretbox_MACBYTES;
	unsigned char *bytes = (unsigned char *)buf_reserve(&box, length);
	size_t size = 0;
	const char *end = NULL;
	json_t *out = NULL;
	struct err err;

	if (sodium_base642bin(bytes, length, text, length, NULL, &size, &end,
			      BASE64_URL) < 0 ||
	    end != text + length || size < least)
		return NULL;
	char *room = buf_reserve(&plain, size);
	if (crypto_secretbox_open_easy(
		(unsigned char *)room, bytes + crypto_secretbox_NONCEBYTES,
		size - crypto_secretbox_NONCEBYTES, bytes, self->key->bytes) < 0 ||
	    json_parse(&out, room, size - least, &err) < 0)
		return NULL;
	return out;
}

static int read_state(struct asks *self, const json_t *sealed, struct err *err)
{
	size_t length = json_string_length(sealed);
	json_auto_t *all = json_is_string(sealed) && length && length <= STATE_MAX
			       ? unseal(self, json_string_value(sealed), length)
			       : NULL;

	char binding[BINDING_TEXT];

	bind_state(self, binding);
	if (!all || strcmp(json_text(all, "for", ""), binding) != 0)
		return err_set(err, ERR_ARGUMENT,
			       "params.requestState is not what this server gave for "
			       "this request; send the request without it");
	if (json_integer_of(all, "until", 0) < time(NULL))
		return err_set(err, ERR_ARGUMENT,
			       "params.requestState is too old; send the request "
			       "without it");
	json_t *state = json_object_get(all, "state");
	self->state = json_is_null(state) ? NULL : json_incref(state);
	return 0;
}

int asks_read(struct asks *self, struct err *err)
{
	json_t *answers = json_object_get(self->params, "inputResponses");
	const json_t *sealed = json_object_get(self->params, "requestState");

	if (answers && !json_is_object(answers))
		return err_set(err, ERR_ARGUMENT,
			       "params.inputResponses is not an object");
	self->answers = json_incref(answers);
	return sealed ? read_state(self, sealed, err) : 0;
}

/* ---- answers ---- */

static bool is_answer(const json_t *answer, enum ask_kind kind)
{
	const char *action = json_text(answer, "action", "");

	switch (kind) {
	case ASK_USER:
		return strcmp(action, "accept") == 0 ||
		       strcmp(action, "decline") == 0 || strcmp(action, "cancel") == 0;
	case ASK_MODEL:
		return json_object_get(answer, "content") != NULL;
	case ASK_ROOTS:
		break;
	}
	return json_is_array(json_object_get(answer, "roots"));
}

json_t *asks_answer(const struct asks *self, enum ask_kind kind, const char *name)
{
	json_t *answer = json_object_get(self->answers, name);

	return is_answer(answer, kind) ? answer : NULL;
}

static bool has_type(const json_t *value, const char *type)
{
	return (strcmp(type, "string") == 0 && json_is_string(value)) ||
	       (strcmp(type, "integer") == 0 && json_is_integer(value)) ||
	       (strcmp(type, "number") == 0 && json_is_number(value)) ||
	       (strcmp(type, "boolean") == 0 && json_is_boolean(value)) ||
	       (strcmp(type, "array") == 0 && json_is_array(value));
}

/* Every field that is required is there, and every one that is there has its type. */
static bool fits(const json_t *content, const json_t *schema)
{
	json_t *properties = json_object_get(schema, "properties"), *property;
	const json_t *required = json_object_get(schema, "required");
	const char *name;

	for (size_t i = 0; i < json_array_size(required); i++)
		if (!json_object_get(content,
				     json_string_value(json_array_get(required, i))))
			return false;
	json_object_foreach(properties, name, property)
	{
		const json_t *value = json_object_get(content, name);

		if (value && !has_type(value, json_text(property, "type", "")))
			return false;
	}
	return json_is_object(content);
}

json_t *asks_content(const struct asks *self, const char *name, const json_t *schema)
{
	json_t *answer = asks_answer(self, ASK_USER, name);
	json_t *content = json_object_get(answer, "content");

	return strcmp(json_text(answer, "action", ""), "accept") == 0 &&
		       fits(content, schema)
		   ? content
		   : NULL;
}

/* ---- questions ---- */

void asks_want(struct asks *self, enum ask_kind kind, const char *name, json_t *params)
{
	if (!asks_can(self, kind)) {
		json_decref(params);
		return;
	}
	if (!self->wanted)
		self->wanted = json_object();
	json_object_set_new(
	    self->wanted, name,
	    json_pack("{ss so}", "method", kinds[kind].method, "params", params));
}

json_t *asks_form(const char *message, json_t *schema)
{
	return json_pack("{ss so}", "message", message, "requestedSchema", schema);
}

bool asks_next(struct asks *self, char **name, json_t **params, const char **method)
{
	const char *key;
	json_t *question;

	json_object_foreach(self->wanted, key, question)
	{
		const char *wanted = json_text(question, "method", "");

		for (size_t i = 0; i < COUNT_OF(kinds); i++)
			if (strcmp(kinds[i].method, wanted) == 0)
				*method = kinds[i].method;
		*params = json_incref(json_object_get(question, "params"));
		*name = xstrdup(key);
		json_object_del(self->wanted, *name);
		return true;
	}
	return false;
}

void asks_put(struct asks *self, const char *name, json_t *result)
{
	if (!self->answers)
		self->answers = json_object();
	json_object_set(self->answers, name, result);
}

json_t *asks_result(struct asks *self, json_t *state)
{
	json_t *wanted = self->wanted ? take(&self->wanted) : json_object();

	return json_pack("{ss so so}", "resultType", "input_required", "inputRequests",
			 wanted, "requestState", seal(self, state));
}

void asks_refuse(enum ask_kind kind, struct rpc_refusal *refusal)
{
	refusal->code = RPC_CAPABILITY_MISSING;
	refusal->data =
	    json_pack("{s{s{}}}", "requiredCapabilities", kinds[kind].capability);
	err_set(&refusal->err, ERR_REQUEST,
		"this needs a client with the capability %s", kinds[kind].capability);
}

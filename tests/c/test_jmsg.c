// SPDX-License-Identifier: MIT
/* Reads the messages that jupyter_client wrote (tests/data/make_frames.py), and what
 * hostile hands make of them. */
#include "wire/jmsg.h"

#include <sodium.h>
#include <zmq.h>

#include "testing.h"
#include "wire/json.h"
#include "wire/mem.h"

struct wire { /* one golden message as frames */
	struct frame frames[16];
	unsigned char *data[16];
	size_t count, identities;
	const char *key;
};

static json_t *golden;

static int set_up(void **state)
{
	char path[512];

	(void)state;
	snprintf(path, sizeof path, "%s/frames.json", getenv("DATA"));
	golden = json_load_file(path, 0, NULL);
	return golden ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	json_decref(golden);
	return 0;
}

static void wire_load(struct wire *wire, const json_t *message)
{
	const json_t *frames = json_object_get(message, "frames");

	*wire = (struct wire){.key = json_text(message, "key", NULL)};
	wire->identities = json_array_size(json_object_get(message, "identities"));
	wire->count = json_array_size(frames);
	assert_true(wire->count <= COUNT_OF(wire->frames));
	for (size_t i = 0; i < wire->count; i++) {
		const char *hex = json_string_value(json_array_get(frames, i));
		size_t size = strlen(hex) / 2;

		wire->data[i] = xcalloc(1, size + 1);
		sodium_hex2bin(wire->data[i], size + 1, hex, size * 2, NULL, NULL,
			       NULL);
		wire->frames[i] = (struct frame){wire->data[i], size};
	}
}

static void wire_finish(struct wire *wire)
{
	for (size_t i = 0; i < wire->count; i++)
		free(wire->data[i]);
}

static int read_wire(struct jmsg *out, const struct wire *wire,
		     struct replay_guard *guard, struct err *err)
{
	return jmsg_read(out, wire->key, guard, wire->frames, wire->count, err);
}

static const char *text_of(const struct jmsg *message)
{
	const char *text = json_text(message->content, "text", NULL);

	if (!text)
		text = json_text(message->content, "code", NULL);
	if (!text)
		text = json_text(message->content, "execution_state", NULL);
	if (!text)
		text = json_text(json_object_get(message->content, "data"),
				 "text/plain", "");
	return text;
}

CASE(every_golden_message_is_read)
{
	const json_t *message;
	size_t i;

	assert_true(json_array_size(golden) >= 9);
	json_array_foreach(golden, i, message)
	{
		owned(wire_finish) struct wire wire;
		owned(jmsg_finish) struct jmsg read = {0};
		struct jmsg_frames split;
		struct err err;

		wire_load(&wire, message);
		assert_int_equal(read_wire(&read, &wire, NULL, &err), 0);
		assert_string_equal(read.type, json_text(message, "msg_type", NULL));
		assert_string_equal(read.id, json_text(message, "msg_id", NULL));
		assert_string_equal(read.parent_id,
				    json_text(message, "parent_msg_id", NULL));
		assert_string_equal(text_of(&read), json_text(message, "text", NULL));
		assert_int_equal(jmsg_split(&split, wire.frames, wire.count, &err), 0);
		assert_int_equal(split.buffer_count,
				 json_integer_of(message, "buffers", -1));
	}
}

CASE(a_replay_is_refused)
{
	owned(wire_finish) struct wire wire;
	owned(jmsg_finish) struct jmsg first = {0};
	owned(replay_finish) struct replay_guard guard = {0};
	struct jmsg second;
	struct err err;

	wire_load(&wire, json_array_get(golden, 2));
	assert_int_equal(read_wire(&first, &wire, &guard, &err), 0);
	assert_int_equal(read_wire(&second, &wire, &guard, &err), -1);
	assert_string_equal(err.msg, "a message that was sent before");
}

/* Every byte of signature and signed parts counts; no buffer is signed. */
CASE(one_turned_bit_is_refused_before_anything_is_parsed)
{
	const json_t *message = json_array_get(golden, 6);
	owned(wire_finish) struct wire wire;
	struct jmsg read;
	struct err err;

	wire_load(&wire, message);
	size_t signature = wire.identities + 1;
	for (size_t f = signature; f <= signature + SIGN_PARTS; f++)
		for (size_t i = 0; i < wire.frames[f].size; i++) {
			wire.data[f][i] ^= 1;
			assert_int_equal(read_wire(&read, &wire, NULL, &err), -1);
			assert_string_equal(err.msg,
					    "a message with a wrong signature");
			wire.data[f][i] ^= 1;
		}
	owned(jmsg_finish) struct jmsg whole = {0};
	wire.data[signature + SIGN_PARTS + 1][0] ^= 1;
	assert_int_equal(read_wire(&whole, &wire, NULL, &err), 0);
}

CASE(missing_frames_and_delimiters_are_refused)
{
	owned(wire_finish) struct wire wire;
	struct jmsg read;
	struct err err;

	wire_load(&wire, json_array_get(golden, 3));
	for (size_t count = 0; count < wire.count; count++)
		assert_int_equal(
		    jmsg_read(&read, wire.key, NULL, wire.frames, count, &err), -1);
	assert_int_equal(
	    jmsg_read(&read, wire.key, NULL, wire.frames + 2, wire.count - 2, &err),
	    -1);
}

/* Signed by a kernel that knows the key and means harm. */
static int read_signed(const char *const parts[SIGN_PARTS], struct err *err)
{
	static const char key[] = "key";
	char signature[SIGN_HEX + 1];
	struct sign_part signing[SIGN_PARTS];
	struct frame frames[6] = {{"<IDS|MSG>", 9}, {signature, SIGN_HEX}};
	owned(jmsg_finish) struct jmsg read = {0};

	for (int i = 0; i < SIGN_PARTS; i++) {
		signing[i] = (struct sign_part){parts[i], strlen(parts[i])};
		frames[2 + i] = (struct frame){parts[i], strlen(parts[i])};
	}
	sign_parts(key, signing, signature);
	return jmsg_read(&read, key, NULL, frames, 6, err);
}

CASE(signed_nonsense_is_refused)
{
#define HEADER "{\"msg_id\":\"a\",\"msg_type\":\"b\"}"
	static const char *const good[] = {HEADER, "{}", "{}", "{}"};
	static const char *const bad[][SIGN_PARTS] = {
	    {"", "{}", "{}", "{}"},
	    {"[]", "{}", "{}", "{}"},
	    {"{\"msg_id\":1,\"msg_type\":\"b\"}", "{}", "{}", "{}"},
	    {"{\"msg_id\":\"a\"}", "{}", "{}", "{}"},
	    {HEADER, "null", "{}", "{}"},
	    {HEADER, "{}", "3", "{}"},
	    {HEADER, "{}", "{}", "{\"a\":"},
	};
	struct err err;

	assert_int_equal(read_signed(good, &err), 0);
	for (size_t i = 0; i < COUNT_OF(bad); i++)
		assert_int_equal(read_signed(bad[i], &err), -1);
}

CASE(an_empty_key_signs_nothing_away)
{
	static const struct frame frames[] = {{"<IDS|MSG>", 9}, {"", 0},   {HEADER, 28},
					      {"{}", 2},        {"{}", 2}, {"{}", 2}};
	struct jmsg read;
	struct err err;

	assert_int_equal(jmsg_read(&read, "", NULL, frames, 6, &err), -1);
}

static struct loop_timer looking;
static struct loop *loop;

static void look(void *pull)
{
	zmq_pollitem_t item = {.socket = pull, .events = ZMQ_POLLIN};

	if (zmq_poll(&item, 1, 0) > 0)
		loop_stop(loop);
	else
		loop_timer_start(loop, &looking, 1000, look, pull);
}

CASE(what_is_sent_can_be_read_by_the_other_end)
{
	void *context = zmq_ctx_new(), *pull = zmq_socket(context, ZMQ_ROUTER);
	const struct zsock_options options = {.type = ZSOCK_DEALER,
					      .path = "jmsg-test.sock"};
	struct jmsg_session session;
	struct zsock *zsock;
	char id[JMSG_ID_SIZE];
	struct err err;

	jmsg_session_init(&session);
	assert_int_equal(zmq_bind(pull, "ipc://jmsg-test.sock"), 0);
	assert_int_equal(loop_create(&loop, 4096, &err), 0);
	assert_int_equal(zsock_connect(&zsock, loop, &options, NULL, NULL, &err), 0);
	assert_int_equal(jmsg_send(&session, zsock, "x_request",
				   json_pack("{ss}", "code", "\xf0\x9f\x90\x8d"), id,
				   &err),
			 0);
	look(pull);
	loop_run(loop);
	char texts[8][512];
	struct frame frames[8];
	for (int i = 0; i < 7; i++) {
		int size = zmq_recv(pull, texts[i], sizeof texts[i], 0);

		frames[i] = (struct frame){texts[i], (size_t)size};
	}
	owned(jmsg_finish) struct jmsg read = {0};
	assert_int_equal(jmsg_read(&read, session.key, NULL, frames, 7, &err), 0);
	assert_string_equal(read.type, "x_request");
	assert_string_equal(read.id, id);
	assert_string_equal(text_of(&read), "\xf0\x9f\x90\x8d");
	zsock_destroy(&zsock);
	loop_destroy(&loop);
	zmq_close(pull);
	zmq_ctx_term(context);
	unlink(options.path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_golden_message_is_read),
	    cmocka_unit_test(a_replay_is_refused),
	    cmocka_unit_test(one_turned_bit_is_refused_before_anything_is_parsed),
	    cmocka_unit_test(missing_frames_and_delimiters_are_refused),
	    cmocka_unit_test(signed_nonsense_is_refused),
	    cmocka_unit_test(an_empty_key_signs_nothing_away),
	    cmocka_unit_test(what_is_sent_can_be_read_by_the_other_end),
	};

	return cmocka_run_group_tests_name(__FILE__, tests, set_up, tear_down);
}

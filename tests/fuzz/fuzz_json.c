// SPDX-License-Identifier: MIT
/* JSON, read strictly (from clients) and leniently (from kernels).  Input: the text. */
#include "wire/json.h"

#include "fuzz.h"
#include "texts.h"

static void check_writing(json_t *value)
{
	owned(free_text) char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
	owned(buf_finish) struct buf written = {0};

	json_write(&written, value);
	MUST(text && strcmp(buf_str(&written), text) == 0);
	MUST(strlen(text) == written.size);
}

static void check_round_trip(json_t *value)
{
	owned(free_text) char *text = json_dumps(value, JSON_ENCODE_ANY);
	json_t *again;
	struct err err;

	MUST(text);
	check_writing(value);
	MUST(json_parse(&again, text, strlen(text), &err) == 0);
	MUST(json_equal(value, again));
	json_decref(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	json_t *strict, *lossy;
	struct err err = {0};

	int strictly = json_parse(&strict, text, size, &err);
	MUST(strictly == 0 ||
	     (!strict && (err.kind == ERR_PARSE || err.kind == ERR_LIMIT)));
	if (json_parse_lossy(&lossy, text, size, &err) == 0) {
		check_texts(lossy);
		check_round_trip(lossy);
		if (strictly == 0 && !memmem(text, size, "\\u0000", 6))
			MUST(json_equal(strict, lossy));
		json_decref(lossy);
	} else {
		MUST(strictly < 0); /* more forgiving, never less */
	}
	if (strictly == 0)
		check_round_trip(strict);
	json_decref(strict);
	lossy = json_string_lossy(text, size);
	MUST(lossy);
	json_decref(lossy);
	return 0;
}

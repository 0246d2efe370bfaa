// SPDX-License-Identifier: MIT
#include "mcp/rpc.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "wire/json.h"

static bool is_id(const json_t *value)
{
	return json_is_string(value) || json_is_integer(value);
}

int rpc_read(struct rpc *out, json_t *message, struct err *err)
{
	json_t *id = json_object_get(message, "id");
	json_t *method = json_object_get(message, "method");

	*out = (struct rpc){.id = is_id(id) ? id : NULL};
	if (!json_is_object(message))
		return err_set(err, ERR_REQUEST, "the message is not a JSON object");
	if (strcmp(json_text(message, "jsonrpc", ""), "2.0") != 0)
		return err_set(err, ERR_REQUEST, "\"jsonrpc\" is not \"2.0\"");
	if (id && !out->id)
		return err_set(err, ERR_REQUEST,
			       "\"id\" is neither a string nor an integer");
	if (!method &&
	    (json_object_get(message, "result") || json_object_get(message, "error"))) {
		out->kind = RPC_RESPONSE;
		return 0;
	}
	out->method = json_string_value(method);
	out->params = json_object_get(message, "params");
	out->kind = out->id ? RPC_REQUEST : RPC_NOTIFICATION;
	if (!out->method)
		return err_set(err, ERR_REQUEST, "\"method\" is not a string");
	if (out->params && !json_is_object(out->params))
		return err_set(err, ERR_REQUEST, "\"params\" is not an object");
	return 0;
}

json_t *rpc_result(json_t *id, json_t *result)
{
	json_t *message = json_object(); /* json_pack() takes twice as long */

	json_object_set_new_nocheck(message, "jsonrpc", json_string_nocheck("2.0"));
	json_object_set_nocheck(message, "id", id);
	json_object_set_new_nocheck(message, "result", result);
	return message;
}

json_t *rpc_refuse(json_t *id, struct rpc_refusal *refusal)
{
	json_t *message = rpc_error(id, refusal->code, "%s", refusal->err.msg);

	if (refusal->data)
		json_object_set_new(json_object_get(message, "error"), "data",
				    take(&refusal->data));
	return message;
}

int rpc_http_status(const json_t *message)
{
	const json_t *error = json_object_get(message, "error");

	return json_integer_of(error, "code", 0) == RPC_CAPABILITY_MISSING ? 400 : 200;
}

json_t *rpc_error(json_t *id, int code, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	return json_pack("{ss sO s{si so}}", "jsonrpc", "2.0", "id",
			 id ? id : json_null(), "error", "code", code, "message",
			 json_string_lossy(text, strlen(text)));
}

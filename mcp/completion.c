// SPDX-License-Identifier: MIT
#include "mcp/completion.h"

#include <string.h>
#include <strings.h>

#include "kernelmgr/files.h"
#include "mcp/conformance.h"
#include "mcp/known.h"
#include "mcp/uri.h"
#include "wire/json.h"
#include "wire/mem.h"

enum { VALUES_MAX = 100 /* of one answer, says the schema */ };

struct offer { /* what fits, as it is found */
	const char *typed;
	json_t *first, *then; /* owned: those that begin so, those that hold it */
	size_t total;
};

static bool has(const json_t *values, const char *value)
{
	for (size_t i = 0; i < json_array_size(values); i++)
		if (strcmp(json_string_value(json_array_get(values, i)), value) == 0)
			return true;
	return false;
}

/* Letters count whatever their case; what begins with the typed text comes first. */
static void consider(const char *value, void *arg)
{
	struct offer *self = arg;
	bool begins = strncasecmp(value, self->typed, strlen(self->typed)) == 0;
	json_t *to = begins ? self->first : self->then;

	if (!begins && !strcasestr(value, self->typed))
		return;
	if (has(self->first, value) || has(self->then, value))
		return;
	self->total++;
	if (json_array_size(to) < VALUES_MAX) /* NULL: no UTF-8, which JSON has not */
		json_array_append_new(to, json_string(value));
}

static void offer_files(struct offer *self, const struct workspace *workspace,
			bool (*fits)(const char *path))
{
	owned(files_scan_finish) struct files_scan scan = {0};
	owned(files_list_finish) struct files_list newest = {0};
	struct err err;

	if (!workspace ||
	    files_scan(workspace_files(workspace), FILES_SCAN_LIMIT, &scan, &err) < 0)
		return;
	files_newest(&scan, &newest);
	for (size_t i = 0; i < newest.count; i++)
		if (!fits || fits(newest.at[i]->path))
			consider(newest.at[i]->path, self);
}

static void offer_columns(struct offer *self, const struct workspace *workspace,
			  const char *table)
{
	json_auto_t *columns = known_columns(workspace, table);

	for (size_t i = 0; i < json_array_size(columns); i++)
		consider(json_string_value(json_array_get(columns, i)), self);
}

struct columns_of_all {
	struct offer *offer;
	const struct workspace *workspace;
};

static void offer_columns_of(const char *table, void *arg)
{
	const struct columns_of_all *self = arg;

	offer_columns(self->offer, self->workspace, table);
}

static void offer_what(struct offer *self, const struct prompts_ask *ask,
		       enum completes completes)
{
	const json_t *context = json_object_get(ask->params, "context");
	const char *table =
	    json_text(json_object_get(context, "arguments"), "table", NULL);

	switch (completes) {
	case COMPLETES_NOTHING:
		return;
	case COMPLETES_FILES:
		offer_files(self, ask->workspace, NULL);
		return;
	case COMPLETES_TABLES:
		known_tables(ask->workspace, consider, self);
		offer_files(self, ask->workspace, known_table_file);
		return;
	case COMPLETES_COLUMNS:
		break;
	}
	if (table) {
		offer_columns(self, ask->workspace, table);
		return;
	}
	struct columns_of_all all = {self, ask->workspace};
	known_tables(ask->workspace, offer_columns_of, &all);
}

/* ---- what is asked for ---- */

/* -1: there is no such argument. */
static int find_prompt_arg(const struct prompts_ask *ask, const char *prompt_name,
			   const char *name, struct err *err)
{
	const struct prompt *prompt = prompt_find(ask->config, prompt_name);

	if (!prompt)
		return err_set(err, ERR_ARGUMENT,
			       "Unknown prompt: %.100s; prompts/list names them all",
			       prompt_name);
	for (const struct prompt_arg *arg = prompt->args; arg->name; arg++)
		if (strcmp(arg->name, name) == 0)
			return (int)arg->completes;
	return err_set(err, ERR_ARGUMENT, "the prompt %s has no argument %.100s",
		       prompt->name, name);
}

static int find_template_arg(const struct prompts_ask *ask, const char *uri,
			     const char *name, struct err *err)
{
	if (strcmp(uri, URI_TEMPLATE) == 0 && strcmp(name, "path") == 0)
		return COMPLETES_FILES;
	if (ask->config->conformance && strcmp(uri, CONFORMANCE_TEMPLATE) == 0)
		return COMPLETES_NOTHING;
	return err_set(
	    err, ERR_ARGUMENT,
	    "ref names no template with such an argument; there is " URI_TEMPLATE);
}

static int find_arg(const struct prompts_ask *ask, const char *name, struct err *err)
{
	const json_t *ref = json_object_get(ask->params, "ref");
	const char *type = json_text(ref, "type", "");

	if (strcmp(type, "ref/prompt") == 0)
		return find_prompt_arg(ask, json_text(ref, "name", ""), name, err);
	if (strcmp(type, "ref/resource") == 0)
		return find_template_arg(ask, json_text(ref, "uri", ""), name, err);
	return err_set(err, ERR_ARGUMENT,
		       "params.ref.type is neither ref/prompt nor ref/resource");
}

json_t *completion_complete(const struct prompts_ask *ask, struct rpc_refusal *refusal)
{
	const json_t *argument = json_object_get(ask->params, "argument");
	const char *name = json_text(argument, "name", NULL);
	struct offer offer = {.typed = json_text(argument, "value", NULL)};
	int completes = -1;

	refusal->code = RPC_INVALID_PARAMS;
	if (!name || !offer.typed)
		err_set(&refusal->err, ERR_ARGUMENT,
			"params.argument needs name and value, both strings");
	else
		completes = find_arg(ask, name, &refusal->err);
	if (completes < 0)
		return NULL;
	offer.first = json_array();
	offer.then = json_array();
	offer_what(&offer, ask, (enum completes)completes);
	json_array_extend(offer.first, offer.then);
	json_decref(offer.then);
	while (json_array_size(offer.first) > VALUES_MAX)
		json_array_remove(offer.first, json_array_size(offer.first) - 1);
	return json_pack("{s{so sI sb}}", "completion", "values", offer.first, "total",
			 (json_int_t)offer.total, "hasMore",
			 offer.total > json_array_size(offer.first));
}

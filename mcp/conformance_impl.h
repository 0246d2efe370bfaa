/*
 * conformance_impl - the fixtures that have files of their own, and what they share.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MCP_CONFORMANCE_IMPL_H
#define MCP_CONFORMANCE_IMPL_H

#include "mcp/tools.h"

/* One as the suite wants it: of whom, by which name, and its params. */
struct fixture_question {
	enum ask_kind kind;
	const char *name, *params;
};
extern const struct fixture_question fixture_user_name;

/* True if the client can be asked this; else the call is refused. */
bool fixture_can_ask(struct tool_call *self, enum ask_kind kind) must_check;
/* The answer if it is one of this question; else puts the question. */
json_t *fixture_answer(struct tool_call *self, const struct fixture_question *question);
/* Answers with words and the value (borrowed; or NULL) behind them. */
void fixture_finish(struct tool_call *self, const char *words, const json_t *value);
/* Refuses in the way of the revision; takes the refusal's data. */
void fixture_refuse(struct tool_call *self, struct rpc_refusal *refusal);

/* conformance_asks.c: those that ask the client something. */
extern const struct tool test_sampling, test_elicitation,
    test_elicitation_sep1034_defaults, test_elicitation_sep1330_enums,
    test_missing_capability, test_streaming_elicitation,
    test_input_required_result_elicitation, test_input_required_result_sampling,
    test_input_required_result_list_roots, test_input_required_result_request_state,
    test_input_required_result_multiple_inputs, test_input_required_result_multi_round,
    test_input_required_result_tampered_state, test_input_required_result_capabilities;
/* conformance_live.c: those that say something while they run. */
extern const struct tool test_tool_with_logging, test_logging_tool,
    test_tool_with_progress, test_reconnection, test_trigger_tool_change,
    test_trigger_prompt_change;
/* conformance_tasks.c: those that become tasks. */
extern const struct tool greet, slow_compute, failing_job, protocol_error_job,
    confirm_delete, multi_input, test_tool_with_task;

#endif

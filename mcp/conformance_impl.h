/*
 * conformance_impl - the fixtures that have files of their own.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef MCP_CONFORMANCE_IMPL_H
#define MCP_CONFORMANCE_IMPL_H

struct tool;

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

#endif

// SPDX-License-Identifier: MIT
/* The master copy of the settings: --help, docs/settings.md and all checks come from
 * it. */
#include <assert.h>
#include <stddef.h>

#include "kernelmgr/config_impl.h"
#include "kernelmgr/number.h"
#include "wire/mem.h"

#define AT(member) offsetof(struct config, member)
#define TEXT(member) AT(member), .max = sizeof(((struct config *)0)->member) - 1
const struct opt config_options[] = {
    {"host", OPT_TEXT, TEXT(host), .min = 1, .fallback = "127.0.0.1",
     .help = "Address to listen on."},
    {"port", OPT_INT, AT(port), 0, 65535, .fallback = "8000",
     .help = "TCP port; 0 picks a free one."},
    {"workdir", OPT_TEXT, TEXT(workdir), .min = 1, .fallback = "./workspace",
     .help = "Work directory: the files that the code sees. Made if missing."},
    {"state-dir", OPT_TEXT, TEXT(state_dir), .fallback = "",
     .shown = "$XDG_STATE_HOME/vivarium/<hash of the work directory>",
     .help = "Where Vivarium keeps its own state; never inside the work directory."},
    {"python", OPT_TEXT, TEXT(python), .fallback = "",
     .shown = ".venv beside the program, else /usr/bin/python3",
     .help = "The kernels' Python interpreter; it needs ipykernel."},
    {"max-timeout", OPT_INT, AT(max_timeout_s), 1, 86400, .fallback = "300",
     .help = "Seconds that a call may ask for in timeout_seconds; more is clamped."},
    {"output-limit", OPT_INT, AT(output_limit), 1200, 100000000, .fallback = "20000",
     .help = "Characters kept of each of stdout and stderr: the first 1000 and the "
	     "tail."},
    {"result-limit", OPT_BYTES, AT(result_limit), 262144, 16777216,
     .fallback = "4194304",
     .help = "Bytes of one whole answer; its text is at most three quarters; pictures "
	     "shrink first."},
    {"max-images", OPT_INT, AT(max_images), 0, 32, .fallback = "4",
     .help = "Pictures returned by one call; 0 for models that cannot see."},
    {"max-image-side", OPT_INT, AT(max_image_side), 16, 8192, .fallback = "1280",
     .help = "Pixels of a returned picture's longer side; files stay full size."},
    {"structure", OPT_CHOICE, AT(structure), .choices = "auto|always|never",
     .fallback = "auto",
     .help = "Whether results are given as one object (structuredContent), too: but "
	     "for clients that show a model nothing else then; always; never."},
    {"state-summary", OPT_SWITCH, AT(state_summary), 0, 1, .fallback = "1",
     .help = "End each result with the --- state --- footer."},
    {"persist-namespace", OPT_SWITCH, AT(persist), 0, 1, .fallback = "1",
     .help = "0: every call starts in a fresh kernel, and nothing is saved."},
    {"durability", OPT_CHOICE, AT(durability), .choices = "idle|always|off",
     .fallback = "idle",
     .help = "When the namespace is saved: before the answer if that is quick, else "
	     "when the kernel is idle; always before the answer; never."},
    {"verify", OPT_CHOICE, AT(verify), .choices = "idle|always|off", .fallback = "idle",
     .help = "When a spare kernel tries the newest saved state: while nothing runs and "
	     "the machine is idle; however busy it is; never."},
    {"namespace-max-bytes", OPT_BYTES, AT(namespace_max), 0, 1LL << 50, .fallback = "0",
     .help = "Bytes of a saved namespace; the largest values are left out first. 0: 4 "
	     "GiB or a quarter of the free disk, whichever is less."},
    {"snapshot-keep", OPT_INT, AT(snapshot_keep), 1, 1000, .fallback = "20",
     .help = "Saved states kept in a workspace, for undo."},
    {"snapshot-max-bytes", OPT_BYTES, AT(snapshot_max), 0, 1LL << 50, .fallback = "0",
     .help = "Bytes of all saved states of a workspace; older ones go first. 0: twice "
	     "VIVARIUM_NAMESPACE_MAX_BYTES."},
    {"tools", OPT_TEXT, TEXT(tools), .fallback = CONFIG_TOOLS,
     .help = "Tools offered, separated by commas; there are also restore, history, "
	     "diff and branch. +restore,+diff: the default and these."},
    {"walls", OPT_CHOICE, AT(walls),
     .choices = "auto|off|require:N|require:U|require:L", .fallback = "auto",
     .help = "What keeps kernels apart: the best that this machine allows; nothing; or "
	     "start only with that tier (N is the best)."},
    {"network", OPT_CHOICE, AT(network), .choices = "auto|none|proxy|host",
     .fallback = "auto",
     .help = "What kernels may reach: nothing; the proxy in http_proxy; all that this "
	     "machine reaches. auto is proxy when http_proxy is set, else host."},
    {"read-dirs", OPT_TEXT, TEXT(read_dirs), .fallback = "", .shown = "(none)",
     .help = "Directories that all kernels may read besides the system and the "
	     "interpreter; separated by colons."},
    {"kernel-memory", OPT_BYTES, AT(kernel_memory), 0, 1LL << 50, .least = 128 << 20,
     .automatic = true, .fallback = "auto",
     .help = "Bytes of memory that a kernel with all that it starts may use; 0: no "
	     "limit. auto: 4 GiB or half of the machine's, whichever is less."},
    {"kernel-pids", OPT_INT, AT(kernel_pids), 0, 1 << 20, .least = 32,
     .fallback = "256", .help = "Processes and threads of a kernel; 0: no limit."},
    {"kernel-cpus", OPT_DECIMAL, AT(kernel_cpus), 0, 1024 * NUMBER_UNIT, .least = 10,
     .fallback = "0",
     .help = "Processors that a kernel may use at once, such as 1.5; 0: all. Busy "
	     "kernels get equal shares in any case."},
    {"workspace-quota", OPT_BYTES, AT(quota), 0, 1LL << 50, .least = 1 << 20,
     .fallback = "0",
     .help = "Bytes that the files of a workspace and of its home may take; 0: no "
	     "limit. A cell that writes more is interrupted."},
    {"queue-limit", OPT_INT, AT(queue_limit), 1, 10000, .fallback = "100",
     .help = "Calls that may wait in one workspace."},
    {"soft-deadline", OPT_INT, AT(soft_deadline_s), 0, 86400, .fallback = "50",
     .help =
	 "Seconds after which a call that still runs answers with its output so "
	 "far and an id for the tool wait; below the client's own patience. 0 never."},
    {"replay-keep", OPT_INT, AT(replay_keep_s), 1, 86400, .fallback = "600",
     .help = "Seconds that answers are kept for who lost the connection, or has yet to "
	     "wait for them."},
    {"replay-max-bytes", OPT_BYTES, AT(replay_max), 1 << 20, 1LL << 40,
     .fallback = "67108864",
     .help = "Bytes of such answers kept in all; who has most loses his oldest first."},
    {"idle-timeout", OPT_INT, AT(idle_timeout_s), 0, 31536000, .fallback = "3600",
     .help = "Stop a kernel after this many seconds without a call; 0 never."},
    {"max-kernels", OPT_INT, AT(max_kernels), 1, 1024, .fallback = "64",
     .help = "Kernels alive at once."},
    {"user-header", OPT_TEXT, TEXT(user_header), .fallback = "", .shown = "(none)",
     .header = true,
     .help = "HTTP header that names the user, such as X-User-ID; each gets a "
	     "workspace, users/NAME below the work directory."},
    {"user", OPT_TEXT, TEXT(user), .fallback = "", .shown = "(none)",
     .help = "Whose workspace --stdio serves, users/NAME; none: the one of all."},
    {"proxy-secret", OPT_TEXT, TEXT(proxy_secret), .fallback = "", .shown = "(none)",
     .secret = true,
     .help = "The user header counts only beside X-Vivarium-Proxy-Secret with this "
	     "value of at least 16 characters."},
    {"token", OPT_TEXT, TEXT(token), .fallback = "", .shown = "(none)", .secret = true,
     .help = "The one token that all clients send, as Authorization: Bearer TOKEN; at "
	     "least 16 characters. Give it as a variable: others on this machine can "
	     "see flags."},
    {"tokens-file", OPT_TEXT, TEXT(tokens_file), .fallback = "", .shown = "(none)",
     .help = "A file with a line NAME HASH for each token; it names the user, whatever "
	     "the user header says. Read again when it changes."},
    {"tls-cert", OPT_TEXT, TEXT(tls_cert), .fallback = "", .shown = "(none)",
     .help = "PEM file with the certificate and its chain: HTTPS only. Read again "
	     "when it changes."},
    {"tls-key", OPT_TEXT, TEXT(tls_key), .fallback = "", .shown = "(none)",
     .help = "PEM file with the certificate's key, without a passphrase."},
    {"allowed-hosts", OPT_TEXT, TEXT(allowed_hosts), .fallback = "", .shown = "(none)",
     .help = "Host and Origin names accepted besides loopback, the bound address and "
	     "names without a dot; separated by commas."},
    {"anonymous", OPT_SWITCH, AT(anonymous), 0, 1, .fallback = "0",
     .help = "1 allows to listen on an address that other machines reach: whoever can "
	     "connect can run code."},
    {"confirm", OPT_SWITCH, AT(confirm), 0, 1, .fallback = "1",
     .help =
	 "Ask the user, where the client can: what input() wants, before write_file "
	 "replaces a file that it did not write, before an undo of more than 5 "
	 "cells."},
    {"conformance", OPT_SWITCH, AT(conformance), 0, 1, .fallback = "0", .bare = true,
     .help = "Offer the test_* tools, prompts and resources of MCP's conformance "
	     "suite too; on loopback only. --conformance alone is enough."},
    {"log-format", OPT_CHOICE, AT(log_format), .choices = "text|json",
     .fallback = "text", .help = "Format of the log on stderr."},
    {"log-level", OPT_CHOICE, AT(log_level), .choices = "error|warn|info|debug",
     .fallback = "info", .help = "How much is logged."},
};

const size_t config_option_count = COUNT_OF(config_options);
_Static_assert(COUNT_OF(config_options) <= 64, "by_flag has a bit for each");

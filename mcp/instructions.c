// SPDX-License-Identifier: MIT
#include "mcp/instructions.h"

#include "wire/buf.h"
#include "wire/mem.h"

enum when {
	ALWAYS,
	PERSISTENT,
	SAVED,
	UNSAVED,
	STATELESS,
	FOOTER,
	PICTURES,
	NO_PICTURES,
	OFFLINE
};

static const struct {
	enum when when;
	const char *tool; /* only if it is offered; or NULL */
	const char *text;
} lines[] = {
    {PERSISTENT, "run_python",
     "run_python runs cells in one live IPython kernel: variables, imports and "
     "functions of earlier calls are still there. Build on them, do not repeat code."},
    {STATELESS, "run_python",
     "run_python runs each call in an IPython kernel of its own: nothing of earlier "
     "calls is there but files."},
    {FOOTER, NULL,
     "Each result ends with a footer, --- state ---, of what the next call will find: "
     "variables with their shapes and columns, imports, new files; and of what would "
     "be lost with the kernel. Trust it more than your memory."},
    {SAVED, NULL,
     "The state is saved after each cell and comes back after a crash, a timeout or a "
     "pause. Connections, threads and the like do not; a result's first lines say what "
     "was restored or lost."},
    {UNSAVED, NULL,
     "Nothing is saved here: what a crash, or a timeout that must end the kernel, "
     "takes with it is gone. Keep in files what must last."},
    {SAVED, "undo",
     "undo puts the variables back by some cells, after errors too; fresh=true starts "
     "empty. Files and the outside world are never undone."},
    {ALWAYS, NULL,
     "Work in small cells and end with the expression you want to see. Output is cut "
     "in the middle when it is long: print what you need."},
    {PERSISTENT, NULL,
     "A cell over its timeout_seconds is interrupted; its output and variables stay. "
     "input() asks the user, where the client can."},
    {ALWAYS, "wait",
     "A call that takes long answers with what there is and a call id: wait(call) "
     "gives the rest."},
    {ALWAYS, "list_files",
     "Files in the working directory stay: list_files, read_text_file and write_file "
     "see them too, and they are resources, workspace:///PATH."},
    {OFFLINE, NULL,
     "Code here reaches no network: nothing can be downloaded or installed."},
    {PICTURES, NULL,
     "Figures come back as pictures: plt.show(), leave them open, or save a new "
     "*.png. vivarium_charts draws one in a line."},
    {NO_PICTURES, NULL,
     "Pictures do not come back here: save a chart as a file for the user "
     "(vivarium_charts does, in a line), and print the numbers that you need."},
    {SAVED, "branch",
     "branch copies variables and files to try something in; name it in branch=."},
};

static bool holds(enum when when, const struct config *config)
{
	switch (when) {
	case ALWAYS:
		return true;
	case PERSISTENT:
		return config->persist != 0;
	case SAVED:
		return config_saves(config);
	case UNSAVED:
		return config->persist && !config_saves(config);
	case STATELESS:
		return config->persist == 0;
	case FOOTER:
		return config->persist != 0 && config->state_summary != 0;
	case PICTURES:
		return config->max_images != 0;
	case NO_PICTURES:
		return config->max_images == 0;
	case OFFLINE:
		return config->network == NETWORK_NONE;
	}
	return false;
}

json_t *instructions_json(const struct config *config)
{
	owned(buf_finish) struct buf text = {0};

	for (size_t i = 0; i < COUNT_OF(lines); i++) {
		if (!holds(lines[i].when, config) ||
		    (lines[i].tool && !config_offers_tool(config, lines[i].tool)))
			continue;
		buf_text(&text, text.size ? "\n" : "");
		buf_text(&text, lines[i].text);
	}
	return json_string(buf_str(&text));
}

// SPDX-License-Identifier: MIT
/* How the end of a call's run is told. */
#include "kernelmgr/call_impl.h"

#include "wire/json.h"

long long call_seconds_run(const struct call *self)
{
	return (loop_now_us() - self->started_us) / 1000000;
}

void call_tell_end(struct call *self)
{
	const struct outputs *outputs = &self->outputs;

	if (self->end == CALL_TIMED_OUT)
		buf_printf(&self->notice,
			   "Timed out after %lld s and was interrupted. The kernel "
			   "lives: its variables are kept.\n",
			   self->interrupted_s);
	if (self->end == CALL_CANCELLED && self->workspace->draining)
		buf_text(&self->notice,
			 self->workspace->saving.store
			     ? "Vivarium is stopping: the cell was interrupted.\n"
			     : "Vivarium is stopping: the cell was interrupted "
			       "and all variables are lost.\n");
	else if (self->over_quota)
		buf_text(&self->notice, "The cell wrote files over the quota and was "
					"interrupted. The kernel lives: its variables "
					"are kept.\n");
	else if (self->end == CALL_CANCELLED)
		buf_text(&self->notice, "Cancelled: the cell was interrupted. The "
					"kernel lives: its variables are kept.\n");
	if (outputs->aborted)
		buf_text(&self->notice, "The kernel skipped this cell (aborted).\n");
	if (json_is_true(json_object_get(outputs->summary, "exiting")))
		buf_printf(
		    &self->notice,
		    "The code called exit(): the kernel stops%s. sys.exit() would "
		    "end only the cell.\n",
		    self->workspace->saving.store
			? " and the next call starts a new one"
			: " and its variables are gone");
}

void call_tell_death(struct call *self, const struct kernel_death *death)
{
	struct buf *notice = &self->notice;

	if (self->end == CALL_TIMED_OUT || self->end == CALL_CANCELLED)
		buf_printf(notice,
			   "%s after %lld s and did not yield to the interrupt for "
			   "%lld s: the kernel was killed.",
			   self->end == CALL_TIMED_OUT ? "Timed out"
			   : self->over_quota          ? "Wrote files over the quota"
						       : "Cancelled",
			   self->interrupted_s,
			   call_seconds_run(self) - self->interrupted_s);
	else if (self->state == CALL_IDLED && death->requested)
		buf_printf(notice,
			   "The kernel was idle after this cell, but did not answer "
			   "within %.0f s: it was killed.",
			   call_deadline_s(CALL_IDLED));
	else
		buf_printf(notice, "The kernel %s while this cell ran.", death->words);
	saving_tell_begun(self->workspace, notice);
	buf_text(notice, " The next call starts a new one");
	workspace_tell_loss(self->workspace, notice);
}

# SPDX-License-Identifier: MIT
# mypy: disallow-untyped-calls=False
"""One cell from request to reply: guarded streams, interrupts, and the report in the reply."""

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ipykernel.ipkernel import IPythonKernel
from IPython.core.error import StdinNotImplementedError
from traitlets import Type

from . import inputs
from .cells import Cells
from .census import Census
from .connection import Reports
from .displays import install as install_displays
from .figures import show_left_open
from .interrupts import Interrupts
from .questions import Questions
from .shell import ZMQInteractiveShell
from .streams import Output
from .summary import Namespace

if TYPE_CHECKING:  # it needs xxhash, which a kernel without snapshots does not
    from .snapshot.session import Snapshots
    from .unsaved import Unsaved

NO_INPUT = "input() has nobody to ask here: assign the value in the code instead"
NO_ANSWER = "the user gave no answer"
NO_SECRETS = "getpass() is not offered: the secret would pass through the client; use a file"
METADATA_VERSION = 1
# Output belongs to the last request of these types; a probe takes no output over.
OWNERS_OF_OUTPUT = frozenset({"execute_request", "comm_open", "comm_msg", "comm_close"})


class Kernel(IPythonKernel):
    shell_class = Type(ZMQInteractiveShell)
    shell: Any  # what ipykernel declares may be None, and here never is
    session: Any

    # Set by prepare(), before the first message.
    output: Output
    interrupts: Interrupts
    leave: Callable[[], None]
    cells: Cells
    snapshots: "Snapshots | Unsaved | None" = None
    cell_began = 0.0

    def prepare(
        self,
        output: Output,
        interrupts: Interrupts,
        leave: Callable[[], None],
        reports: Reports,
        summary_max: int,
        *,
        cells: Cells,
        snapshots: "Snapshots | Unsaved | None",
    ) -> None:
        self.output = self.shell.output = output
        self.interrupts = self.shell.interrupts = interrupts
        self.leave = leave
        self.reports = reports
        self.census = Census(self.shell)
        self.census.exclude_present()
        self.cells = cells
        self.questions = Questions()
        self.snapshots = snapshots
        self.namespace = Namespace(self.shell.user_ns_hidden, summary_max, cells)
        self.keeper = install_displays(self.shell, os.getcwd())
        self.shell.events.register("post_execute", show_left_open)

    # Cells.

    async def execute_request(self, stream: Any, ident: Any, parent: Any) -> None:
        self.shell.begin_cell()
        give_number(parent["content"])
        self.output.restore()
        self.reports.run(parent["header"]["msg_id"])
        await super().execute_request(stream, ident, parent)
        if self.shell.exiting:
            self.leave()

    async def do_execute(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        reply = None
        self.cell_began = time.monotonic()
        self.keeper.cell = self.shell.execution_count
        try:
            with self.interrupts.running():
                reply = await super().do_execute(*args, **kwargs)
        except (Exception, KeyboardInterrupt, asyncio.CancelledError) as error:
            # Outside user code, where IPython has no net; a cell must have its reply.
            if reply is None:
                reply = self._failed_reply(error)
        if self.shell.in_child():
            self._end_child(reply)
        if reply.get("ename") == "NoneType" and self.shell.shown is not None:
            # ipykernel 7.3 fails a cell whose value cannot be shown, but does not say why.
            reply["ename"], reply["evalue"] = self.shell.shown
        self.questions.end_cell()
        self.output.restore()
        self.output.settle()
        return reply

    def _failed_reply(self, error: BaseException) -> dict[str, Any]:
        self.output.restore()
        if self.interrupts.cancelled:  # an await that was cut off before it had begun
            error = KeyboardInterrupt()
        self.shell.showtraceback((type(error), error, None), exception_only=True)
        return {
            "status": "error",
            "ename": type(error).__name__,
            "evalue": str(error),
            "traceback": self.shell._last_traceback or [],
            "execution_count": self.execution_count,
            "user_expressions": {},
            "payload": [],
        }

    def _end_child(self, reply: dict[str, Any]) -> None:
        """A fork that ran to the end of its cell: it must not go on as a second kernel."""
        failed = 0 if reply["status"] == "ok" else 1
        self.output.restore()
        self.output.flush()
        os._exit(failed if self.shell.exit_code is None else self.shell.exit_code)

    def finish_metadata(self, parent: Any, metadata: Any, reply_content: Any) -> Any:
        metadata = super().finish_metadata(parent, metadata, reply_content)
        seconds = time.monotonic() - self.cell_began
        cell = reply_content.get("execution_count", 0)
        inputs.forget_older(self.shell, cell)
        self.cells.note(self.shell.user_ns, cell)
        metadata["vivarium"] = self._report()
        if self.snapshots is not None and "code" in parent["content"]:
            code = parent["content"]["code"]
            metadata["vivarium"] |= self.snapshots.after_cell(code, reply_content, seconds)
        return metadata

    def _report(self) -> dict[str, Any]:
        report: dict[str, Any] = {"v": METADATA_VERSION}
        if self.shell.exit_code is not None:
            report["exit_code"] = self.shell.exit_code
        try:
            report |= self.namespace.report(self.shell.user_ns)
            report |= {"threads": self.census.threads(), "children": self.census.children()}
        except Exception as error:
            report["error"] = f"{type(error).__name__} while the namespace was summarized"
        if self.shell.exiting:
            report["exiting"] = True
        return report

    # Interrupts: ipykernel changes the handler here; ours stays, and changes its mind instead.

    def pre_handler_hook(self) -> None:
        self.interrupts.shield()
        if self.snapshots is not None:
            self.snapshots.request_begins()

    def post_handler_hook(self) -> None:
        self.interrupts.idle()
        if self.snapshots is not None:
            self.snapshots.request_ends()

    @contextmanager
    def _cancel_on_sigint(self, future: "asyncio.Task[Any]") -> Iterator[None]:
        with self.interrupts.awaiting(future):
            yield

    # Input.

    def raw_input(self, prompt: str = "") -> Any:
        if not self._allow_stdin:
            raise StdinNotImplementedError(NO_INPUT)
        try:
            return super().raw_input(prompt)
        except EOFError:
            raise EOFError(NO_ANSWER) from None

    def _input_request(self, prompt: str, ident: Any, parent: Any, password: bool = False) -> str:
        return self.questions.ask(self, prompt, ident, parent)

    def getpass(self, prompt: str = "", stream: Any = None, **options: Any) -> Any:
        raise StdinNotImplementedError(NO_SECRETS)

    # Messages and threads.

    def set_parent(self, ident: Any, parent: Any, channel: str = "shell") -> None:
        if channel == "shell" and parent["header"]["msg_type"] in OWNERS_OF_OUTPUT:
            self.output.set_parent(parent["header"])
        super().set_parent(ident, parent, channel)

    def _initialize_thread_hooks(self) -> None:
        """ipykernel 6.29 to 7.0 patch threading.Thread for streams that are not in use here."""

    @property
    def _supports_kernel_subshells(self) -> bool:
        return False

    async def shutdown_request(self, stream: Any, ident: Any, parent: Any) -> None:
        """Answer and go.  Children are the supervisor's business."""
        content = {"status": "ok", "restart": bool(parent["content"].get("restart"))}
        self.session.send(stream, "shutdown_reply", content, parent, ident=ident)
        topic = self._topic("shutdown")
        self.session.send(self.iopub_socket, "shutdown_reply", content, parent, ident=topic)
        self.leave()
        main = threading.main_thread()
        if threading.current_thread() is not main and main.ident is not None:
            signal.pthread_kill(main.ident, signal.SIGINT)  # a running cell ends now


def give_number(request: dict[str, Any]) -> None:
    """IPython does not count a blank cell: it would have the number of the one before it."""
    code = request.get("code")
    counts = request.get("store_history", True) and not request.get("silent")
    if isinstance(code, str) and not code.strip() and counts:
        request["code"] = "pass"

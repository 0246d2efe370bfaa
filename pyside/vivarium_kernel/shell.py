# SPDX-License-Identifier: MIT
# mypy: disallow-untyped-calls=False
"""IPython as an agent's shell: no files, no colours for tools, no advice about leaving."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from ipykernel import zmqshell
from IPython.core import interactiveshell as ipython
from IPython.utils._process_posix import ProcessHandler
from traitlets import Type

from . import terminal
from .displays import Displays, Hook, Publisher
from .interrupts import Interrupts
from .streams import Output

HERE = os.path.dirname(__file__)
CHART_ERRORS = os.path.join(os.path.dirname(HERE), "vivarium_charts", "errors.py")
OWN_CODE = (HERE + os.sep, CHART_ERRORS)  # the latter only hands an error on
ADVICE = "To exit: use"  # "... 'exit', 'quit', or Ctrl-D.": wrong here, after every sys.exit()

ipython_warn: Any = vars(ipython)["warn"]


def warn_but_advice(message: Any, *args: Any, **kwargs: Any) -> None:
    if not str(message).startswith(ADVICE):
        ipython_warn(message, *args, **kwargs)


setattr(ipython, "warn", warn_but_advice)  # noqa: B010 (no public name of theirs)


# Libraries know a kernel by the name of this class.
class ZMQInteractiveShell(zmqshell.ZMQInteractiveShell):
    interrupts: Interrupts  # set by the kernel
    output: Output  # so is this
    parent: Any
    payload_manager: Any
    displayhook: Any
    history_manager: Any
    exit_code: int | None = None  # this cell ended by SystemExit
    exiting = False  # exit() was called
    shown: tuple[str, str] | None = None  # name and text of the last error of this cell
    main_pid = os.getpid()
    display_pub_class = Type(Publisher)
    displayhook_class = Type(Hook)
    banner = ""  # IPython 9 would draw a tip for it, from the random generator that is the user's

    def begin_cell(self) -> None:
        self.exit_code = self.shown = None
        # A value whose display failed or was interrupted: ipykernel 7 would go on to call every
        # later async cell failed.
        self._last_traceback = None
        self._last_traceback_during_displayhook = False
        self.displayhook.msg = None

    def count_from(self, cell: int) -> None:
        """The next cell gets this number, if not a higher one: none comes twice."""
        cell = max(cell, self.execution_count)
        for cells in (self.history_manager.input_hist_parsed, self.history_manager.input_hist_raw):
            cells.extend([""] * (cell - len(cells)))
        self.execution_count = cell

    def in_child(self) -> bool:
        """A process that user code forked, not the kernel."""
        return os.getpid() != self.main_pid

    def init_ipython_dir(self, _ipython_dir: Any) -> None:
        """Not ~/.ipython: that is for a person's own settings."""
        super().init_ipython_dir(self.parent.profile_dir.location)

    def init_display_formatter(self) -> None:
        self.display_formatter = Displays(parent=self)
        self.configurables.append(self.display_formatter)  # type: ignore[arg-type]  # as IPython does

    def init_environment(self) -> None:
        """Tools shall write plain text and never wait in a pager."""
        os.environ.update(TERM="dumb", PAGER="cat", GIT_PAGER="cat")

    def ask_exit(self) -> None:
        """exit() and quit(): the kernel goes when the reply is sent."""
        self.exiting = not self.keepkernel_on_exit
        self.payload_manager.write_payload(
            {"source": "ask_exit", "keepkernel": bool(self.keepkernel_on_exit)}
        )

    async def run_code(self, code_obj: Any, result: Any = None, **kwargs: Any) -> Any:
        with self.interrupts.code():
            failed = await super().run_code(code_obj, result, **kwargs)
        error = result.error_in_exec if result is not None else None
        if isinstance(error, SystemExit):
            self.exit_code, text = exit_status(error.code)
            if text:
                print(text, file=sys.stderr)
        elif self._is_interrupt(error):
            result.error_in_exec = KeyboardInterrupt()
        return failed

    def atexit_operations(self) -> None:
        """Asks where it is, and its traceback would be in the next result."""
        try:
            os.getcwd()
        except OSError:  # the directory was removed
            os.chdir("/")
        super().atexit_operations()

    def system_piped(self, cmd: str) -> None:
        """`!cmd`.  A command that died of an interrupt interrupts its cell too."""
        if cmd.rstrip().endswith("&"):
            raise OSError("Background processes not supported.")
        # Depth 1: names in the command are those of who called this.
        status = terminal.run(ProcessHandler().sh or "sh", self.var_expand(cmd, depth=1))
        self.user_ns["_exit_code"] = status
        if status == -signal.SIGINT:
            raise KeyboardInterrupt
        if status and getattr(self, "system_raise_on_error", False):  # IPython 8.20 and later
            raise subprocess.CalledProcessError(status, cmd)

    system = system_piped

    @contextmanager
    def _tee(self, channel: str) -> Iterator[None]:
        """IPython 9 keeps a copy of all output here; it would grow without limit."""
        yield

    def _is_interrupt(self, error: object) -> bool:
        """An await that was cancelled because the user interrupted it."""
        return isinstance(error, asyncio.CancelledError) and self.interrupts.cancelled

    def _get_exc_info(self, exc_tuple: Any = None) -> Any:
        """The exception without our own frames; the cause of it too."""
        _, value, trace = super()._get_exc_info(exc_tuple)
        trace = without_own_frames(trace)
        if self._is_interrupt(value):
            value = KeyboardInterrupt().with_traceback(trace)
        hide_own_frames(value)
        return type(value), value, trace

    def _showtraceback(self, etype: Any, evalue: Any, stb: list[str]) -> None:
        self.output.restore()  # what the cell put there may not even have flush()
        if self.in_child():  # it has no socket
            print("\n".join(stb), file=sys.stderr)
        else:
            super()._showtraceback(etype, evalue, stb)
            self.shown = etype.__name__, str(evalue)


def exit_status(code: object) -> tuple[int, str]:
    """What python would make of SystemExit(code): a status, and a text for stderr."""
    if code is None:
        return 0, ""
    if isinstance(code, int):
        return code & 255, ""
    return 1, str(code)


def without_own_frames(trace: TracebackType | None) -> TracebackType | None:
    while trace is not None and is_own(trace):
        trace = trace.tb_next
    last = trace
    while last is not None and last.tb_next is not None:
        if is_own(last.tb_next):
            last.tb_next = last.tb_next.tb_next
        else:
            last = last.tb_next
    return trace


def is_own(trace: TracebackType) -> bool:
    return trace.tb_frame.f_code.co_filename.startswith(OWN_CODE)


def hide_own_frames(error: BaseException | None) -> None:
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        error = waiting.pop()
        if error is not None and id(error) not in seen:
            seen.add(id(error))
            error.__traceback__ = without_own_frames(error.__traceback__)
            waiting += [error.__cause__, error.__context__]

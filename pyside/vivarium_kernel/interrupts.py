# SPDX-License-Identifier: MIT
"""What SIGINT does at each moment of a kernel's life.

idle      nothing: the interrupt came too late
shielded  remembered: between request and user code, and between user code and reply; a
          KeyboardInterrupt there would cost the reply
running   KeyboardInterrupt in the user's code
awaiting  an async cell: KeyboardInterrupt if the user's code is running, else its task is
          cancelled through the loop's wake-up pipe, so that a loop asleep in select notices;
          never KeyboardInterrupt in asyncio's own code, which would forget who waits for whom
"""

import asyncio
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class Interrupts:
    """The one owner of SIGINT; all methods belong to the main thread."""

    def __init__(self) -> None:
        self.cancelled = False  # this cell's task was cancelled by an interrupt
        self._state = "idle"
        self._pending = False
        self._held = 0  # depth of code that must not be cut in the middle
        self._main = threading.get_ident()
        self._task: asyncio.Task[Any] | None = None  # the cell
        self._waiter: asyncio.Task[Any] | None = None  # who waits for it, and replies
        self._in_code = False  # IPython has called the user's code

    def install(self) -> None:
        """Take SIGINT, also back from a cell that had set a handler of its own."""
        signal.signal(signal.SIGINT, self._on_signal)

    def idle(self) -> None:
        self._state = "idle"

    def busy(self) -> bool:
        """A request is at work; any thread may ask."""
        return self._state != "idle"

    def shield(self) -> None:
        """A request begins: interrupts count from now on."""
        self.install()
        self._state = "shielded"
        self._pending = self.cancelled = False

    @contextmanager
    def running(self) -> Iterator[None]:
        """User code may run inside; an interrupt that came shortly before strikes at once."""
        self._state = "running"
        try:
            self._strike()
            yield
        finally:
            self._state = "shielded"

    @contextmanager
    def awaiting(self, task: "asyncio.Task[Any]") -> Iterator[None]:
        """As running, while the loop drives the cell's task."""
        self._task, self._waiter = task, asyncio.current_task()
        self._state = "awaiting"
        try:
            yield
        finally:
            self._state = "running"
            self._task = self._waiter = None

    @contextmanager
    def code(self) -> Iterator[None]:
        """The user's code, and the nets that IPython has for it."""
        outer, self._in_code = self._in_code, True
        try:
            self._strike()
            yield
        finally:
            self._in_code = outer

    def hold(self) -> None:
        """Put interrupts off in the main thread until release()."""
        if threading.get_ident() == self._main:
            self._held += 1

    def release(self) -> None:
        if threading.get_ident() == self._main:
            self._held -= 1
            if self._pending and not self._held and self._may_strike():
                self._strike()

    def _may_strike(self) -> bool:
        return self._state == "running" or (self._state == "awaiting" and self._in_code)

    def _strike(self) -> None:
        if self._pending:
            self._pending = False
            raise KeyboardInterrupt

    def _on_signal(self, _signum: int, _frame: FrameType | None) -> None:
        if self._state == "idle":
            return
        if self._state == "shielded" or self._held:
            self._pending = True
        elif self._state == "running" or self._task is None:
            raise KeyboardInterrupt
        else:
            self._interrupt_task(self._task)

    def _interrupt_task(self, task: "asyncio.Task[Any]") -> None:
        loop = task.get_loop()
        current = asyncio.current_task(loop)
        if (current is task and self._in_code) or (task.done() and current is self._waiter):
            raise KeyboardInterrupt
        if current is task or task.done():
            self._pending = True
        else:
            self.cancelled = True
            loop.call_soon_threadsafe(task.cancel)

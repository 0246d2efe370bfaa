# SPDX-License-Identifier: MIT
"""How long one save may take, and the thread that ends one which hangs.

Code of ours asks on the way (check) and raises Preempted when it is over.  Code of the user's
objects, such as a __reduce__ that sleeps, does not ask; after a while without a sign of life a
signal makes the main thread raise Hung there.  The signal is SIGURG, which does nothing to a
process that does not expect it.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

from .orders import Orders
from .records import Preempted

LOOK_S = 0.001  # between two looks at the pipe
HUNG_S = 1.0  # without a sign of life while somebody waits
HUNG_IDLE_S = 10.0  # while nobody does
TICK_S = 0.25
LINGER_S = 2.0

Result = TypeVar("Result")


class OverBudget(Preempted):
    """It took too long, or became too large, for this attempt."""


class GivenUp(Preempted):
    """The text says why: it is for the user."""


class Hung(Preempted):
    """The object being saved did not come back."""


class Patience:
    """Of one attempt."""

    def __init__(
        self,
        orders: Orders | None,
        *,
        seconds: float,
        busy_seconds: float = 0.0,
        size: int = 0,
        heeds: bool = False,
        waited_for: bool = False,
    ) -> None:
        self.began = self.seen = time.monotonic()
        self.until = self.began + seconds
        self._busy_until = time.thread_time() + busy_seconds if busy_seconds else 0.0
        self.ours = False  # what may take long now is no fault of the value
        self.over = False  # nothing may go on with it, in whatever thread
        self.size = size  # bytes it may take; 0: any
        self._orders = orders
        self._heeds = heeds  # gives way to a request
        self._waited_for = waited_for  # a reply waits for it
        self._next_look = 0.0

    @contextmanager
    def own_work(self) -> Iterator[None]:
        """A slow disk inside is waited for."""
        self.ours = True
        try:
            yield
        finally:
            self.seen = time.monotonic()
            self.ours = False

    def check(self) -> None:
        self.seen = now = time.monotonic()
        if self.over or now > self.until:
            raise OverBudget
        if self._busy_until and time.thread_time() > self._busy_until:
            raise OverBudget
        if self._heeds and self._orders is not None and now > self._next_look:
            self._next_look = now + LOOK_S
            if self._orders.waiting():
                raise Preempted

    def hangs(self) -> bool:
        """Any thread may ask."""
        silent = time.monotonic() - self.seen
        if silent < HUNG_S or self.ours:
            return False
        waiting = self._orders is not None and self._orders.waiting()
        return silent > HUNG_IDLE_S or self._waited_for or waiting


class Minder:
    """The thread that notices.  It sleeps unless a save was under way in the last seconds."""

    def __init__(self) -> None:
        self._patience: Patience | None = None
        self._last = 0.0
        self._awake = threading.Event()
        self._kicked = False
        self._main = threading.get_ident()
        self._pid = os.getpid()
        signal.signal(signal.SIGURG, self._on_signal)
        threading.Thread(target=self._mind, name="SnapshotMinder", daemon=True).start()

    def guard(self, patience: Patience, work: Callable[[], Result]) -> Result:
        """work() in the main thread; Hung strikes there only in it, never outside."""
        self._last = time.monotonic()
        if not self._awake.is_set():
            self._awake.set()
        try:
            self._patience = patience
            return work()
        finally:
            # Nothing is called before this line, so no signal handler runs before it.
            self._patience = None
            patience.over = True

    def _mind(self) -> None:
        while self._awake.wait():
            while self._needed():
                time.sleep(TICK_S)
                patience = self._patience
                if patience is not None and patience.hangs():
                    self._kicked = True
                    signal.pthread_kill(self._main, signal.SIGURG)
            self._awake.clear()
            if self._needed():  # guard() came in between
                self._awake.set()

    def _needed(self) -> bool:
        return self._patience is not None or time.monotonic() < self._last + LINGER_S

    def _on_signal(self, _signum: int, _frame: FrameType | None) -> None:
        kicked, self._kicked = self._kicked, False
        if kicked and self._patience is not None and os.getpid() == self._pid:
            raise Hung

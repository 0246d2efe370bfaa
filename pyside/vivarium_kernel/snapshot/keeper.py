# SPDX-License-Identifier: MIT
"""When the namespace is saved.

After each cell: before its reply if that is quick, as for most namespaces it is; else on the
main thread once the kernel is idle, giving way to requests.  A save that had to give way three
times, or that is five seconds late, is finished before the next request is read.
"""

import os
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Protocol

from .. import fleeting
from ..cells import Cells
from ..connection import Reports, SnapshotLaunch
from .chunks import Spool
from .likeness import OPCODES_MAX
from .manifest import Cell, LeftOut
from .orders import Orders
from .patience import GivenUp, Hung, Minder, OverBudget, Patience
from .records import Lost, Preempted
from .tombstone import Tombstone
from .writer import Writer

QUICK_BUSY_S = 0.005  # of the processor, for a save before the reply
FIRST_BUSY_S = 0.02  # for the first one of a process, which finds every cache empty
QUICK_S = 0.05  # on a busy machine
QUICK_BYTES = 1 << 20  # beside the inputs of before
QUICK_OPCODES = 1_000
SLOW_MAX = 2  # saves in a row that were not quick, before none is tried before the reply
IDLE_S = 0.02  # after the last reply
AGAIN_S = 1.0  # after a `yield` that no request followed
GIVES_WAY = 3  # times
LATE_S = 5.0  # since the cell that is not saved
IDLE_MAX_S = 300.0  # for one attempt that nobody waits for
FORCED_MAX_S = 20.0  # for one that a request waits for: less than the daemon waits
LAST_S = 1.5  # for the last one, when the kernel ends
HUNG_MAX = 3  # names that are given up in one cell's save
LOST_MAX = 50  # rows in a reply


class Loop(Protocol):
    """What is needed of tornado's."""

    def call_later(self, delay: float, callback: Callable[[], None]) -> object: ...
    def remove_timeout(self, timeout: object) -> None: ...


class Keeper:
    """All methods belong to the main thread."""

    def __init__(self, launch: SnapshotLaunch, shell: Any, cells: Cells, reports: Reports) -> None:
        self.loop: Loop | None = None  # set before the first message
        self._shell = shell
        self._reports = reports
        self._orders = Orders(launch.orders_fd)
        self._minder = Minder()
        self._always = launch.mode == "always"
        spool = Spool(launch.spool, self._always)
        self.writer = Writer(shell, cells, spool, launch.namespace_max, launch.generation)
        self._cell = Cell()
        self._pending = False  # a cell ran that no generation has
        self._pending_since = 0.0
        self._gave_way = 0
        self._slow = 0  # how many saves in a row were not quick
        self._timer: object = None
        self._error = ""  # why the newest state is not saved
        self._refused = ""  # told once
        self._main_pid = os.getpid()

    # From the kernel.

    def request_begins(self) -> None:
        if not self._is_in_child():
            self._orders.request_came()
            self._stop_timer()

    def request_ends(self) -> None:
        if self._pending and not self._is_in_child():
            self._set_timer(0 if self._must() else IDLE_S, self._when_idle)

    def after_cell(self, cell: Cell) -> dict[str, Any]:
        """Save, if it is quick.  Returns what the reply says of it."""
        if self._is_in_child():
            return {}
        self._take_verdicts()
        self._cell = cell
        if not self._pending:
            self._pending, self._pending_since, self._gave_way = True, time.monotonic(), 0
        if self._always:
            self._save_before_reply()
        elif self._slow < SLOW_MAX:
            self._attempt(self._quick_patience(), QUICK_OPCODES)
        return self._report()

    def last_save(self) -> None:
        """The kernel ends."""
        self._stop_timer()
        if self._pending and not self._is_in_child():
            self._attempt(self._patience(LAST_S, waited_for=True))

    # When.

    def _save_before_reply(self) -> None:
        for _ in range(HUNG_MAX):
            self._attempt(self._patience(FORCED_MAX_S, waited_for=True))
            if not self._pending:
                return

    def _when_idle(self) -> None:
        self._timer = None
        if not self._pending or self._is_in_child():
            return
        self._take_verdicts()
        forced = self._must()
        seconds = FORCED_MAX_S if forced else IDLE_MAX_S
        self._attempt(self._patience(seconds, heeds=not forced))
        if self._pending:
            self._set_timer(AGAIN_S, self._when_nobody_came)

    def _when_nobody_came(self) -> None:
        self._orders.request_came()
        self._when_idle()

    def _must(self) -> bool:
        late = time.monotonic() - self._pending_since > LATE_S
        return late or self._gave_way >= GIVES_WAY

    def _set_timer(self, seconds: float, callback: Callable[[], None]) -> None:
        self._stop_timer()
        if self.loop is not None:
            self._timer = self.loop.call_later(seconds, callback)

    def _stop_timer(self) -> None:
        if self._timer is not None and self.loop is not None:
            self.loop.remove_timeout(self._timer)
        self._timer = None

    def _quick_patience(self) -> Patience:
        busy = QUICK_BUSY_S if self.writer.saved.generation else FIRST_BUSY_S
        size = self._quick_bytes()
        return self._patience(QUICK_S, busy_seconds=busy, size=size, waited_for=True)

    def _quick_bytes(self) -> int:
        return QUICK_BYTES + self.writer.bytes_of_before()

    def _patience(self, seconds: float, **options: Any) -> Patience:
        return Patience(self._orders, seconds=seconds, **options)

    # One attempt.

    def _attempt(self, patience: Patience, opcodes: int = OPCODES_MAX) -> None:
        """Whatever happens in it stays in it."""
        began = time.thread_time()
        try:
            number = self._minder.guard(
                patience, lambda: self.writer.save(self._cell, patience, opcodes)
            )
        except GivenUp as error:
            self._give_up(str(error))
        except Hung as hung:
            self._blame(hung.name, time.monotonic() - patience.began)
        except OverBudget as over:
            self._over_budget(over.name, patience)
        except (Preempted, KeyboardInterrupt):  # the latter by a SIGINT handler of the user's
            self._gave_way += 1
        except Exception as error:
            self._give_up(f"{type(error).__name__}: {error}")
        else:
            self._pending = False
            self._error = ""
            busy_s = time.thread_time() - began
            quick = busy_s <= QUICK_BUSY_S and self.writer.saved.bytes <= self._quick_bytes()
            self._slow = 0 if quick else self._slow + 1
            self._reports.saved(number)

    def _over_budget(self, name: str, patience: Patience) -> None:
        if patience.size:  # too large, or this once the machine was busy
            self._slow += 1
        else:
            self._blame(name, time.monotonic() - patience.began)

    def _blame(self, name: str, seconds: float) -> None:
        value = self._shell.user_ns.get(name)
        why = f"took longer than {seconds:.0f} s to save"
        if name in self._shell.user_ns:
            self.writer.omissions.keep_back(name, value, why)
        else:
            self._give_up(f"the session {why}")

    def _give_up(self, why: str) -> None:
        """Until the next cell has run."""
        self._pending = False
        self._slow = 0
        self._error = why
        self.writer.chunks.drop_loose()

    def _take_verdicts(self) -> None:
        writer = self.writer
        for verdict in self._orders.verdicts():
            if writer.versions.decide(verdict):
                writer.chunks.settle(writer.versions.newest.chunks)
                writer.saved.generation = writer.versions.newest.number
            if verdict.refused:
                self._refused = f"generation {verdict.generation} was refused: {verdict.refused}"

    def _is_in_child(self) -> bool:
        return os.getpid() != self._main_pid

    # The reply.

    def _report(self) -> dict[str, Any]:
        saved = self.writer.saved
        over = [left for left in saved.left_out if left.bytes and not left.carried]
        lost: list[Lost | LeftOut] = [*saved.lost, *(r for r in saved.left_out if r not in over)]
        namespace = self._shell.user_ns  # what is a placeholder already cannot be lost again
        lost = [row for row in lost if type(namespace.get(row.name)) is not Tombstone]
        rows = [*lost_rows(lost), *fleeting_rows()]
        report: dict[str, Any] = {
            "generation": saved.generation,
            "saved": not self._pending and not self._error,
            "bytes": saved.bytes,
            "lost": rows[:LOST_MAX],
            "more_lost": len(rows[LOST_MAX:]),
            "over": [{"name": left.name, "bytes": left.bytes} for left in over],
        }
        if self._error or self._refused:
            report["error"] = self._error or self._refused
            self._refused = ""
        return report


def lost_rows(lost: list[Lost | LeftOut]) -> list[dict[str, str]]:
    """A hundred threads in one list are one row, or they would hide every other name."""
    counts = Counter((row.name, row.what, row.why) for row in lost)
    return [
        {"name": name, "what": what if count == 1 else f"{count} of {what}", "why": why}
        for (name, what, why), count in counts.items()
    ]


def fleeting_rows() -> list[dict[str, str]]:
    files = fleeting.files()
    why = "files there go with the kernel; those of the workspace stay"
    return [{"name": fleeting.DIRECTORY, "what": ", ".join(files), "why": why}] if files else []

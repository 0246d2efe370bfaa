# SPDX-License-Identifier: MIT
"""Snapshots as the kernel sees them: restore at start, save after cells, tell in replies."""

import threading
from collections.abc import Mapping
from typing import Any

from ..cells import Cells
from ..connection import Reports, SnapshotLaunch
from . import process
from .comeback import Check, Comeback, Restorer
from .keeper import Keeper, Loop
from .manifest import Cell


class Snapshots:
    """All methods belong to the main thread."""

    def __init__(self, launch: SnapshotLaunch, shell: Any, cells: Cells, reports: Reports) -> None:
        self._launch = launch
        self._keeper = Keeper(launch, shell, cells, reports)
        self._restorer = Restorer(launch, shell, cells, reports, self._keeper.writer)
        process.begin()
        self._comeback: Comeback | None = None  # not told yet
        self._check: Check | None = None

    def start(self, loop: Loop) -> threading.Thread | None:
        """Restore what is to be restored.  Returns the thread that goes on checking it."""
        self._keeper.loop = loop
        if self._launch.restore is None:
            return None
        self._comeback, self._check = self._restorer.run(self._launch.restore)
        return None if self._check is None else self._check.thread

    def request_begins(self) -> None:
        self._keeper.request_begins()

    def request_ends(self) -> None:
        self._keeper.request_ends()

    def after_cell(self, code: str, reply: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        """Rows for the reply's metadata."""
        cell = Cell(
            number=reply.get("execution_count", 0),
            source=code,
            outcome="ok" if reply["status"] == "ok" else "error",
            duration_ms=int(seconds * 1000),
        )
        report = {"snapshot": self._keeper.after_cell(cell)}
        if self._comeback is not None:
            report["restored"] = self._comeback.report()
            self._comeback = None
        damaged = self._check.take() if self._check is not None else []
        if damaged:
            report["snapshot"]["damaged"] = damaged
        return report

    def last_save(self) -> None:
        self._keeper.last_save()

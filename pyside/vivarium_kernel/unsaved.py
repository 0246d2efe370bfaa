# SPDX-License-Identifier: MIT
"""In the place of snapshots where the interpreter lacks what they need: says so."""

import threading
from collections.abc import Mapping
from typing import Any

from .connection import Reports, SnapshotLaunch


class Unsaved:
    def __init__(self, launch: SnapshotLaunch, reports: Reports, why: ImportError) -> None:
        self._restore = launch.restore
        self._reports = reports
        self._why = f"nothing is saved: {why}"

    def start(self, _loop: object) -> threading.Thread | None:
        if self._restore is not None:
            self._reports.restoring()
            self._reports.restored()
        return None

    def request_begins(self) -> None:
        pass

    def request_ends(self) -> None:
        pass

    def after_cell(self, _code: str, _reply: Mapping[str, Any], _seconds: float) -> dict[str, Any]:
        saved = {"generation": 0, "saved": False, "bytes": 0, "lost": [], "over": []}
        return {"snapshot": saved | {"error": self._why}}

    def last_save(self) -> None:
        pass

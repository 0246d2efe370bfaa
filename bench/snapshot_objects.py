# SPDX-License-Identifier: MIT
"""Many small objects: how long a save takes, and how soon it gives way to a request."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from harness import wait_until
from kernel_process import KernelProcess, Result
from peers import PYTHON
from snapshot_room import END_CODE, LIBRARIES, QUICK, begin_code, processor_s
from snapshot_store import Store
from table import Section

COUNT = 20_000 if QUICK else 200_000
SAVES, PROBES, FORCED, LIBRARY_CELLS = (3, 8, 2, 3) if QUICK else (10, 60, 5, 5)
LIMIT_S = 60
IDLE_S = 0.02  # after a reply, before a save begins
GIVES_WAY = 3  # times
MAKE = """
class Thing:
    def __init__(self, number): self.number, self.name = number, str(number)
things = [Thing(i) for i in range(%d)]
"""
CHANGE = "things[0].number += 1"


class Objects:
    """A kernel with the objects, spoken to as the daemon does; saves unless store is None."""

    def __init__(self, place: Path, store: Store | None) -> None:
        place.mkdir()
        self.store = store
        launch = store.launch() if store else None
        self.kernel = KernelProcess(PYTHON, place, snapshot=launch)
        self.run(MAKE % COUNT)
        self.settle()

    def run(self, code: str) -> float:
        """Seconds until reply and idle are there."""
        return self._note(self.kernel.run(code, LIMIT_S))

    def _note(self, result: Result) -> float:
        assert result.status == "ok", result
        self.cell = result.reply["content"]["execution_count"]
        return result.seconds

    def settle(self) -> None:
        """Until the newest cell's state is kept."""
        if self.store is not None:
            wait_until(self._is_kept, LIMIT_S, f"cell {self.cell} is saved")

    def _is_kept(self) -> bool:
        assert self.store
        for number in self.store.adopt():
            self.kernel.order(f"kept {number}")
        return self.store.kept > 0 and self.store.manifest()["cell"] == self.cell

    def _saved(self) -> str:
        assert self.store
        return f"saved {self.store.kept + 1}"

    def save(self) -> tuple[float, float]:
        """Seconds from a reply to the report that its state is saved; of the processor too."""
        assert self.store
        self.run(CHANGE)
        pid = self.kernel.process.pid
        start, before = time.perf_counter(), processor_s(pid)
        self.kernel.wait_report(self._saved(), LIMIT_S)
        took, used = time.perf_counter() - start, processor_s(pid) - before
        self.settle()
        return took, used

    def begins(self) -> float:
        """Seconds from the words of a request to come until its code begins."""
        start = time.perf_counter()
        if self.store:
            self.kernel.order("yield")
        request = self.kernel.send_cell("pass")
        self.kernel.wait_report(f"run {request}", LIMIT_S)
        took = time.perf_counter() - start
        self._note(self.kernel.finish(request, LIMIT_S))
        return took

    def probe(self, delay_s: float) -> tuple[float, bool]:
        """A request so long after the change; also: it came before the save had ended."""
        self.run(CHANGE)
        time.sleep(delay_s)
        took = self.begins()
        if self.store is None:
            return took, False
        lines = self.kernel.reports.decode().split("\n")
        last_run = max(i for i, line in enumerate(lines) if line.startswith("run "))
        interrupted = self._saved() not in lines[:last_run]
        self.settle()
        return took, interrupted

    def forced(self) -> float:
        """The request that comes when the save has given way as often as it does."""
        self.run(CHANGE)
        for _ in range(GIVES_WAY):
            time.sleep(2 * IDLE_S)
            self.begins()
        took = self.begins()
        self.settle()
        return took


def measure(place: Path, shelf: Path) -> Section:
    store = Store(place / "objects-store", PYTHON)
    ours, plain = Objects(place / "objects", store), Objects(place / "objects-off", None)
    try:
        saves = [ours.save() for _ in range(SAVES)]
        longest_save = max(took for took, _ in saves)
        begins, undisturbed = [], []
        for i in range(PROBES):
            delay_s = IDLE_S + longest_save * i / PROBES
            begins.append(ours.probe(delay_s))
            undisturbed.append(plain.probe(IDLE_S)[0])
        forced = [ours.forced() for _ in range(FORCED)]
        libraries = {name: with_library(plain, shelf, name, place) for name in LIBRARIES}
    finally:
        ours.kernel.close()
        plain.kernel.close()
    meanwhile = [took for took, interrupted in begins if interrupted]
    assert meanwhile, "no request came during a save"
    section = Section(f"Saved states: {COUNT:,} small objects", ["", "median", "longest"])
    rows = {
        "from the reply until the state is saved, nothing else to do": [s for s, _ in saves],
        "(of that, processor time of the kernel)": [used for _, used in saves],
        "a request that comes during the save begins after": meanwhile,
        f"one that comes when the save has given way {GIVES_WAY} times": forced,
        "one to a kernel that saves nothing": undisturbed,
    }
    for name, found in libraries.items():
        rows[f"`{name}` after each cell: until the reply to `pass`"] = found
    for words, found in rows.items():
        section.row(words, ms(statistics.median(found)), ms(max(found)))
    section.notes.append(
        f"A list of {COUNT:,} instances with an int and a str, one of them changed before each"
        f" save; {SAVES} saves; {len(meanwhile)} of {PROBES} requests, at moments spread over a save,"
        " came during one. A request begins when the kernel says so before the first line of its"
        " code. Straight over ZeroMQ."
    )
    saved = statistics.median(took for took, _ in saves)
    section.goal("saved within 0.6 s", saved <= 0.6)
    section.goal("gives way within 15 ms, at the longest", max(meanwhile) <= 0.015)
    return section


def with_library(plain: Objects, shelf: Path, library: str, place: Path) -> list[float]:
    plain.run(begin_code(shelf, library, place / f"objects-{library}"))
    times = [plain.run("pass") for _ in range(LIBRARY_CELLS)]
    plain.run(END_CODE)
    return times


def ms(seconds: float) -> str:
    return f"{seconds * 1e3:.1f} ms"

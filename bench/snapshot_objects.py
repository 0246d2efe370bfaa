# SPDX-License-Identifier: MIT
"""Many small objects: how long a save takes, and how soon it gives way to a request."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
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
DUMPS = """
import pickle, time
began = time.perf_counter()
size = len(pickle.dumps(things, protocol=5))
took = time.perf_counter() - began
took
"""


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

    def begins(self) -> tuple[float, float]:
        """Seconds from the words of a request to come until its code begins; of the processor."""
        before, start = processor_s(self.kernel.process.pid), time.perf_counter()
        if self.store:
            self.kernel.order("yield")
        request = self.kernel.send_cell("pass")
        self.kernel.wait_report(f"run {request}", LIMIT_S)
        took = time.perf_counter() - start
        used = processor_s(self.kernel.process.pid) - before
        self._note(self.kernel.finish(request, LIMIT_S))
        return took, used

    def probe(self, delay_s: float) -> tuple[float, float] | None:
        """A request so long after the change; None: the save has ended before."""
        self.run(CHANGE)
        time.sleep(delay_s)
        saved = self.store is not None and self.store.complete()
        found = self.begins()
        self.settle()
        return None if saved else found

    def dumps(self) -> list[float]:
        return [float(self.kernel.run(DUMPS, LIMIT_S).text) for _ in range(LIBRARY_CELLS)]

    def forced(self) -> float:
        """The request that comes when the save has given way as often as it does."""
        self.run(CHANGE)
        for _ in range(GIVES_WAY):
            time.sleep(2 * IDLE_S)
            self.begins()
        took, _ = self.begins()
        self.settle()
        return took


def measure(place: Path, shelf: Path) -> Iterator[Section]:
    store = Store(place / "objects-store", PYTHON)
    ours, plain = Objects(place / "objects", store), Objects(place / "objects-off", None)
    try:
        saves = [ours.save() for _ in range(SAVES)]
        yield tell_saves(saves, plain, shelf, place)
        yield measure_requests(ours, plain, max(took for took, _ in saves))
    finally:
        ours.kernel.close()
        plain.kernel.close()


def tell_saves(
    saves: Sequence[tuple[float, float]], plain: Objects, shelf: Path, place: Path
) -> Section:
    section = Section(
        f"Saved states: {COUNT:,} small objects", ["", "median", "longest", "against `pickle`"]
    )
    times = [took for took, _ in saves]
    rows = {
        "`pickle.dumps` of the list": plain.dumps(),
        "vivarium: from a reply until its state is saved": times,
        "(of that, processor time of the kernel)": [used for _, used in saves],
    }
    for name in LIBRARIES:
        words = f"`{name}` after each cell: until the reply to `pass`"
        rows[words] = with_library(plain, shelf, name, place)
    add_rows(section, rows)
    section.notes.append(
        "A list of instances with an int and a str; one of them is changed before each save."
        f" {SAVES} saves while no request comes, {LIBRARY_CELLS} of each other."
    )
    section.goal("saved within 0.6 s", statistics.median(times) <= 0.6)
    return section


def measure_requests(ours: Objects, plain: Objects, save_s: float) -> Section:
    begins, undisturbed = [], []
    for i in range(PROBES):
        begins.append(ours.probe(IDLE_S + save_s * i / PROBES))
        undisturbed.append(plain.probe(IDLE_S))
    forced = [ours.forced() for _ in range(FORCED)]
    meanwhile = [found for found in begins if found]
    assert meanwhile, "no request came during a save"
    section = Section(
        f"Saved states: how soon a request begins while {COUNT:,} objects are saved",
        ["", "median", "longest", "against the first"],
    )
    add_rows(
        section,
        {
            "in a kernel that saves nothing": [found[0] for found in undisturbed if found],
            "vivarium: it comes during a save": [took for took, _ in meanwhile],
            "(of that, processor time of the kernel)": [used for _, used in meanwhile],
            f"vivarium: the save has given way {GIVES_WAY} times before": forced,
        },
    )
    section.notes.append(
        f"{len(meanwhile)} of {PROBES} requests, at moments spread over the longest save, came"
        " during one; a request begins when the kernel says so, before the first line of its code."
        " Straight over ZeroMQ, with the daemon's notice before it."
    )
    longest = max(took for took, _ in meanwhile)
    section.goal("gives way within 15 ms, at the longest", longest <= 0.015)
    return section


def with_library(plain: Objects, shelf: Path, library: str, place: Path) -> list[float]:
    plain.run(begin_code(shelf, library, place / f"objects-{library}"))
    times = [plain.run("pass") for _ in range(LIBRARY_CELLS)]
    plain.run(END_CODE)
    return times


def add_rows(section: Section, rows: Mapping[str, Sequence[float]]) -> None:
    """Seconds; each against the first row."""
    base = statistics.median(next(iter(rows.values())))
    for words, found in rows.items():
        middle = statistics.median(found)
        section.row(
            words, f"{middle * 1e3:.1f} ms", f"{max(found) * 1e3:.1f} ms", f"{middle / base:.2f}"
        )

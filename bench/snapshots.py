# SPDX-License-Identifier: MIT
"""Saved states: what they add to a cell, and what they cost while the kernel is idle."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import snapshot_disk
import snapshot_objects
import snapshot_restore
from harness import STORE, Daemon, children_of, read_proc
from peers import percentile
from snapshot_room import (
    BIG_MB,
    END_CODE,
    GB,
    LIBRARIES,
    MB,
    QUICK,
    SMALL_MB,
    Room,
    begin_code,
    data_size,
    make_shelf,
    processor_s,
    room,
)
from table import Section

TURNS = 2
# Longer than 5 s: a state that is that late is saved while the next request waits.
PACES = {"back to back": (0.0, 6.0), "0.4 s between": (0.4, 2.0 if QUICK else 12.0)}
WARM_UP = 20
LEAST = 3  # cells, of those that take seconds
FEW = 20  # too few for a 95th percentile
WORK_CELLS = 5 if QUICK else 20
OFF, OURS = "`VIVARIUM_DURABILITY=off`", "vivarium"
WORDS = {
    OFF: "nothing is saved (`VIVARIUM_DURABILITY=off`)",
    OURS: "vivarium",
    "cloudpickle": "`cloudpickle` of all names after each cell",
    "dill": "`dill` of each name after each cell",
}
HASH = """
import time, xxhash
parts = [np.ascontiguousarray(frame.to_numpy().T), floats, octets]
began = time.thread_time()
for part in parts: xxhash.xxh3_128_digest(part)
hashing = time.thread_time() - began
del parts
hashing
"""


def measure(program: Path, place: Path) -> Iterator[Section]:
    """Each when it is asked for: the caller looks who else uses the machine in between."""
    shelf = make_shelf(place)
    added = Added()
    for size_mb in (SMALL_MB, BIG_MB):
        with (
            room(place / f"saved-{size_mb}", program, size_mb) as ours,
            room(place / f"off-{size_mb}", program, size_mb, VIVARIUM_DURABILITY="off") as off,
        ):
            costs = added.measure(ours, off, size_mb, shelf, place / f"others-{size_mb}")
            if size_mb == BIG_MB:
                added.judge()
                yield added.section
                yield measure_work(ours, off, costs)
                pickled = snapshot_restore.dump(place)
                yield snapshot_restore.measure(ours, off, place, pickled)
    yield from snapshot_objects.measure(place, shelf)
    yield snapshot_disk.measure(program, place, pickled.stat().st_size)


def run_for(where: Room, seconds: float, pause: float, least: int = 1) -> list[float]:
    times: list[float] = []
    end = time.monotonic() + seconds
    while len(times) < least or time.monotonic() < end:
        times.append(where.once())
        time.sleep(pause)
    return times


class Added:
    """What a cell `pass` takes more when its namespace is saved."""

    def __init__(self) -> None:
        self.section = Section(
            "Saved states: what they add to a cell `pass`",
            ["", "cells", "median", "p95", "longest", "added", "added at p95", "times"],
        )
        self.section.notes.append(
            "Through MCP; half of the data is a DataFrame of 8 float columns, a quarter a float"
            f" array, a quarter bytes. {TURNS} turns of the first two, then one of each library in"
            " the kernel of the first, which writes files and does not sync them. Back to back goes"
            f" on for {PACES['back to back'][1]:.0f} s at a time, so that a save which may wait no"
            " longer, after 5 s, is among the cells."
        )
        self.more: dict[str, tuple[float, float]] = {}  # pace: at the median and at p95

    def measure(
        self, ours: Room, off: Room, size_mb: int, shelf: Path, place: Path
    ) -> dict[str, float]:
        """Returns the processor seconds that a library used for a cell."""
        costs: dict[str, float] = {}
        times: dict[str, dict[str, list[float]]] = {pace: {} for pace in PACES}
        for _ in range(TURNS):
            for pace, (pause, seconds) in PACES.items():
                for way, where in ((OFF, off), (OURS, ours)):
                    run_for(where, 0, 0, WARM_UP)
                    where.settle()
                    times[pace].setdefault(way, []).extend(run_for(where, seconds, pause))
                    where.settle()  # nothing goes on in the other's turn
        for library in LIBRARIES:
            off.run(begin_code(shelf, library, place / library))
            pid, cells = off.daemon.kernel_pid(), 0
            before = processor_s(pid)
            for pace, (pause, seconds) in PACES.items():
                times[pace][library] = run_for(off, seconds, pause, LEAST)
                cells += len(times[pace][library])
            costs[library] = (processor_s(pid) - before) / cells
            off.run(END_CODE)
        self._tell(times, data_size(size_mb))
        return costs

    def _tell(self, times: dict[str, dict[str, list[float]]], size: str) -> None:
        for pace, ways in times.items():
            base = ways[OFF]
            middle, tail = statistics.median(base), percentile(base, 0.95)
            for way, found in ways.items():
                own, own_tail = statistics.median(found), percentile(found, 0.95)
                few = len(found) < FEW
                plain = way == OFF
                self.section.row(
                    f"{size}, {pace}: {WORDS[way]}",
                    f"{len(found)}",
                    f"{own:.2f} ms",
                    "-" if few else f"{own_tail:.2f} ms",
                    f"{max(found):.1f} ms",
                    "" if plain else f"{own - middle:+.2f} ms",
                    "" if plain else "-" if few else f"{own_tail - tail:+.2f} ms",
                    f"{own / middle:.2f}",
                )
                if way == OURS:
                    self.more[pace] = own - middle, own_tail - tail

    def judge(self) -> None:
        """By the last size that was measured."""
        for pace, (middle, tail) in self.more.items():
            words = f"{data_size(BIG_MB)}, {pace}: at most 5 ms more at the median, 30 ms at p95"
            self.section.goal(words, middle <= 5 and tail <= 30)


def measure_work(ours: Room, off: Room, costs: dict[str, float]) -> Section:
    """costs: of the libraries' cells, measured before."""
    size_gb = BIG_MB * MB / GB
    section = Section(
        "Saved states: work for data that has not changed",
        ["", "processor time a cell", "of that, for saving", "a gigabyte", "times the hash"],
    )
    plain = per_cell(off, lambda: processor_s(off.daemon.kernel_pid()))
    kernel = per_cell(ours, lambda: processor_s(ours.daemon.kernel_pid()))
    store = per_cell(ours, lambda: store_s(ours.daemon))
    off.run(HASH)
    hashes = [float(off.run(HASH)["result"]) for _ in range(5)]
    hashing = statistics.median(hashes)
    section.row(
        "one xxh3-128 of the same bytes", "", seconds(hashing), seconds(hashing / size_gb), "1.00"
    )
    section.row(WORDS[OFF], seconds(plain), "", "", "")
    rows = {
        "vivarium: the kernel": (kernel, kernel - plain),
        "vivarium: the helper that keeps the states": (store, store),
        WORDS["cloudpickle"]: (costs["cloudpickle"], costs["cloudpickle"] - plain),
        WORDS["dill"]: (costs["dill"], costs["dill"] - plain),
    }
    for words, (whole, more) in rows.items():
        section.row(
            words, seconds(whole), seconds(more), seconds(more / size_gb), f"{more / hashing:.2f}"
        )
    section.notes.append(
        f"{data_size(BIG_MB)}; the mean of {WORK_CELLS} cells `pass`, each saved before the next;"
        " the libraries' as in the table above. All threads count."
    )
    each = (kernel - plain) / size_gb
    section.goal("at most 0.12 s of the kernel's processor time a gigabyte", each <= 0.12)
    return section


def per_cell(where: Room, used: Callable[[], float]) -> float:
    where.once()
    where.settle()
    before = used()
    for _ in range(WORK_CELLS):
        where.once()
        where.settle()
    return (used() - before) / WORK_CELLS


def store_s(daemon: Daemon) -> float:
    pids = children_of(daemon.pid)
    return sum(processor_s(pid) for pid in pids if read_proc(pid, "comm") == STORE)


def seconds(value: float) -> str:
    return f"{value:.4f} s"

# SPDX-License-Identifier: MIT
"""A kernel's data back after its death, against pickle.load of the same data."""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import time
from pathlib import Path

from kernel_process import KernelProcess
from peers import PYTHON, clean_environment
from snapshot_room import BIG_MB, QUICK, Room, data, data_size
from table import Section

ROUNDS = 3 if QUICK else 5
NAMES = ["frame", "floats", "octets", "options"]
DUMP = """
import pickle, sys
names = {name: globals()[name] for name in sys.argv[2:]}
with open(sys.argv[1], 'wb') as file: pickle.dump(names, file, protocol=5)
"""
LOAD = """
import pickle, sys, time
%s
began = time.perf_counter()
with open(sys.argv[1], 'rb') as file: names = pickle.load(file)
print(time.perf_counter() - began)
"""
IMPORTS = "import numpy, pandas"
READ = """
import time
began = time.perf_counter()
total = float(frame.to_numpy().sum()) + float(floats.sum()) + int(octets.sum())
took = time.perf_counter() - began
took
"""


def dump(place: Path) -> Path:
    """The big data in one pickle, with the page cache warm."""
    path = place / "data.pickle"
    python(data(BIG_MB) + DUMP, str(path), *NAMES)
    return path


def python(code: str, *arguments: str) -> str:
    done = subprocess.run(
        [PYTHON, "-c", code, *arguments],
        env=clean_environment(),
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


class Restores:
    """One of each, in turn."""

    def __init__(self, ours: Room, off: Room, place: Path, pickled: Path) -> None:
        self.ours, self.off, self.pickled = ours, off, pickled
        self.place = place / "restored"
        self.place.mkdir()
        self.early = place / "early"  # its sitecustomize runs before anything of the kernel's
        self.early.mkdir()
        (self.early / "sitecustomize.py").write_text(IMPORTS)
        self.times: dict[str, list[float]] = {}

    def turn(self) -> None:
        self._add("load", float(python(LOAD % IMPORTS, str(self.pickled))))
        self._add("load and import", float(python(LOAD % "", str(self.pickled))))
        self._restore("restored", "read", {"PYTHONPATH": str(self.early)})
        self._restore("restored and imported", "read again", {})
        for way, where in (("answer", self.ours), ("empty answer", self.off)):
            self._add(way, self._after_kill(where))

    def _add(self, name: str, seconds: float) -> None:
        self.times.setdefault(name, []).append(seconds)

    def _restore(self, name: str, reading: str, environment: dict[str, str]) -> None:
        """What the daemon has kept, into a kernel that says how long it took."""
        depot, spool = self.ours.depot(), self.place / "spool"
        spool.mkdir(exist_ok=True)
        newest = self.ours.head()["head"]
        launch = {
            "store": str(depot),
            "spool": str(spool),
            "mode": "idle",
            "generation": newest,
            "namespace_max": 0,
            "restore": {"manifest": str(depot / f"generations/{newest}.json"), "skip": []},
        }
        kernel = KernelProcess(PYTHON, self.place, environment=environment, snapshot=launch)
        try:
            report = kernel.run("pass", 60).report["restored"]
            assert (report["failed"], report.get("error")) == ([], None), report
            self._add(name, report["ms"] / 1e3)
            self._add(reading, float(kernel.run(READ, 60).text))
        finally:
            kernel.close()

    @staticmethod
    def _after_kill(where: Room) -> float:
        """kill -9, and at once a call."""
        where.once()  # there is a kernel
        where.settle()
        pid = where.daemon.kernel_pid()
        start = time.perf_counter()
        os.kill(pid, signal.SIGKILL)
        where.once()
        took = time.perf_counter() - start
        assert b"killed by signal 9" in where.body, where.body
        assert (b"restored" in where.body) == where.saves(), where.body
        where.settle()
        return took


def measure(ours: Room, off: Room, place: Path, pickled: Path) -> Section:
    restores = Restores(ours, off, place, pickled)
    for _ in range(ROUNDS):
        restores.turn()
    section = Section(
        f"Saved states: {data_size(BIG_MB)} back after `kill -9`",
        ["", "median", "lowest", "highest", "against `pickle.load`"],
    )
    words = {
        "load": "`pickle.load` of the same data, numpy and pandas imported before",
        "load and import": "the same, which imports them",
        "restored": "vivarium: from a kernel that is up to its first cell, both imported before",
        "read": "(every byte read for the first time, in that cell)",
        "restored and imported": "the same, which imports them",
        "answer": "vivarium: `kill -9`, the next call, `pass`",
        "empty answer": "the same with `VIVARIUM_DURABILITY=off`: nothing comes back",
    }
    base = statistics.median(restores.times["load"])
    for name, meaning in words.items():
        found = restores.times[name]
        middle = statistics.median(found)
        section.row(
            meaning,
            f"{middle:.3f} s",
            f"{min(found):.3f} s",
            f"{max(found):.3f} s",
            f"{middle / base:.3f}",
        )
    section.notes.append(
        f"{ROUNDS} of each in turn, all files in the page cache. The first figure of vivarium is"
        " the kernel's own (`restored.ms` of its reply)."
    )
    restored = statistics.median(restores.times["restored"])
    section.goal("restored in under 0.2 s, imports aside", restored < 0.2)
    return section

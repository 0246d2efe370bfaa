# SPDX-License-Identifier: MIT
"""A workspace whose kernel holds data: what the measures of saved states share."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness import REPO, Daemon, wait_until
from peers import Connection, daemon

MB, GB = 1 << 20, 1 << 30
QUICK = bool(os.environ.get("BENCH_QUICK"))  # to try the bench itself
SMALL_MB, BIG_MB = (16, 64) if QUICK else (100, 1024)
LIBRARIES = ("cloudpickle", "dill")
LIMIT_S = 120
CELL_S = 300  # a library may take that long
# Half of it is a frame, a quarter an array of floats, a quarter one of bytes.
DATA = """
import numpy as np, pandas as pd
rng = np.random.default_rng(1)
frame = pd.DataFrame({name: rng.random(%(size)d // 128) for name in 'abcdefgh'})
floats = rng.random(%(size)d // 32)
octets = rng.integers(0, 256, %(size)d // 4, dtype=np.uint8)
options = {'depth': 3, 'names': ['a', 'b']}
def scaled(x): return x * options['depth']
class Model:
    def __init__(self): self.weights = [1.0, 2.0]
model = Model()
"""


def data(size_mb: int) -> str:
    return DATA % {"size": size_mb * MB}


def data_size(size_mb: int) -> str:
    return f"{size_mb // 1024} GB" if size_mb >= 1024 else f"{size_mb} MB"


class Room:
    def __init__(self, running: Daemon) -> None:
        self.daemon = running
        self.connection = Connection(running.port)
        self.connection.initialize()
        self._trivial = self.connection.cell("pass", CELL_S)
        self.body = b""  # of the newest answer

    def once(self) -> float:
        """`pass`; returns the milliseconds."""
        start = time.perf_counter()
        _, self.body = self.connection.exchange(self._trivial)
        took = time.perf_counter() - start
        assert b'"exit_code":0' in self.body, self.body
        return took * 1e3

    def run(self, code: str) -> dict[str, Any]:
        """A cell, which must succeed; returns what the answer says of it."""
        _, self.body = self.connection.exchange(self.connection.cell(code, CELL_S))
        return self.answer()

    def answer(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)["result"]["structuredContent"]
        assert found["exit_code"] == 0, found
        return found

    def saves(self) -> bool:
        return self.daemon.env.get("VIVARIUM_DURABILITY") != "off"

    def settle(self) -> None:
        """Until the state after the newest cell is on disk."""
        if self.saves():
            cell = self.answer()["execution_count"]
            wait_until(lambda: self.daemon.saved_upto() == cell, LIMIT_S, f"cell {cell} is saved")

    def depot(self) -> Path:
        return self.daemon.state / "snapshots/default"

    def head(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.depot() / "head").read_text().splitlines()[1])
        return found


@contextlib.contextmanager
def room(home: Path, program: Path, size_mb: int, **settings: str) -> Iterator[Room]:
    # Other libraries are loaded from, and save to, places of their own.
    with daemon(home, program, VIVARIUM_WALLS="off", **settings) as running:
        made = Room(running)
        made.run(data(size_mb))
        made.settle()
        try:
            yield made
        finally:
            made.connection.close()


def processor_s(pid: int) -> float:
    """Processor time of all threads that a process has, to the nanosecond; 0: it is gone."""
    used = 0
    for task in Path(f"/proc/{pid}/task").glob("*"):
        with contextlib.suppress(OSError):  # it has just ended
            used += int((task / "schedstat").read_text().split()[0])
    return used / 1e9


# ---- libraries that save in their own way ----


def missing() -> list[str]:
    return [name for name in LIBRARIES if importlib.util.find_spec(name) is None]


def make_shelf(place: Path) -> Path:
    """A directory for a kernel's sys.path, with these libraries and nothing else."""
    shelf = place / "shelf"
    shelf.mkdir()
    for name in LIBRARIES:
        spec = importlib.util.find_spec(name)
        origin = spec.origin if spec else None
        assert origin, name
        (shelf / name).symlink_to(Path(origin).parent)
    (shelf / "savers.py").symlink_to(REPO / "bench/savers.py")
    return shelf


def begin_code(shelf: Path, kind: str, place: Path) -> str:
    """A cell after which, as after each later one, the namespace is saved; leaves no name."""
    path = f"__import__('sys').path.append({str(shelf)!r})"
    return f"{path}\n__import__('savers').begin({kind!r}, {str(place)!r})"


END_CODE = "__import__('savers').end()"

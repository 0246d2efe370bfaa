# SPDX-License-Identifier: MIT
"""Measures the release build against its peers and writes docs/bench.md.

usage: run.py BUILD-DIRECTORY [cells|results|traffic|memory|starts|walls|snapshots|charts ...]

Each comparison is made within one run, in turn, and is told as a ratio; no test depends
on it.  Naming some measures only those, and prints without writing; so does BENCH_QUICK=1,
which makes the data of saved states small, to try the bench itself.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import cells
import charts
import memory
import results
import snapshot_room
import snapshots
import starts
import traffic
import walls
from harness import REPO
from peers import (
    NODE,
    PEERS_PYTHON,
    PYTHON,
    SDK,
    Server,
    await_quiet,
    busy_elsewhere,
    daemon,
    go_server,
    python_server,
    sdk_server,
)
from table import Section, goals_of

DOCUMENT = REPO / "docs/bench.md"
QUIET_LIMIT_S = float(os.environ.get("BENCH_QUIET_S", "120"))
PACKAGES = ("libwebsockets17", "libzmq5", "libjansson4", "libsodium23", "wrk")


def said(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def machine() -> str:
    """What a reader needs to judge the figures; no dates, no names."""
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    release = re.search(r'PRETTY_NAME="(.*)"', Path("/etc/os-release").read_text())
    cores = len(os.sched_getaffinity(0))
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    packages = said("dpkg-query", "-W", "-f", "${Package} ${Version}, ", *PACKAGES).rstrip(", ")
    python = "import ipykernel, IPython, zmq, platform; print(platform.python_version(), "
    python += "'ipykernel', ipykernel.__version__, 'IPython', IPython.__version__, "
    python += "'pyzmq', zmq.__version__)"
    lines = [
        f"- {cores} cores, {model[1] if model else platform.machine()}, {pages / 2**30:.0f} GiB",
        f"- {release[1] if release else '?'}, Linux {platform.release()}",
        f"- release build: {said('gcc', '--version').splitlines()[0]}; {packages}",
        f"- kernels: Python {said(PYTHON, '-c', python)}",
        f"- Node {said(NODE, '--version')}, @modelcontextprotocol/server {sdk_version()}",
    ]
    return "\n".join(lines) + "\n"


def sdk_version() -> str:
    package = SDK / "package.json"
    return str(json.loads(package.read_text())["version"]) if package.exists() else "(not there)"


def run_cells(program: Path, place: Path) -> Iterator[Section]:
    with (
        daemon(place / "cells", program) as ours,
        daemon(place / "unsaved", program, VIVARIUM_DURABILITY="off") as unsaved,
    ):
        yield cells.measure(ours, unsaved, place / "raw")
    with (
        daemon(place / "young", program) as young,
        daemon(place / "old", program) as old,
    ):
        yield cells.measure_after_many(young, old)


def run_results(program: Path, place: Path) -> list[Section]:
    with (
        daemon(place / "named", program) as ours,
        daemon(place / "answers", program, VIVARIUM_DURABILITY="off") as unsaved,
    ):
        return [results.measure(ours, unsaved, program)]


def run_traffic(program: Path, place: Path) -> Iterator[Section]:
    with (
        daemon(place / "traffic", program) as daemon_of_ours,
        sdk_server("json") as one,
        sdk_server("sse") as two,
        python_server() as three,
        go_server() as four,
    ):
        ours = Server("vivarium", daemon_of_ours.port, daemon_of_ours.pid)
        yield from traffic.measure([ours, one, two, three, four], [ours, three])


def run_memory(program: Path, place: Path) -> Iterator[Section]:
    with daemon(place / "memory", program) as ours, sdk_server("sse") as peer:
        yield memory.measure_idle(ours, peer)
    yield memory.measure_flood(lambda: daemon(place / "flood", program))


def run_starts(program: Path, place: Path) -> list[Section]:
    with daemon(place / "starts", program, VIVARIUM_USER_HEADER="X-User-ID") as ours:
        return [starts.measure(ours)]


def run_walls(program: Path, place: Path) -> Iterator[Section]:
    return walls.measure(daemon, program, place / "walls")


def run_charts(_program: Path, _place: Path) -> list[Section]:
    return [charts.measure(PYTHON)]


MEASURES: dict[str, Callable[[Path, Path], Iterable[Section]]] = {
    "cells": run_cells,
    "results": run_results,
    "traffic": run_traffic,
    "memory": run_memory,
    "starts": run_starts,
    "walls": run_walls,
    "snapshots": snapshots.measure,
    "charts": run_charts,
}


def main(arguments: list[str]) -> int:
    """Measure, print, write."""
    program = Path(arguments[0]).absolute() / "vivarium"
    chosen = arguments[1:] or list(MEASURES)
    if {"traffic", "memory"} & set(chosen) and not (SDK.exists() and PEERS_PYTHON.exists()):
        print("the SDKs' servers are not there: npm's registry or PyPI was out of reach at set-up")
        return 1
    if "snapshots" in chosen and snapshot_room.missing():
        print("not there, see requirements-dev.txt:", *snapshot_room.missing())
        return 1
    head = (
        "# Measured\n\nWritten by `make bench`: each figure stands beside a peer or a limit that "
        "was measured in the same run.\n\n" + machine()
    )
    sections: list[Section] = []
    print(head, flush=True)
    with tempfile.TemporaryDirectory(prefix="vivarium-bench-") as place:
        for name in chosen:
            share = await_quiet(QUIET_LIMIT_S)
            for section in MEASURES[name](program, Path(place)):
                section.notes.append(
                    f"Others used {share:.0%} of the machine just before this was measured."
                )
                sections.append(section)
                print(section.markdown(), flush=True)
                share = busy_elsewhere()
    if not arguments[1:] and not snapshot_room.QUICK:
        tables = [section.markdown() for section in (goals_of(sections), *sections)]
        DOCUMENT.write_text("\n".join([head, *tables]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

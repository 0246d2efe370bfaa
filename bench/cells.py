# SPDX-License-Identifier: MIT
"""A cell through the daemon against the same cell by raw ZeroMQ, and in a kernel that had many."""

from __future__ import annotations

import gc
import statistics
import time
from pathlib import Path
from typing import Any

import zmq
from harness import Daemon
from kernel_process import KernelProcess
from peers import PYTHON, Connection, percentile
from table import Section

WARM_UP, ROUNDS = 100, 1000
MANY, ROUNDS_AFTER = 5000, 500
CODE = "pass"


class RawKernel:
    """The least that a client of a kernel can do: send what was signed before the clock
    started, and look for reply and idle by their bytes.
    """

    def __init__(self, place: Path) -> None:
        self.kernel = KernelProcess(PYTHON, place)
        self.kernel.run("pass")  # its subscription has arrived when this has ended
        self.poller = zmq.Poller()
        self.poller.register(self.kernel.shell, zmq.POLLIN)
        self.poller.register(self.kernel.iopub, zmq.POLLIN)

    def prepare(self) -> tuple[bytes, list[Any]]:
        session = self.kernel.session
        content = {
            "code": CODE,
            "silent": False,
            "store_history": True,
            "user_expressions": {},
            "allow_stdin": False,
            "stop_on_error": False,
        }
        message = session.msg("execute_request", content)
        return message["header"]["msg_id"].encode(), session.serialize(message)

    def run(self, msg_id: bytes, frames: list[Any]) -> None:
        kernel, replied, idle = self.kernel, False, False
        kernel.shell.send_multipart(frames, copy=True)
        while not (replied and idle):
            for socket, _ in self.poller.poll(10_000):
                parts = socket.recv_multipart()
                if msg_id not in parts[-3]:
                    continue
                if socket is kernel.shell:
                    replied = True
                elif b'"idle"' in parts[-1]:
                    idle = True


def measure(daemon: Daemon, unsaved: Daemon, place: Path) -> Section:
    place.mkdir()
    raw = RawKernel(place)
    connections = {"unsaved": Connection(unsaved.port), "vivarium": Connection(daemon.port)}
    for connection in connections.values():
        connection.initialize()
    requests = {name: connection.cell(CODE) for name, connection in connections.items()}
    ping = connection.prepare({"id": 2, "method": "ping"})
    times: dict[str, list[float]] = {"unsaved": [], "raw": [], "vivarium": [], "ping": []}

    def once() -> None:
        for name, request in requests.items():
            start = time.perf_counter()
            _, body = connections[name].exchange(request)
            times[name].append((time.perf_counter() - start) * 1e3)
            assert b'"isError":false' in body, body
        prepared = raw.prepare()
        start = time.perf_counter()
        raw.run(*prepared)
        times["raw"].append((time.perf_counter() - start) * 1e3)
        start = time.perf_counter()
        connection.exchange(ping)
        times["ping"].append((time.perf_counter() - start) * 1e3)

    try:
        gc.disable()
        for i in range(WARM_UP + ROUNDS):
            if i == WARM_UP:
                for list_ in times.values():
                    list_.clear()
            once()
    finally:
        gc.enable()
        for connection in connections.values():
            connection.close()
        raw.kernel.close()
    return tell(times)


def tell(times: dict[str, list[float]]) -> Section:
    section = Section(
        "A cell `pass`: through MCP against raw ZeroMQ",
        ["", "median", "p95"],
    )
    medians = {name: statistics.median(values) for name, values in times.items()}
    tails = {name: percentile(values, 0.95) for name, values in times.items()}
    names = {
        "unsaved": "`run_python` over HTTP, keep-alive, JSON answer, with"
        " `VIVARIUM_DURABILITY=off`",
        "raw": "`execute_request` over ZeroMQ to a kernel started the same way",
        "vivarium": "`run_python` with the state saved before each answer (the default)",
        "ping": "(`ping` over the same HTTP connection)",
    }
    for name, words in names.items():
        section.row(words, f"{medians[name]:.2f} ms", f"{tails[name]:.2f} ms")
    more = medians["unsaved"] - medians["raw"]
    section.row(
        "difference of the first two",
        f"{more:+.2f} ms",
        f"{tails['unsaved'] - tails['raw']:+.2f} ms",
    )
    ratio = medians["unsaved"] / medians["raw"]
    section.row("ratio", f"{ratio:.2f}", f"{tails['unsaved'] / tails['raw']:.2f}")
    section.notes.append(
        f"{ROUNDS} of each in turn after {WARM_UP} to warm up; both namespaces are empty."
        " The raw client counts reply and idle, as the daemon does, and neither client signs or"
        " builds a message while the clock runs. Nothing is saved for the raw client, so the"
        " second figure is compared with the first; the third has the saving in it."
    )
    section.goal("at most 1 ms more at the median", more <= 1)
    return section


def measure_after_many(young: Daemon, old: Daemon) -> Section:
    connections = {"young": Connection(young.port), "old": Connection(old.port)}
    times: dict[str, list[float]] = {name: [] for name in connections}
    for connection in connections.values():
        connection.initialize()
    requests = {name: connection.cell(CODE) for name, connection in connections.items()}
    for _ in range(MANY):
        connections["old"].exchange(requests["old"])
    for _ in range(WARM_UP):
        connections["young"].exchange(requests["young"])
    for _ in range(ROUNDS_AFTER):
        for name, request in requests.items():
            start = time.perf_counter()
            connections[name].exchange(request)
            times[name].append((time.perf_counter() - start) * 1e3)
    for connection in connections.values():
        connection.close()
    section = Section("A cell `pass` in a kernel that had many", ["", "median", "p95"])
    words = {"young": f"after {WARM_UP} cells", "old": f"after {MANY:,} cells"}
    for name, label in words.items():
        median = statistics.median(times[name])
        section.row(label, f"{median:.2f} ms", f"{percentile(times[name], 0.95):.2f} ms")
    ratio = statistics.median(times["old"]) / statistics.median(times["young"])
    section.row("ratio", f"{ratio:.2f}", "")
    section.notes.append(
        f"{ROUNDS_AFTER} of each in turn, in two daemons; each cell's state is saved before its"
        " answer. The inputs of all cells are in it."
    )
    section.goal("at most a tenth more", ratio <= 1.1)
    return section

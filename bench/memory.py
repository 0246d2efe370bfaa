# SPDX-License-Identifier: MIT
"""The daemon's memory: empty, with idle streams, and while a cell prints a lot."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from harness import Daemon
from peers import Connection, Server, memory_kb, private_kb, reset_peak
from table import Section

STREAMS = 200
PRINTED = 50_000_000
CELLS = {
    "50 MB in one print": f"print('x' * {PRINTED})",
    "50 MB in 500,000 lines": f"for i in range({PRINTED // 100}): print('x' * 99)",
}
MB = 1024


def per_stream(pid: int, port: int) -> float:
    """kB of resident memory that an idle GET stream costs, each with a session of its own:
    the SDK's server takes one stream a session.
    """
    connections: list[Connection] = []

    def add() -> None:
        connection = Connection(port)
        connection.initialize()
        connection.stream()
        connections.append(connection)

    add()
    before = memory_kb(pid)
    for _ in range(STREAMS):
        add()
    time.sleep(0.5)
    each = (memory_kb(pid) - before) / STREAMS
    for connection in connections:
        connection.close()
    return each


def measure_idle(daemon: Daemon, peer: Server) -> Section:
    section = Section("Memory without kernels", ["", "vivarium", "SDK server", "ratio"])
    ours, theirs = memory_kb(daemon.pid), memory_kb(peer.pid)
    section.row(
        "resident, just started",
        f"{ours / MB:.1f} MB",
        f"{theirs / MB:.1f} MB",
        f"{ours / theirs:.2f}",
    )
    mine, peers = private_kb(daemon.pid), private_kb(peer.pid)
    section.row(
        "of that, its own alone",
        f"{mine / MB:.1f} MB",
        f"{peers / MB:.1f} MB",
        f"{mine / peers:.2f}",
    )
    each, theirs_each = (per_stream(server.pid, server.port) for server in (daemon, peer))
    section.row(
        "each idle GET stream",
        f"{each:.2f} kB",
        f"{theirs_each:.1f} kB",
        f"{each / theirs_each:.3f}",
    )
    time.sleep(0.5)
    ours_after, theirs_after = memory_kb(daemon.pid), memory_kb(peer.pid)
    section.row(
        "resident, all streams closed",
        f"{ours_after / MB:.1f} MB",
        f"{theirs_after / MB:.1f} MB",
        f"{ours_after / theirs_after:.2f}",
    )
    section.notes.append(f"{STREAMS} streams; what they add to the resident memory, divided.")
    section.goal("under 12 MB resident without kernels", ours < 12 * MB)
    section.goal("under 10 kB a stream", each < 10)
    return section


def measure_flood(begin: Callable[[], AbstractContextManager[Daemon]]) -> Section:
    """begin: starts a new daemon for each cell, since memory once used is used again."""
    section = Section(
        "Memory while a cell prints 50 MB",
        ["", "before", "highest during", "growth", "share of what was printed", "after", "took"],
    )
    worst = 0.0
    for name, code in CELLS.items():
        with begin() as daemon:
            connection = Connection(daemon.port)
            connection.initialize()
            connection.exchange(connection.cell("pass"))
            for words in (name, "(the same again)"):
                worst = max(worst, flood(section, words, daemon, connection, code))
            connection.close()
    section.notes.append("The highest is what Linux noted (VmHWM), not a sample.")
    section.goal("growth under 8 MB", worst < 8)
    return section


def flood(section: Section, words: str, daemon: Daemon, connection: Connection, code: str) -> float:
    """One cell, one row; returns the growth in MB."""
    before = memory_kb(daemon.pid)
    reset_peak(daemon.pid)
    start = time.monotonic()
    _, body = connection.exchange(connection.cell(code))
    took = time.monotonic() - start
    assert b'"exit_code":0' in body, body[:2000]
    time.sleep(0.2)
    peak, after = memory_kb(daemon.pid, "VmHWM"), memory_kb(daemon.pid)
    growth = (peak - before) / MB
    section.row(
        words,
        f"{before / MB:.1f} MB",
        f"{peak / MB:.1f} MB",
        f"{growth:.1f} MB",
        f"{growth * 2**20 / PRINTED:.3f}",
        f"{after / MB:.1f} MB",
        f"{took:.2f} s",
    )
    return growth

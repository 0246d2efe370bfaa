# SPDX-License-Identifier: MIT
"""Pings per second against the official TypeScript SDK's server."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
from pathlib import Path

from peers import Connection, Server
from table import Section

CONNECTIONS = (1, 16, 64)
ROUNDS, SECONDS = 3, 4
SCRIPT = Path(__file__).with_name("ping.lua")
GOAL, GOAL_FROM = 5, 16


def check(server: Server) -> str:
    """A session in which a ping is answered as it should be."""
    connection = Connection(server.port)
    connection.initialize()
    accept = "application/json, text/event-stream"
    connection.socket.sendall(connection.prepare({"id": "check", "method": "ping"}, accept))
    data = b""
    while b'"result":{}' not in data or b'"check"' not in data:
        data += connection.receive()
    connection.close()
    return connection.session


def load(server: Server, session: str, connections: int, seconds: int) -> tuple[float, float]:
    """Requests per second and the median latency in ms."""
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", "-s", str(SCRIPT)]
    run = subprocess.run(
        [*command, f"http://127.0.0.1:{server.port}/mcp"],
        env=os.environ | {"PING_SESSION": session},
        capture_output=True,
        text=True,
        check=True,
    )
    assert not re.search("Non-2xx|Socket errors", run.stdout), run.stdout
    rate = re.search(r"Requests/sec:\s+(\S+)", run.stdout)
    middle = re.search(r"50%\s+([\d.]+)(us|ms|s)", run.stdout)
    assert rate
    assert middle
    return float(rate[1]), float(middle[1]) * {"us": 1e-3, "ms": 1.0, "s": 1e3}[middle[2]]


def measure(servers: list[Server]) -> Section:
    """servers: ours first."""
    section = Section(
        "Pings per second against the TypeScript SDK's server",
        ["connections", *(s.name for s in servers), "times the faster SDK", "median latencies"],
    )
    sessions = {server.name: check(server) for server in servers}
    for server in servers:
        load(server, sessions[server.name], 16, 2)
    met = True
    for connections in CONNECTIONS:
        runs: dict[str, list[tuple[float, float]]] = {server.name: [] for server in servers}
        for _ in range(ROUNDS):
            for server in servers:
                runs[server.name].append(load(server, sessions[server.name], connections, SECONDS))
        rates = {name: statistics.median(r for r, _ in found) for name, found in runs.items()}
        waits = [statistics.median(w for _, w in found) for found in runs.values()]
        ours, *others = rates.values()
        ratio = ours / max(others)
        met = met and (connections < GOAL_FROM or ratio >= GOAL)
        section.row(
            str(connections),
            *(f"{rate:,.0f}" for rate in rates.values()),
            f"{ratio:.1f}",
            ", ".join(f"{wait:.2f}" for wait in waits) + " ms",
        )
    for server in servers:
        check(server)
    section.notes.append(
        f"`wrk` with one thread, medians of {ROUNDS} runs of {SECONDS} s each in turn; every server"
        " has one session and gets the same requests. The SDK's server is its express example, once"
        " with plain JSON answers and once with the event streams that it sends by itself."
    )
    section.goal(f"at least {GOAL} times at 16 and 64 connections", met)
    return section

# SPDX-License-Identifier: MIT
"""Pings per second against the official TypeScript SDK's server."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
from dataclasses import dataclass
from pathlib import Path

from peers import Connection, Server, cpu_seconds
from table import Section

CONNECTIONS = (1, 16, 64)
ROUNDS, SECONDS = 5, 3
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


@dataclass
class Run:
    rate: float  # requests per second
    latency_ms: float  # median
    cpu_us: float  # of the server, for each request


def load(server: Server, session: str, connections: int, seconds: int) -> Run:
    before = cpu_seconds(server.pid)
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency"]
    run = subprocess.run(
        [*command, "--timeout", "20s", "-s", str(SCRIPT), f"http://127.0.0.1:{server.port}/mcp"],
        env=os.environ | {"PING_SESSION": session},
        capture_output=True,
        text=True,
        check=True,
    )
    assert not re.search("Non-2xx|Socket errors", run.stdout), run.stdout
    rate = re.search(r"Requests/sec:\s+(\S+)", run.stdout)
    middle = re.search(r"50%\s+([\d.]+)(us|ms|s)", run.stdout)
    count = re.search(r"(\d+) requests in", run.stdout)
    assert rate
    assert middle
    assert count
    return Run(
        float(rate[1]),
        float(middle[1]) * {"us": 1e-3, "ms": 1.0, "s": 1e3}[middle[2]],
        (cpu_seconds(server.pid) - before) / int(count[1]) * 1e6,
    )


def measure(servers: list[Server]) -> Section:
    """servers: ours first."""
    section = Section(
        "Pings per second against the TypeScript SDK's server",
        [
            "connections",
            *(s.name for s in servers),
            "times the faster SDK",
            "median latencies",
            "processor time a ping",
            "times less",
        ],
    )
    sessions = {server.name: check(server) for server in servers}
    for server in servers:
        load(server, sessions[server.name], 16, 2)
    met = True
    for connections in CONNECTIONS:
        runs: dict[str, list[Run]] = {server.name: [] for server in servers}
        for _ in range(ROUNDS):
            for server in servers:
                runs[server.name].append(load(server, sessions[server.name], connections, SECONDS))
        best = [max(found, key=lambda run: run.rate) for found in runs.values()]
        rates = [run.rate for run in best]
        cpu = [statistics.median(run.cpu_us for run in found) for found in runs.values()]
        ratio = rates[0] / max(rates[1:])
        met = met and (connections < GOAL_FROM or ratio >= GOAL)
        section.row(
            str(connections),
            *(f"{rate:,.0f}" for rate in rates),
            f"{ratio:.1f}",
            ", ".join(f"{run.latency_ms:.2f}" for run in best) + " ms",
            ", ".join(f"{each:.0f}" for each in cpu) + " us",
            f"{min(cpu[1:]) / cpu[0]:.1f}",
        )
    for server in servers:
        check(server)
    section.notes.append(
        f"`wrk` with one thread, the best of {ROUNDS} runs of {SECONDS} s each in turn (what else"
        " runs on the machine can only lower them); processor time is the server's own and its"
        " median. Every server has one session and gets the same requests. The SDK's server is its"
        " express example, once with plain JSON answers, once with the event streams that it sends"
        " by itself."
    )
    section.goal(f"at least {GOAL} times at 16 and 64 connections", met)
    return section

# SPDX-License-Identifier: MIT
"""Requests per second against servers that others make: by the official SDKs, and in Go."""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peers import Connection, Server, cpu_seconds, memory_kb
from snapshot_room import QUICK
from table import Section

CONNECTIONS = (1, 16, 64)
ROUNDS, SECONDS = (1, 1) if QUICK else (3, 3)
SCRIPT = Path(__file__).with_name("request.lua")
PINGS_MIN = 10_000  # a second, from 16 connections on
CALL = {"name": "run_python", "arguments": {"code": "pass"}}


@dataclass
class Kind:
    """What is asked, and what stands in each right answer."""

    name: str
    request: dict[str, Any]
    right: bytes
    needs_python: bool = False


KINDS = (
    Kind("ping", {"method": "ping"}, b'"result":{}'),
    Kind("tools/list", {"method": "tools/list"}, b'"inputSchema"'),
    Kind("run_python", {"method": "tools/call", "params": CALL}, b'"content":[', True),
)


def check(server: Server, kind: Kind) -> str:
    """A session in which the request is answered as it should be."""
    connection = Connection(server.port)
    connection.initialize()
    accept = "application/json, text/event-stream"
    connection.socket.sendall(connection.prepare({"id": "check"} | kind.request, accept))
    data = b""
    while kind.right not in data.replace(b" ", b"") or b'"check"' not in data:
        data += connection.receive()
    assert b'"isError":true' not in data.replace(b" ", b""), data
    connection.close()
    return connection.session


@dataclass
class Run:
    rate: float  # requests per second
    median_ms: float
    p99_ms: float
    cpu_us: float  # of the server's own process, for each request


def load(server: Server, kind: Kind, session: str, connections: int, seconds: int) -> Run:
    before = cpu_seconds(server.pid)
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "20s"]
    run = subprocess.run(
        [*command, "-s", str(SCRIPT), f"http://127.0.0.1:{server.port}/mcp"],
        env=os.environ | {"BENCH_SESSION": session, "BENCH_REQUEST": json.dumps(kind.request)[1:]},
        capture_output=True,
        text=True,
        check=True,
    )
    assert not re.search("Non-2xx|Socket errors", run.stdout), run.stdout
    said = re.search(r"^BENCH (\d+) (\d+) (\d+) (\d+)$", run.stdout, re.MULTILINE)
    assert said, run.stdout
    count, took_us, median_us, p99_us = map(int, said.groups())
    cpu_us = (cpu_seconds(server.pid) - before) / count * 1e6
    return Run(count / took_us * 1e6, median_us / 1e3, p99_us / 1e3, cpu_us)


def measure_kind(kind: Kind, servers: list[Server]) -> Section:
    """servers: ours first."""
    section = Section(
        f"`{kind.name}` against other servers",
        [
            "connections",
            "",
            *(s.name for s in servers),
            "times the fastest peer",
        ],
    )
    sessions = {server.name: check(server, kind) for server in servers}
    for server in servers:
        load(server, kind, sessions[server.name], 16, 1)
    ahead = enough = True
    for connections in CONNECTIONS:
        runs: dict[str, list[Run]] = {server.name: [] for server in servers}
        for _ in range(ROUNDS):
            for server in servers:
                runs[server.name].append(
                    load(server, kind, sessions[server.name], connections, SECONDS)
                )
        best = [max(found, key=lambda run: run.rate) for found in runs.values()]
        ratio = best[0].rate / max(run.rate for run in best[1:])
        p99 = [min(run.p99_ms for run in found) for found in runs.values()]
        cpu = [statistics.median(run.cpu_us for run in found) for found in runs.values()]
        section.row(str(connections), "a second", *(f"{r.rate:,.0f}" for r in best), f"{ratio:.1f}")
        section.row("", "p99, ms", *(f"{each:.2f}" for each in p99), f"{min(p99[1:]) / p99[0]:.1f}")
        section.row(
            "", "processor, us", *(f"{each:.0f}" for each in cpu), f"{min(cpu[1:]) / cpu[0]:.1f}"
        )
        ahead = ahead and ratio > 1
        enough = enough and (connections < 16 or best[0].rate > PINGS_MIN)
    memory = [memory_kb(server.pid) / 1024 for server in servers]
    section.row(
        "then",
        "resident, MB",
        *(f"{each:.1f}" for each in memory),
        f"{min(memory[1:]) / memory[0]:.1f}",
    )
    section.goal(
        "ahead of each of them in speed and in memory", ahead and memory[0] < min(memory[1:])
    )
    if kind.name == "ping":
        section.goal(f"over {PINGS_MIN:,} a second at 16 and 64 connections", enough)
    return section


def measure(servers: list[Server], python_servers: list[Server]) -> Iterator[Section]:
    """python_servers: those whose run_python runs Python; ours first in both."""
    for kind in KINDS:
        section = measure_kind(kind, python_servers if kind.needs_python else servers)
        section.notes.append(
            f"`wrk` with one thread, the best of {ROUNDS} runs of {SECONDS} s each in turn (what"
            " else runs on the machine can only lower them); the last column is how many times"
            " better ours is than the best of the others. Processor time is the server's own"
            " process's, without kernels."
        )
        if kind.needs_python:
            section.notes.append(
                "The cell is `pass`, one kernel for all connections. The peer is a tool by the"
                " Python SDK over `jupyter_client`; it saves nothing, ours saves the namespace"
                " after each cell."
            )
        yield section

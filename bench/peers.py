# SPDX-License-Identifier: MIT
"""What is measured and what it is measured against: servers, and a connection that costs
little itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import NEWEST, REPO, Daemon

VENV_PYTHON = REPO / ".venv/bin/python"
PYTHON = str(VENV_PYTHON if VENV_PYTHON.exists() else Path("/usr/bin/python3"))
CLIENTS_NODE = REPO / ".venv-clients/bin/node"  # newer than Debian's
NODE = str(CLIENTS_NODE) if CLIENTS_NODE.exists() else "node"
SDK = REPO / "bench/node_modules/@modelcontextprotocol/server"
PEERS_PYTHON = REPO / ".venv-bench/bin/python"
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
SESSION = re.compile(rb"\r\nmcp-session-id: *(\S+)", re.IGNORECASE)


class Connection:
    """HTTP/1.1 with keep-alive, as plain as can be: the client must not be what is measured."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.session = ""
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=120)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def prepare(
        self, message: dict[str, Any], accept: str = "application/json", **more: str
    ) -> bytes:
        body = json.dumps({"jsonrpc": "2.0"} | message).encode()
        lines = [
            "POST /mcp HTTP/1.1",
            f"Host: 127.0.0.1:{self.port}",
            "Content-Type: application/json",
            f"Accept: {accept}",
            f"Content-Length: {len(body)}",
        ]
        if self.session:
            lines += [f"Mcp-Session-Id: {self.session}", f"MCP-Protocol-Version: {NEWEST}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in more.items()]
        return "\r\n".join([*lines, "", ""]).encode() + body

    def exchange(self, request: bytes) -> tuple[bytes, bytes]:
        """Send a prepared request; returns head and body."""
        self.socket.sendall(request)
        data = b""
        while b"\r\n\r\n" not in data:
            data += self.receive()
        head, _, body = data.partition(b"\r\n\r\n")
        found = LENGTH.search(head)
        assert found or head.startswith(b"HTTP/1.1 202"), head
        parts, missing = [body], (int(found[1]) if found else 0) - len(body)
        while missing > 0:
            parts.append(self.receive())
            missing -= len(parts[-1])
        return head, b"".join(parts)

    def receive(self) -> bytes:
        data = self.socket.recv(1 << 20)
        assert data, "the server closed the connection"
        return data

    def initialize(self, accept: str = "application/json, text/event-stream", **more: str) -> None:
        params = {
            "protocolVersion": NEWEST,
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        }
        message = {"id": 0, "method": "initialize", "params": params}
        self.socket.sendall(self.prepare(message, accept, **more))
        data = b""
        while b"protocolVersion" not in data:
            data += self.receive()
        found = SESSION.search(data)
        self.session = found[1].decode() if found else ""  # some servers have none
        # What may still come of that answer must not be taken for the next one's.
        self.socket.close()
        self.socket = socket.create_connection(("127.0.0.1", self.port), timeout=120)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        accepted = self.prepare({"method": "notifications/initialized"}, accept, **more)
        self.exchange(accepted)

    def cell(self, code: str, timeout_s: int = 60, **more: str) -> bytes:
        arguments = {"code": code, "timeout_seconds": timeout_s}
        params = {"name": "run_python", "arguments": arguments}
        return self.prepare({"id": 1, "method": "tools/call", "params": params}, **more)

    def stream(self) -> None:
        """Become a GET stream that has begun."""
        lines = [
            "GET /mcp HTTP/1.1",
            f"Host: 127.0.0.1:{self.port}",
            "Accept: text/event-stream",
            f"Mcp-Session-Id: {self.session}",
            f"MCP-Protocol-Version: {NEWEST}",
        ]
        self.socket.sendall("\r\n".join([*lines, "", ""]).encode())
        data = self.receive()
        assert data.startswith(b"HTTP/1.1 200"), data

    def close(self) -> None:
        self.socket.close()


@dataclass
class Server:
    name: str
    port: int
    pid: int


@contextlib.contextmanager
def own_server(name: str, *command: str | Path) -> Iterator[Server]:
    """One of bench/, which prints its port and, since node may be a wrapper, who it is."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    with process.stdout as said:
        port, pid = map(int, said.readline().split())
    try:
        yield Server(name, port, pid)
    finally:
        os.kill(pid, signal.SIGTERM)
        process.wait()


def sdk_server(kind: str) -> contextlib.AbstractContextManager[Server]:
    """The TypeScript SDK's: kind is json or sse."""
    return own_server(f"TypeScript SDK, {kind.upper()}", NODE, REPO / "bench/sdk_server.mjs", kind)


def python_server() -> contextlib.AbstractContextManager[Server]:
    """The Python SDK's, with plain JSON answers, which are the faster ones."""
    return own_server("Python SDK", PEERS_PYTHON, REPO / "bench/sdk_server.py")


@contextlib.contextmanager
def go_server() -> Iterator[Server]:
    """A server in Go that PyPI has as a program; it reaches nothing that it serves."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = f"-t streamable-http --address 127.0.0.1:{port} --enabled-tools search"
    options += " --usage-stats=disabled --log-level error"
    process = subprocess.Popen(
        [PEERS_PYTHON.with_name("mcp-grafana"), *options.split()],
        env=clean_environment() | {"GRAFANA_URL": "http://127.0.0.1:1", "DO_NOT_TRACK": "1"},
        stderr=subprocess.DEVNULL,
    )
    try:
        await_port(port)
        yield Server("mcp-grafana (Go)", port, process.pid)
    finally:
        process.terminate()
        process.wait()


def await_port(port: int) -> None:
    end = time.monotonic() + 20
    while time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise TimeoutError(f"nothing listens on port {port}")


@contextlib.contextmanager
def daemon(home: Path, program: Path, **settings: str) -> Iterator[Daemon]:
    """A release build with a directory of its own."""
    home.mkdir(exist_ok=True)
    env = {"VIVARIUM_PYTHON": PYTHON} | settings
    running = Daemon(home, env=env, program=program)
    try:
        yield running
        running.stop()
    finally:
        running.clean_up()


# ---- how busy others are ----


def cpu_times() -> tuple[int, int]:
    """Jiffies that all processors were busy, and all jiffies."""
    numbers = [int(word) for word in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    return sum(numbers) - numbers[3] - numbers[4], sum(numbers)


def busy_elsewhere(seconds: float = 1.5) -> float:
    """The share of the machine that others use while we do nothing."""
    busy, total = cpu_times()
    time.sleep(seconds)
    busy_then, total_then = cpu_times()
    return (busy_then - busy) / max(1, total_then - total)


def await_quiet(limit_s: float) -> float:
    """Wait, not for long, for a moment at which others leave the machine alone."""
    end = time.monotonic() + limit_s
    while (share := busy_elsewhere()) > 0.05 and time.monotonic() < end:
        time.sleep(2)
    return share


# ---- numbers ----


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def memory_kb(pid: int, field: str = "VmRSS") -> int:
    """A line of /proc/PID/status: VmRSS now, VmHWM the highest since reset_peak()."""
    found = re.search(rf"{field}:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    assert found
    return int(found[1])


def reset_peak(pid: int) -> None:
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def private_kb(pid: int) -> int:
    """Memory that is this process's alone: neither shared libraries nor the page cache."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return sum(int(kb) for kb in re.findall(r"Private_\w+:\s+(\d+)", text))


def cpu_seconds(pid: int) -> float:
    """Processor time that a process has used, in user space and in the system."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def clean_environment() -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "LANG": "C.UTF-8"}

"""Crowds at the door: slow, huge, silent and many.  They are bounded by time and by number, and
nobody else is disturbed.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
import test_http_sse
import test_websocket
from frames import Closed
from harness import Client, Daemon, exchange, read_proc, resident_kb, wait_until

type_of_start = Callable[..., Daemon]
CONNECTIONS_MAX = 1024  # kernelmgr/main.c
OUR_SHARE = CONNECTIONS_MAX * 3 // 4
OTHERS_SHARE = CONNECTIONS_MAX // 2
HEAD = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
# Opens as many connections as it is told, asks once on each, says how many had an answer, and
# holds them until its input ends.
FLOOD = """
import socket, sys
held = []
for _ in range(int(sys.argv[3])):
    try:
        sock = socket.create_connection((sys.argv[1], int(sys.argv[2])), 10)
        sock.sendall(b"GET /health HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n")
        if sock.recv(4096):
            held.append(sock)
    except OSError:
        pass
print(len(held), flush=True)
sys.stdin.read()
"""


class Pinger(threading.Thread):
    """Somebody else, who wants an answer all the time."""

    def __init__(self, daemon: Daemon) -> None:
        super().__init__()
        self.client = daemon.client()
        self.over = threading.Event()
        self.answers = 0
        self.failure: Exception | None = None

    def run(self) -> None:
        try:
            while not self.over.wait(0.02):
                assert self.client.request("ping") == {}
                self.answers += 1
        except (AssertionError, OSError) as failure:
            self.failure = failure

    def __enter__(self) -> Pinger:
        self.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            wait_until(lambda: self.answers > 3 or self.failure)
        self.over.set()
        self.join()
        assert self.failure is None


@dataclass
class Slow:
    """A client that sends one byte at a time, and what it is told in the end."""

    sock: socket.socket
    drip: bytes
    answer: bytes = b""
    is_over: bool = False

    def step(self) -> None:
        with contextlib.suppress(BlockingIOError, TimeoutError):
            try:
                if self.drip:
                    self.sock.send(self.drip)
                while data := self.sock.recv(4096):
                    self.answer += data
                self.is_over = True
            except (BrokenPipeError, ConnectionResetError):
                self.is_over = True


@contextlib.contextmanager
def slow_clients(port: int, count: int, begin: bytes, drip: bytes) -> Iterator[list[Slow]]:
    with contextlib.ExitStack() as stack:
        clients = []
        for _ in range(count):
            sock = stack.enter_context(socket.create_connection(("127.0.0.1", port), 10))
            sock.sendall(begin)
            sock.setblocking(False)
            clients.append(Slow(sock, drip))
        yield clients


def play(clients: list[Slow], limit_s: float) -> None:
    """A byte a second from each until all are sent away."""
    end = time.monotonic() + limit_s
    while not all(client.is_over for client in clients):
        assert time.monotonic() < end, f"{sum(not c.is_over for c in clients)} are still there"
        for client in clients:
            client.step()
        time.sleep(1)


@pytest.mark.timeout(150)
def test_slow_and_silent_ones_are_sent_away_and_nobody_waits_for_them(daemon: Daemon) -> None:
    before = daemon.fds()
    with (
        Pinger(daemon),
        slow_clients(daemon.port, 100, b"GET /health HTTP/1.1\r\nX: ", b"x") as heads,
        slow_clients(daemon.port, 100, b"", b"") as silent,
        slow_clients(daemon.port, 100, HEAD + b"Content-Length: 99\r\n\r\n", b"x") as bodies,
        slow_clients(
            daemon.port, 50, HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"
        ) as chunks,
    ):
        play([*heads, *silent, *bodies, *chunks], 90)
    assert all(not one.answer for one in [*heads, *silent])
    for one in [*bodies, *chunks]:
        assert one.answer.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    wait_until(lambda: daemon.fds() <= before + 1)


def send_while_taken(port: int, pieces: Iterator[bytes]) -> int:
    """The bytes that went out before the server had enough."""
    sent = 0
    with (
        contextlib.suppress(BrokenPipeError, ConnectionResetError),
        socket.create_connection(("127.0.0.1", port), 10) as sock,
    ):
        for piece in pieces:
            sock.sendall(piece)
            sent += len(piece)
        assert not sock.recv(10), "it was answered"
    return sent


def test_heads_of_any_size_cost_eight_kilobytes(daemon: Daemon) -> None:
    """And are cut off: less than nine megabytes is what the system takes unread."""
    begin = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"
    pieces = {
        "one of 64 KB": [begin, b"X-Long: " + b"x" * 65_536 + b"\r\n\r\n"],
        "a million lines": [begin, *[b"X-One: 1\r\n" * 10_000] * 100],
        "a million names": [begin, *(b"X-%d: 1\r\n" % i for i in range(1_000_000))],
        "a line without an end": [begin, b"X-Long: ", *[b"x" * 65_536] * 200],
        "a name without an end": [begin, b"X-", *[b"x" * 65_536] * 200],
        "a path without an end": [b"GET /", *[b"x" * 65_536] * 200],
        "a method without an end": [b"x" * 65_536] * 200,
        "blank lines": [b"\r\n" * 10_000] * 100,
    }
    with Pinger(daemon):
        send_while_taken(daemon.port, iter(pieces["one of 64 KB"]))
        before = resident_kb(daemon.pid)
        for what, each in pieces.items():
            for _ in range(5):
                assert send_while_taken(daemon.port, iter(each)) < 9_000_000, what
    # What is freed may stay for a while under a sanitizer.
    limit = 30_000 if b"libasan" in read_proc(daemon.pid, "maps") else 2_000
    assert resident_kb(daemon.pid) - before < limit


def is_told_to_wait(sock: socket.socket) -> bool:
    try:
        answer = sock.recv(4096, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    assert answer.startswith(b"HTTP/1.1 503 Service Unavailable\r\n"), answer
    return True


def test_bodies_of_many_are_bounded_together(daemon: Daemon) -> None:
    """Of 256 MiB this machine gets three quarters: 48 bodies of 4 MiB."""
    part = b" " * (4 << 20)
    head = HEAD + b"Content-Length: %d\r\n\r\n" % len(part)
    held: list[socket.socket] = []
    with Pinger(daemon), contextlib.ExitStack() as stack:
        for _ in range(60):
            sock = stack.enter_context(socket.create_connection(("127.0.0.1", daemon.port), 10))
            sock.sendall(head)
            sock.sendall(part[:-1000])
            sock.setblocking(False)
            held.append(sock)
            for one in held:  # who sends nothing for 5 s is sent away
                with contextlib.suppress(BlockingIOError):
                    one.send(b" ")
        wait_until(lambda: sum(map(is_told_to_wait, held)) >= 60 - 48)
        assert resident_kb(daemon.pid) < 900_000  # a body's room is up to twice its size
    assert daemon.log().count("too many large requests at once") == 1, "once a minute"
    assert Client(daemon.port).initialize()


# ---- many connections ----


@contextlib.contextmanager
def flood(address: str, port: int, count: int, *inside: str) -> Iterator[int]:
    """How many of the connections are there; inside: a command that runs another one."""
    command = [*inside, sys.executable, "-c", FLOOD, address, str(port), str(count)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdin
        try:
            yield int(process.stdout.readline())
        finally:
            process.stdin.close()
            process.wait(20)


@pytest.fixture
def elsewhere() -> Iterator[tuple[str, list[str]]]:
    """Another machine, as the network sees it: our address there, and how to run things."""
    name = f"v{os.getpid()}"
    ours, theirs = f"10.{os.getpid() >> 8 & 255}.{os.getpid() & 255}.1", ""
    theirs = ours[:-1] + "2"
    steps = [
        f"ip netns add {name}",
        f"ip link add {name}a type veth peer name {name}b netns {name}",
        f"ip address add {ours}/30 dev {name}a",
        f"ip link set {name}a up",
        f"ip -n {name} address add {theirs}/30 dev {name}b",
        f"ip -n {name} link set {name}b up",
    ]
    try:
        for step in steps:
            made = subprocess.run(step.split(), capture_output=True, text=True, check=False)
            if made.returncode:
                pytest.skip(f"no network of its own can be made here: {made.stderr.strip()}")
        yield ours, ["ip", "netns", "exec", name]
    except FileNotFoundError:
        pytest.skip("there is no ip(8) here")
    finally:
        with contextlib.suppress(FileNotFoundError):
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)


@pytest.mark.parametrize("kind", ["http with sse", "websocket"])
def test_a_thousand_conversations_of_one_client_are_bounded(daemon: Daemon, kind: str) -> None:
    """As its streams are in test_streams; who has a connection goes on."""
    other = test_websocket.Talk(daemon).initialize()
    fds, before, held = daemon.fds(), resident_kb(daemon.pid), 0
    refusals = (OSError, http.client.HTTPException, Closed)
    with contextlib.ExitStack() as stack:
        for _ in range(1000):
            with contextlib.suppress(*refusals):
                if kind == "websocket":
                    stack.callback(test_websocket.Talk(daemon).ws.sock.close)
                else:
                    stack.enter_context(test_http_sse.Talk(daemon).stream)
                held += 1
            if held % 100 == 0:
                assert other.request("ping") == {}
        assert held == OUR_SHARE - 1
        assert resident_kb(daemon.pid) - before < 100_000
        assert other.request("ping") == {}
        assert other.run("6 * 7").endswith(": 42")
    wait_until(lambda: daemon.fds() < fds + 50, 20)
    assert daemon.client().request("ping") == {}
    other.ws.sock.close()


def test_another_machine_cannot_take_all_connections(
    start: type_of_start, elsewhere: tuple[str, list[str]]
) -> None:
    address, inside = elsewhere
    daemon = start(env={"VIVARIUM_HOST": "0.0.0.0", "VIVARIUM_ANONYMOUS": "1",
                        "VIVARIUM_ALLOWED_HOSTS": address})  # fmt: skip
    before = daemon.fds()
    with Pinger(daemon), flood(address, daemon.port, CONNECTIONS_MAX, *inside) as held:
        assert held == OTHERS_SHARE
        assert daemon.log_contains("has its share of the connections")
        assert daemon.client().request("ping") == {}
    wait_until(lambda: daemon.fds() <= before + 1, 20)


def test_this_machine_cannot_take_all_connections(
    start: type_of_start, elsewhere: tuple[str, list[str]]
) -> None:
    """Nor by an address of its own that others use."""
    address, inside = elsewhere
    daemon = start(env={"VIVARIUM_HOST": "0.0.0.0", "VIVARIUM_ANONYMOUS": "1"})
    with flood("127.0.0.1", daemon.port, CONNECTIONS_MAX) as held:
        assert held == OUR_SHARE
        for here in ("127.0.0.1", address):
            with flood(here, daemon.port, 3) as more:
                assert more == 0
        with flood(address, daemon.port, 3, *inside) as others:
            assert others == 3
    wait_until(lambda: daemon.fds() < CONNECTIONS_MAX // 2, 20)
    assert exchange(daemon.port, "GET", "/health").status == 200

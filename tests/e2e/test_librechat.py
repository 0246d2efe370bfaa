"""LibreChat's way of calling, byte by byte: the requests are those that its client (the
official SDK for TypeScript 1.x on undici's fetch) sends, in its order of headers and
JSON members, with the identity that changes from call to call on one connection.
"""

from __future__ import annotations

import base64
import json
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest
from conftest import any_python, run_daemon, type_of_start
from harness import Daemon, Result, png_size, wait_until

SECRET = "between the proxy and the daemon"
ENV = {"VIVARIUM_USER_HEADER": "X-User-ID", "VIVARIUM_PROXY_SECRET": SECRET}
PLACEHOLDER = "{{LIBRECHAT_USER_ID}}"
NO_SESSION = -32001
MIB = 1 << 20
# Beyond these LibreChat puts an error in the answer's place.
LINE_MAX, IMAGE_MAX, ANSWER_MAX = 5 * MIB, 10 * MIB, 4 * MIB
KEEP_ALIVE_S = 15
FETCH = ("accept-language: *", "sec-fetch-mode: cors", "user-agent: undici")
ENCODING = "accept-encoding: gzip, deflate"
TOOLS = ["run_python", "wait", "undo", "list_files", "read_text_file", "write_file"]


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    def message(self) -> dict[str, Any]:
        """The one JSON-RPC message, plain or as an event."""
        text = self.body.decode()
        if self.headers["content-type"] == "text/event-stream":
            (text,) = (line[6:] for line in text.split("\n") if line.startswith("data: "))
        message = json.loads(text)
        assert isinstance(message, dict)
        return message


class Socket:
    """One connection of undici's."""

    def __init__(self, port: int, timeout_s: float = 40) -> None:
        self.host = f"127.0.0.1:{port}"
        self.plain = socket.create_connection(("127.0.0.1", port), timeout_s)
        self.input = self.plain.makefile("rb")

    def __enter__(self) -> Socket:
        return self

    def __exit__(self, *_: object) -> None:
        self.input.close()
        self.plain.close()

    def send(self, method: str, path: str, own: list[str], body: bytes | None = None) -> None:
        """own: the header lines between undici's."""
        after = [ENCODING, *([] if body is None else [f"content-length: {len(body)}"])]
        connection = "close" if method == "HEAD" else "keep-alive"
        lines = [f"{method} {path} HTTP/1.1", f"host: {self.host}", f"connection: {connection}"]
        head = "\r\n".join([*lines, *own, *FETCH, *after])
        self.plain.sendall(head.encode() + b"\r\n\r\n" + (body or b""))

    def read_head(self) -> Answer:
        status = int(self.input.readline().split()[1])
        headers = {}
        while line := self.input.readline().rstrip():
            name, _, value = line.decode().partition(":")
            headers[name.lower()] = value.strip()
        return Answer(status, headers, b"")

    def read_chunk(self) -> bytes:
        """Of a stream; empty at its end."""
        chunk = self.input.read(int(self.input.readline(), 16))
        assert self.input.readline() == b"\r\n"
        return chunk

    def read(self, bodiless: bool = False) -> Answer:
        answer = self.read_head()
        if bodiless:
            return answer
        if "chunked" in answer.headers.get("transfer-encoding", ""):
            while chunk := self.read_chunk():
                answer.body += chunk
        else:
            answer.body = self.input.read(int(answer.headers.get("content-length", "0")))
        return answer

    def fetch(self, method: str, path: str, own: list[str], body: bytes | None = None) -> Answer:
        self.send(method, path, own, body)
        return self.read(bodiless=method == "HEAD")


class Connection:
    """LibreChat's MCPConnection: a session; user is looked up anew for each request."""

    def __init__(self, port: int, user: str | None = None, secret: str | None = SECRET) -> None:
        self.port, self.user, self.secret = port, user, secret
        self.session: str | None = None
        self.socket = Socket(port)
        self.streams: list[Socket] = []
        self.id = 0

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        for one in [self.socket, *self.streams]:
            one.__exit__()

    def headers(self, accept: str) -> list[str]:
        """accept "": a DELETE, to which undici adds its own behind."""
        lines = [f"accept: {accept}"] if accept else []
        if "json" in accept:
            lines.append("content-type: application/json")
        if self.session is not None:
            lines.append("mcp-protocol-version: 2025-11-25")
            lines.append(f"mcp-session-id: {self.session}")
        if self.user is not None:
            lines.append(f"x-user-id: {self.user}")
        if self.secret is not None:
            lines.append(f"x-vivarium-proxy-secret: {self.secret}")
        return lines if accept else [*lines, "accept: */*"]

    def body(self, method: str, params: object, notification: bool) -> bytes:
        message: dict[str, object] = {"method": method}
        if params is not None:
            message["params"] = params
        message["jsonrpc"] = "2.0"
        if not notification:
            message["id"] = self.id
            self.id += 1
        return json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode()

    def send(self, method: str, params: object = None, notification: bool = False) -> None:
        own = self.headers("application/json, text/event-stream")
        self.socket.send("POST", "/mcp", own, self.body(method, params, notification))

    def post(self, method: str, params: object = None, notification: bool = False) -> Answer:
        self.send(method, params, notification)
        return self.socket.read()

    def connect(self) -> Connection:
        answer = self.post(
            "initialize",
            {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "@librechat/api-client", "version": "1.2.3"},
            },
        )
        assert answer.status == 200
        assert answer.message()["result"]["protocolVersion"] == "2025-11-25"
        self.session = answer.headers["mcp-session-id"]
        done = self.post("notifications/initialized", notification=True)
        assert (done.status, done.body) == (202, b"")
        return self

    def open_stream(self) -> Socket:
        stream = Socket(self.port, KEEP_ALIVE_S + 10)
        self.streams.append(stream)
        stream.send("GET", "/mcp", self.headers("text/event-stream"))
        head = stream.read_head()
        assert (head.status, head.headers["content-type"]) == (200, "text/event-stream")
        return stream

    def end(self) -> Answer:
        return self.socket.fetch("DELETE", "/mcp", self.headers(""))

    def list_tools(self) -> list[str]:
        tools = self.post("tools/list").message()["result"]["tools"]
        return [tool["name"] for tool in tools]

    def run(self, code: str, **more: object) -> Result:
        params = {"name": "run_python", "arguments": {"code": code, **more}}
        return Result(self.post("tools/call", params).message()["result"])


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    env = {"VIVARIUM_PYTHON": str(any_python()), **ENV}
    yield from run_daemon(tmp_path_factory.mktemp("librechat"), env=env)


# ---- before it connects ----


def test_the_probe_for_oauth_finds_none(daemon: Daemon) -> None:
    with Socket(daemon.port) as one:
        head = one.fetch("HEAD", "/mcp", ["accept: */*"])
        assert head.status == 405
        assert "www-authenticate" not in head.headers
        assert one.input.read() == b"", "it asked to close"
    with Socket(daemon.port) as one:
        own = ["Content-Type: application/json", "accept: */*"]
        posted = one.fetch("POST", "/mcp", own, b"{}")
        assert posted.status == 400
        assert "www-authenticate" not in posted.headers
        assert posted.message()["error"]["code"] == -32600
        for path in ("/oauth-protected-resource/mcp", "/oauth-protected-resource"):
            own = ["MCP-Protocol-Version: 2025-11-25", "accept: */*"]
            known = one.fetch("GET", "/.well-known" + path, own)
            assert (known.status, known.headers["content-type"]) == (404, "application/json")


def test_a_connection_at_start_up_has_no_user(start: type_of_start) -> None:
    daemon = start(env=ENV)
    with Connection(daemon.port).connect() as startup:
        startup.open_stream()
        assert startup.list_tools() == TOOLS
        assert startup.post("ping").message()["result"] == {}
        result = startup.run("1")
        assert result.is_error
        assert "X-User-ID" in result.text
        assert "VIVARIUM_USER_HEADER" in result.text
        assert daemon.children() == [], "nobody's call starts a kernel"


# ---- whose call it is ----


def test_the_user_may_change_with_every_call_of_a_session(daemon: Daemon) -> None:
    with Connection(daemon.port, "ada").connect() as both:
        both.run("mine = 'of ada'\nopen('ada.txt', 'w').close()")
        both.user = "bob"
        assert both.run("'mine' in globals()").data["result"] == "False"
        assert both.run("import os; os.listdir()").data["result"] == "[]"
        both.user = "ada"
        assert both.run("mine").data["result"] == "'of ada'"
    with Connection(daemon.port, "ada").connect() as later:
        assert later.run("mine").data["result"] == "'of ada'"


def test_a_placeholder_that_was_not_filled_in_is_told(daemon: Daemon) -> None:
    with Connection(daemon.port, PLACEHOLDER).connect() as one:
        assert one.list_tools()
        result = one.run("1")
        assert result.is_error
        assert f"'{PLACEHOLDER}'" in result.text
        assert "placeholder" in result.text


@pytest.mark.parametrize("secret", [None, "", "guessed", SECRET.upper()])
def test_without_the_secret_the_user_header_counts_for_nothing(
    daemon: Daemon, secret: str | None
) -> None:
    with Connection(daemon.port, "ada", secret).connect() as one:
        result = one.run("mine")
        assert result.is_error
        assert "X-Vivarium-Proxy-Secret" in result.text
        assert SECRET not in json.dumps(result.raw)


# ---- streams ----


def test_two_idle_streams_both_stay_and_are_kept_alive(daemon: Daemon) -> None:
    with Connection(daemon.port, "ada").connect() as one:
        streams = [one.open_stream(), one.open_stream()]
        begun = time.monotonic()
        for stream in streams:
            assert stream.read_chunk().startswith(b":"), "a first byte, for proxies that wait"
        assert time.monotonic() - begun < 5
        assert one.run("1 + 1").data["result"] == "2"
        for stream in streams:
            assert stream.read_chunk().startswith(b":"), "only comments: nobody's answers"
        assert time.monotonic() - begun < KEEP_ALIVE_S + 5
        assert one.post("ping").message()["result"] == {}


def test_a_slow_call_has_its_head_at_once_and_pings_pass_it(daemon: Daemon) -> None:
    with Connection(daemon.port, "ada").connect() as one, Socket(daemon.port) as other:
        code = "import os, time\nwhile not os.path.exists('go'): time.sleep(0.02)\n'gone on'"
        one.send("tools/call", {"name": "run_python", "arguments": {"code": code}})
        head = one.socket.read_head()
        assert head.headers["content-type"] == "text/event-stream"
        assert head.headers["x-accel-buffering"] == "no"
        assert one.socket.read_chunk().startswith(b":")
        own = one.headers("application/json, text/event-stream")
        ping = other.fetch("POST", "/mcp", own, one.body("ping", None, False))
        assert ping.message()["result"] == {}
        (daemon.work / "users" / "ada" / "go").touch()
        while chunk := one.socket.read_chunk():
            head.body += chunk
        assert Result(head.message()["result"]).data["result"] == "'gone on'"


# ---- sessions ----


def check_no_session(answer: Answer) -> None:
    assert answer.status == 404
    assert answer.message()["error"]["code"] == NO_SESSION


def test_an_ended_or_unknown_session_is_404(daemon: Daemon) -> None:
    with Connection(daemon.port, "ada").connect() as one:
        one.send(
            "tools/call",
            {"name": "run_python", "arguments": {"code": "import time; time.sleep(1)"}},
        )
        with Socket(daemon.port, 5) as other:  # LibreChat waits five seconds for it
            ended = other.fetch("DELETE", "/mcp", one.headers(""))
            assert (ended.status, ended.body) == (200, b"")
        assert one.socket.read().status == 200, "what runs goes on"
        for session in (one.session, "4f2c6c2e-5a1f-4b6e-9d53-0a9be1d2b7aa", "x" * 300):
            one.session = session
            check_no_session(one.post("tools/list"))
            check_no_session(one.end())
            check_no_session(one.socket.fetch("GET", "/mcp", one.headers("text/event-stream")))
        one.session = None
        assert one.connect().list_tools()


@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_the_session_is_valid_after_a_restart_of_the_daemon(start: type_of_start, how: str) -> None:
    first = start(env=ENV)
    with Connection(first.port, "ada").connect() as one:
        one.open_stream()
        one.run("kept = 1")
        if how == "killed":
            first.kill()
        else:
            first.stop()
    wait_until(lambda: not first.family())
    with Connection(start(env=ENV).port, "ada") as again:
        again.session = one.session
        again.open_stream()
        assert again.list_tools()
        assert again.run("kept").data["result"] == "1"
        assert again.end().status == 200


# ---- its limits ----


def test_a_storm_of_connections_is_never_told_to_go_away(daemon: Daemon) -> None:
    def connect(number: int) -> str | None:
        with Connection(daemon.port, f"user{number}").connect() as one:
            one.open_stream()
            assert one.list_tools()
            return one.session

    with ThreadPoolExecutor(16) as pool:
        sessions = list(pool.map(connect, range(100)))
    assert len(set(sessions)) == 100


def test_a_full_queue_is_a_tools_error_and_not_an_http_one(start: type_of_start) -> None:
    daemon = start(env={**ENV, "VIVARIUM_QUEUE_LIMIT": "1"})
    code = "import os, time\nwhile not os.path.exists('go'): time.sleep(0.02)"
    first, waiting, *others = [Connection(daemon.port, "ada").connect() for _ in range(4)]
    with ExitStack() as stack:
        for one in (first, waiting, *others):
            stack.enter_context(one)
        call = "tools/call", {"name": "run_python", "arguments": {"code": code}}
        first.send(*call)
        wait_until(lambda: daemon.health()["calls"] == 1)
        waiting.send(*call)
        wait_until(lambda: daemon.health()["calls"] == 2)
        for one in others:
            one.send(*call)
        answers = [one.socket.read() for one in others]
        (daemon.work / "users" / "ada" / "go").touch()
        answers += [first.socket.read(), waiting.socket.read()]
    assert [answer.status for answer in answers] == [200] * 4
    results = [Result(answer.message()["result"]) for answer in answers]
    assert all(result.is_error for result in results[:2])
    assert all("VIVARIUM_QUEUE_LIMIT" in result.text for result in results[:2])
    assert [result.exit_code for result in results[2:]] == [0, 0], "the first two ran"


def test_the_largest_answer_is_within_its_limits(daemon: Daemon) -> None:
    code = """
import sys, numpy
import matplotlib.pyplot as plt
noise = numpy.random.default_rng(1).random((1300, 700, 3))
for n in range(5):
    plt.imsave(f'noise{n}.png', noise[n:])
print('é' * 200_000)
print('\\x01' * 200_000, file=sys.stderr)
'日' * 200_000
"""
    with Connection(daemon.port, "ada").connect() as one:
        params = {"name": "run_python", "arguments": {"code": code}}
        answer = one.post("tools/call", params)
    assert len(answer.body) <= ANSWER_MAX < LINE_MAX
    raw = answer.message()["result"]
    pictures = [item["data"] for item in raw["content"] if item["type"] == "image"]
    assert len(pictures) == 4
    for data in pictures:
        png = base64.b64decode(data, validate=True)
        assert len(png) < IMAGE_MAX
        assert max(png_size(png)) <= 1280

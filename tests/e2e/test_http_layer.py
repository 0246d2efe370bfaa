"""The HTTP layer (wire/http*) from outside, byte by byte: plain sockets against toy_http, and
the same through TLS.

Most tests guard a trap of libwebsockets that was hit once; each name says the promise.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from harness import make_certificate

BUILD = Path(__file__).parents[2] / os.environ.get("VIVARIUM_BUILD", "build-asan")
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
SSE = {"Accept": "text/event-stream"}
COMMENT = b":\n\n"


class Client:
    """One connection, and the little of HTTP that is needed to read answers."""

    def __init__(
        self,
        port: int,
        rcvbuf: int = 0,
        host: str = "127.0.0.1",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        if rcvbuf:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
        self.sock.settimeout(8)
        self.sock.connect((host, port))
        if tls:
            self.sock = tls.wrap_socket(self.sock, server_hostname="localhost")
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buf = b""

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.close()

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def send_until_refused(self, piece: bytes, times: int) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for _ in range(times):
                self.send(piece)

    def drip(self, pieces: Iterable[bytes], every_s: float) -> None:
        """Sends pieces as packets of their own: the pause is what is tested."""
        for piece in pieces:
            self.send(piece)
            time.sleep(every_s)

    def more(self) -> bool:
        data = self.sock.recv(65536)
        self.buf += data
        return bool(data)

    def until(self, mark: bytes) -> bytes:
        while mark not in self.buf:
            assert self.more(), f"closed, have {self.buf[:300]!r}"
        head, self.buf = self.buf.split(mark, 1)
        return head

    def take(self, n: int) -> bytes:
        while len(self.buf) < n:
            assert self.more(), f"closed at {len(self.buf)} of {n}"
        out, self.buf = self.buf[:n], self.buf[n:]
        return out

    def head(self) -> tuple[int, dict[str, str]]:
        lines = self.until(b"\r\n\r\n").decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines[1:])
        return int(lines[0].split()[1]), headers

    def reply(self, body: bool = True) -> tuple[int, dict[str, str], bytes]:
        status, headers = self.head()
        size = int(headers.get("content-length", 0)) if body else 0
        return status, headers, self.take(size)

    def status(self) -> int:
        return self.reply()[0]

    def error(self) -> tuple[int, str]:
        status, headers, body = self.reply()
        assert headers["content-type"] == "application/json"
        parsed = json.loads(body)
        assert list(parsed) == ["error"]
        return status, parsed["error"]

    def chunk(self) -> bytes:
        size = int(self.until(b"\r\n"), 16)
        return self.take(size + 2)[:-2]

    def at_end(self, limit_s: float = 3) -> bool:
        """True if the server closes; what it still says is in buf."""
        self.sock.settimeout(limit_s)
        try:
            while self.more():
                pass
        except TimeoutError:
            return False
        except ConnectionResetError:
            pass
        return True


def req(  # noqa: PLR0917 (methods and paths read best by position)
    method: str = "POST",
    path: str = "/mcp",
    body: bytes | None = None,
    host: str | None = "localhost",
    headers: dict[str, str | None] | dict[str, str] | None = None,
    length: int | None = None,
) -> bytes:
    all_headers: dict[str, str | None] = {"Host": host}
    if body is not None or length is not None:
        all_headers["Content-Type"] = "application/json"
        all_headers["Content-Length"] = str(len(body or b"") if length is None else length)
    all_headers.update(headers or {})
    lines = [f"{method} {path} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in all_headers.items() if value is not None]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + (body or b"")


def wait_until(what: Callable[[], bool], limit_s: float = 5) -> None:
    end = time.monotonic() + limit_s
    while not what():
        assert time.monotonic() < end, "did not come true in time"
        time.sleep(0.02)


class Toy:
    """A running toy_http; stop() checks that it ended cleanly."""

    def __init__(self, tmp: Path, *options: str, cert: Path | None = None) -> None:
        self.cert = cert
        self.tls = ssl.create_default_context(cafile=cert) if cert else None
        self.log = tmp / f"toy-{time.monotonic_ns()}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [BUILD / "tests" / "toy_http", *options], stdout=subprocess.PIPE, stderr=log
            )
        assert self.process.stdout
        line = self.process.stdout.readline()
        self.port = int(line) if line else 0

    def client(self, rcvbuf: int = 0) -> Client:
        return Client(self.port, rcvbuf, tls=self.tls)

    def health(self) -> dict[str, int]:
        with self.client() as client:
            client.send(req("GET", "/health"))
            parsed: dict[str, int] = json.loads(client.reply()[2])
            return parsed

    def is_quiet(self) -> bool:
        """No exchange is open but the one that asks."""
        return self.health()["busy"] == 1

    def rss_kb(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+)", status)
        assert found
        return int(found[1])

    def cpu_ticks(self) -> int:
        stat = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return int(stat[11]) + int(stat[12])

    def fds(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def stop(self, code: int = 0) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            pytest.fail("toy_http hangs")
        finally:
            assert self.process.stdout
            self.process.stdout.close()
        log = self.log.read_text()
        assert "Sanitizer" not in log, log
        assert "runtime error" not in log, log
        assert self.process.returncode == code, log


@pytest.fixture(scope="module", params=["http", "https"])
def toy(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Toy]:
    tmp = tmp_path_factory.mktemp("toy")
    options = ["comment_s=1", "body_timeout_s=2", "idle_timeout_s=2", "later_ms=6000"]
    cert = None
    if request.param == "https":
        cert, key = make_certificate(tmp)
        options += [f"tls_cert={cert}", f"tls_key={key}"]
    toy = Toy(tmp, *options, cert=cert)
    yield toy
    toy.stop()


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Callable[..., Toy]]:
    """More toys, with options of the test's own."""
    toys: list[Toy] = []

    def start(*options: str) -> Toy:
        toys.append(Toy(tmp_path, *options))
        return toys[-1]

    yield start
    for toy in toys:
        toy.stop()


@pytest.fixture
def client(toy: Toy) -> Iterator[Client]:
    with toy.client() as client:
        yield client


def ping_works(client: Client) -> None:
    client.send(req(body=PING))
    status, _, body = client.reply()
    assert status == 200
    assert b'"result"' in body


# ---- what takes longer than the 5 s after which lws loses patience


def _get_stream(toy: Toy) -> Any:
    with toy.client() as client:
        client.send(req("GET", headers=SSE))
        client.until(b"\r\n\r\n")
        return [client.chunk() for _ in range(7)]


def _late_get(toy: Toy) -> Any:
    with toy.client() as client:
        client.send(req("GET", "/later"))
        late = client.reply()
        client.send(req("GET", "/health"))
        return late[2], client.status()


def _late_post(toy: Toy) -> Any:
    with toy.client() as client:
        client.send(req("POST", "/later", body=b"x" * 100000))
        late = client.reply()
        client.send(req(body=PING))
        return late[2], client.status()


def _silent(toy: Toy) -> Any:
    with toy.client() as client:
        return client.at_end(9)


def _slow_head(toy: Toy) -> Any:
    with toy.client() as client, contextlib.suppress(OSError):
        pieces = [b"GET /health HTTP/1.1\r\n"] + [b"A"] * 60
        client.drip(pieces, 0.15)
        return "not cut"
    return "cut"


def _idle(toy: Toy) -> Any:
    with toy.client() as client:
        ping_works(client)
        return client.at_end(7)


def _later_idle(toy: Toy) -> Any:
    time.sleep(1)  # while another one is idle: all share one timer
    return _idle(toy)


def _used_again(toy: Toy) -> Any:
    """Longer than the limit in all, but never idle for so long."""
    with toy.client() as client:
        for _ in range(4):
            ping_works(client)
            time.sleep(0.9)
        ping_works(client)
        return "lives"


def _half_head(toy: Toy) -> Any:
    """What lws has left over is no reason to wait for the rest."""
    with toy.client() as client:
        client.send(req(body=PING) + b"GET /health HT")
        return client.status(), client.at_end(7)


def _slow_body(toy: Toy) -> Any:
    with toy.client() as client:
        client.send(req(length=50))
        client.drip([b"x"] * 8, 0.3)
        return client.error()


def _later_body(toy: Toy) -> Any:
    time.sleep(1)  # while another body is waited for: all share one timer
    return _slow_body(toy)


@pytest.fixture(scope="module")
def patience(toy: Toy) -> dict[str, tuple[float, Any]]:
    """Runs all the slow ones side by side: name -> (seconds, what came)."""

    def timed(job: Callable[[Toy], Any]) -> tuple[float, Any]:
        start = time.monotonic()
        result = job(toy)
        return time.monotonic() - start, result

    jobs = [_get_stream, _late_get, _late_post, _silent, _slow_head, _idle]
    jobs += [_slow_body, _later_body, _later_idle, _used_again, _half_head]
    with ThreadPoolExecutor(len(jobs)) as pool:
        futures = {job.__name__: pool.submit(timed, job) for job in jobs}
        return {name: future.result() for name, future in futures.items()}


def test_a_get_stream_outlives_the_deadlines_of_lws(
    patience: dict[str, tuple[float, Any]],
) -> None:
    took, chunks = patience["_get_stream"]
    assert chunks == [COMMENT] * 7
    assert took > 5.5


@pytest.mark.parametrize("name", ["_late_get", "_late_post"])
def test_an_answer_may_take_longer_than_lws_waits(
    patience: dict[str, tuple[float, Any]], name: str
) -> None:
    took, result = patience[name]
    assert result == (b'{"late":true}', 200)
    assert took > 5.9


def test_silent_connections_and_slow_heads_are_cut(
    patience: dict[str, tuple[float, Any]],
) -> None:
    took, closed = patience["_silent"]
    assert closed
    assert took < 8
    took, result = patience["_slow_head"]
    assert result == "cut"
    assert took < 9


def test_idle_connections_are_cut(patience: dict[str, tuple[float, Any]]) -> None:
    took, closed = patience["_idle"]
    assert closed
    assert 1 < took < 5
    assert patience["_later_idle"][1]
    assert patience["_used_again"][1] == "lives"
    assert patience["_half_head"][1] == (200, True)


def test_slow_bodies_are_408(patience: dict[str, tuple[float, Any]]) -> None:
    late = (408, "the body was not complete after 2 s; send it again")
    took, answer = patience["_slow_body"]
    assert answer == late
    assert took < 4
    _, answer = patience["_later_body"]
    assert answer == late


# ---- bodies and keep-alive


def test_a_body_of_4_mib_in_many_pieces(client: Client) -> None:
    client.send(req(body=b"x" * (4 << 20)))
    assert json.loads(client.reply()[2]) == {"size": 4 << 20}
    ping_works(client)


def test_one_byte_more_is_413_and_the_connection_lives(toy: Toy, client: Client) -> None:
    size = (4 << 20) + 1
    client.send(req(length=size))
    status, headers, body = client.reply()  # before a byte of the body is sent
    assert status == 413
    assert "connection" not in headers
    assert "4194305 bytes is over the limit of 4194304 bytes" in json.loads(body)["error"]
    client.send(b"x" * size)
    wait_until(toy.is_quiet)  # else it would be pipelined, see pipeline.h
    ping_works(client)


def test_a_huge_body_is_413_and_closed_without_losing_the_answer(client: Client) -> None:
    client.send(req(length=999_999_999))
    client.send_until_refused(b"x" * 65536, 40)
    status, headers, _ = client.reply()
    assert status == 413
    assert headers["connection"] == "close"
    assert client.at_end()


def test_a_refused_body_may_still_be_sent_for_a_while(client: Client) -> None:
    client.send(req(length=999_999_999))
    assert client.status() == 413
    assert client.at_end()  # no more from the server; a reset now could eat the answer
    client.drip([b"x" * 65536] * 5, 0.05)  # raises when the connection is reset


def test_an_early_answer_to_a_chunked_body_closes(client: Client) -> None:
    headers = {"Content-Type": "text/plain", "Transfer-Encoding": "chunked"}
    client.send(req(headers=headers) + b"5\r\nhello\r\n")
    status, answer, _ = client.reply()
    assert (status, answer["connection"]) == (415, "close")
    assert client.at_end()


def test_chunked_bodies_work_and_end_the_connection(client: Client) -> None:
    client.send(req(headers={"Content-Type": "application/json", "Transfer-Encoding": "Chunked"}))
    pieces = [
        b"5\r\nhel",
        b"lo\r\n",
        b"1",
        b"0;ext=1\r\n",
        b"x" * 16,
        b"\r\n0\r\nT: 1\r\n",
        b"\r\n",
    ]
    client.drip(pieces, 0.02)
    status, headers, body = client.reply()
    assert (status, json.loads(body)) == (200, {"size": 21})
    assert headers["connection"] == "close"
    assert client.at_end()


def test_a_chunked_body_over_the_cap_is_413(client: Client) -> None:
    client.send(req(headers={"Content-Type": "application/json", "Transfer-Encoding": "chunked"}))
    client.send_until_refused(b"10000\r\n" + b"x" * 65536 + b"\r\n", 70)
    assert client.error() == (
        413,
        "the body is over the limit of 4194304 bytes; send less in one request",
    )


def test_malformed_chunks_are_400(client: Client) -> None:
    client.send(
        req(headers={"Content-Type": "application/json", "Transfer-Encoding": "chunked"})
        + b"zz\r\nhello\r\n"
    )
    status, text = client.error()
    assert status == 400
    assert "chunked body is malformed" in text
    assert client.at_end()


@pytest.mark.parametrize(
    "extra",
    [
        {"Transfer-Encoding": "chunked", "Content-Length": "5"},
        {"Content-Length": "-5"},
        {"Content-Length": "+5"},
        {"Content-Length": "5, 5"},
        {"Content-Length": "0x5"},
        {"Content-Length": "5 5"},
        {"Content-Length": "9999999999999999999999"},
        {"Content-Length": "5\r\nContent-Length: 40"},
        {"Transfer-Encoding": "gzip"},
        {"Transfer-Encoding": "gzip, chunked"},
        {"Transfer-Encoding": "chunked\r\nTransfer-Encoding: identity"},
    ],
)
def test_bad_framing_is_refused_and_closes(client: Client, extra: dict[str, str]) -> None:
    head = req(headers={"Content-Type": "application/json"} | extra)
    client.send(head + b"hello" + req("GET", "/health"))
    status, headers, _ = client.reply()
    assert (status, headers["connection"]) == (400, "close")
    assert client.at_end()
    assert not client.buf


def test_chunks_without_post_are_400(client: Client) -> None:
    client.send(req("DELETE", headers={"Transfer-Encoding": "chunked"}) + b"0\r\n\r\n")
    assert client.error()[0] == 400


@pytest.mark.parametrize("extra", [{}, {"Content-Length": ""}])
def test_a_post_without_a_length_is_refused(client: Client, extra: dict[str, str]) -> None:
    client.send(req(headers={"Content-Type": "application/json"} | extra))
    status, text = client.error()
    assert status == (400 if extra else 411)
    assert "Content-Length" in text
    assert client.at_end()


def test_expect_100_continue_is_answered(client: Client) -> None:
    client.send(req(length=5, headers={"Expect": "100-continue"}))
    assert client.until(b"\r\n\r\n") == b"HTTP/1.1 100 Continue"
    client.send(b"hello")
    assert json.loads(client.reply()[2]) == {"size": 5}
    ping_works(client)


def test_curl_is_content_with_100_continue(toy: Toy) -> None:
    command = ["curl", "-sS", "--noproxy", "*", "-H", "Expect: 100-continue"]
    command += ["-H", "Content-Type: application/json", "--data-binary", "@-"]
    scheme = "http"
    if toy.cert:
        command += ["--cacert", str(toy.cert)]
        scheme = "https"
    out = subprocess.run(
        [*command, f"{scheme}://127.0.0.1:{toy.port}/mcp"],
        input=b"y" * 3_000_000,
        capture_output=True,
        check=True,
    )
    assert out.stdout == b'{"size":3000000}'


def test_a_refused_expect_closes(client: Client) -> None:
    client.send(req(length=5_000_000, headers={"Expect": "100-continue"}))
    status, headers, _ = client.reply()
    assert (status, headers["connection"]) == (413, "close")
    assert client.at_end()


SMUGGLED = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n" * 3


@pytest.mark.parametrize(
    ("bad", "want"),
    [
        (req(body=SMUGGLED, headers={"Content-Type": "text/plain"}), 415),
        (req(body=SMUGGLED, host="evil.example"), 403),
        (req(body=SMUGGLED, path="/nope"), 404),
        (req(body=SMUGGLED, headers={"Origin": "http://evil.example"}), 403),
        (req("PUT", body=SMUGGLED), 405),
        (req("DELETE", body=SMUGGLED), 200),
    ],
)
def test_early_answers_do_not_desynchronise(
    toy: Toy, client: Client, bad: bytes, want: int
) -> None:
    for _ in range(3):
        client.send(bad)
        assert client.status() == want
        wait_until(toy.is_quiet)
        client.send(bad[:-7])  # the body ends late
        if want != 200:
            assert client.status() == want
        client.send(bad[-7:])
        if want == 200:
            assert client.status() == want
        wait_until(toy.is_quiet)
        ping_works(client)


def test_pipelined_requests_without_a_body_are_answered_in_order(client: Client) -> None:
    client.send(req("GET", "/health") + req("DELETE") + req("GET", "/health"))
    assert [client.status() for _ in range(3)] == [200] * 3
    client.send(req(body=PING) + req("GET", "/health"))
    assert [client.status() for _ in range(2)] == [200] * 2


@pytest.mark.parametrize(("kind", "want"), [("application/json", 200), ("a/b", 415)])
def test_a_pipelined_body_is_never_misread(client: Client, kind: str, want: int) -> None:
    client.send(req(body=b"abc", headers={"Content-Type": kind}) + req(body=b"x" * 40))
    status, _, body = client.reply()
    assert status == want
    assert want != 200 or json.loads(body) == {"size": 3}
    assert client.at_end()
    assert not client.buf


@pytest.mark.parametrize("path", ["/mcp", "/hold"])
@pytest.mark.parametrize("method", ["POST", "GET"])
def test_a_request_behind_a_pending_answer_closes(
    toy: Toy, client: Client, method: str, path: str
) -> None:
    wait_until(toy.is_quiet)
    before, gone = toy.cpu_ticks(), toy.health()["gone"]
    body = b'{"method":"ticks"}' if method == "POST" else None
    client.send(req(method, path, body=body, headers=SSE))
    wait_until(lambda: not toy.is_quiet())
    if path == "/mcp":
        client.until(b"\r\n\r\n")
    client.send(req("GET", "/health") + req("GET", "/health"))
    assert client.at_end()
    assert b"HTTP/1.1" not in client.buf
    client.sock.close()  # with TLS, lws gives the other side 5 s to end it as well
    wait_until(toy.is_quiet)
    assert toy.health()["gone"] == gone + 1
    assert toy.cpu_ticks() - before < 25, "spins"


def test_http_1_0_and_connection_close(toy: Toy, client: Client) -> None:
    client.send(b"GET /health HTTP/1.0\r\nHost: localhost\r\n\r\n")
    assert client.reply()[1]["connection"] == "close"
    assert client.at_end()
    with toy.client() as second:
        second.send(req("GET", "/health", headers={"Connection": "close"}))
        assert second.reply()[1]["connection"] == "close"
        assert second.at_end()
    with toy.client() as third:
        third.send(
            b"POST /mcp HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b'Content-Length: 7\r\n\r\n"ticks"'
        )
        _, headers = third.head()
        assert "transfer-encoding" not in headers
        assert third.at_end()
        assert third.buf.endswith(b'data: {"left":0}\n\n')


# ---- paths and methods


@pytest.mark.parametrize("method", ["PUT", "OPTIONS", "PATCH"])
def test_other_methods_are_405_with_allow(client: Client, method: str) -> None:
    client.send(req(method, headers={"Content-Length": "0"}))
    status, headers, body = client.reply()
    assert (status, headers["allow"]) == (405, "post, get, delete")
    assert json.loads(body)["error"] == f"{method} is not offered at '/mcp'; use POST, GET, DELETE"
    ping_works(client)


@pytest.mark.parametrize(
    ("path", "allow"),
    [("/mcp", "post, get, delete"), ("/health", "get"), ("/nope", "get, post, delete")],
)
def test_head_is_405_before_anything_is_looked_up(client: Client, path: str, allow: str) -> None:
    client.send(req("HEAD", path))
    status, headers, _ = client.reply(body=False)
    assert (status, headers["allow"]) == (405, allow)
    ping_works(client)


def test_methods_that_lws_does_not_know_end_the_connection(toy: Toy) -> None:
    for method in ("PROPFIND", "TRACE", "GETT", "get"):
        with toy.client() as client:
            client.send(req(method))
            assert client.at_end()
            assert b" 200 " not in client.buf
    with toy.client() as client:
        client.send(b"CONNECT localhost:1 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert client.at_end()
        assert not client.buf


@pytest.mark.parametrize(
    "path",
    ["/", "/nope", "/mcp/", "/MCP", "/mcp2", "/.well-known/oauth-protected-resource", "/mcp%2fx"],
)
def test_unknown_paths_are_404_json_that_names_them(client: Client, path: str) -> None:
    client.send(req("GET", path))
    status, text = client.error()
    assert status == 404
    assert f"there is nothing at '{path.replace('%2f', '/')}'" in text
    ping_works(client)


def test_a_long_or_odd_path_is_cut_and_escaped(client: Client) -> None:
    client.send(req("GET", "/" + "a" * 3000))
    status, text = client.error()
    assert status == 404
    assert "a...'" in text
    assert len(text) < 250
    client.send(req("GET", "/%22%09%1b%c3%a4%ff\\"))
    status, text = client.error()
    assert status == 404
    assert "'/\"\t\x1b\u00e4\ufffd\\'" in text
    ping_works(client)


@pytest.mark.parametrize(
    "path", ["/health?", "/health?a=b&c", "/health?/mcp", "//health", "/x/../health"]
)
def test_a_query_is_ignored_and_a_path_is_normal(client: Client, path: str) -> None:
    client.send(req("GET", path))
    assert client.status() == 200


def test_an_absolute_target_does_not_pass_the_gate_by(client: Client) -> None:
    client.send(b"GET http://evil.example/health HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert client.at_end() or client.buf
    assert b" 200 " not in client.buf


# ---- headers and the gate


def test_custom_headers_both_ways(client: Client) -> None:
    want = {
        "mcp-session-id": "abc",
        "mcp-protocol-version": "2025-11-25",
        "mcp-method": "ping",
        "last-event-id": "7",
        "origin": "http://localhost",
        "X-User-ID": "u1",
        "user-agent": "me",
    }
    sent = {name.upper(): value + " " for name, value in want.items()}
    client.send(req(body=b'{"method":"headers"}', headers=sent))
    _, headers, body = client.reply()
    assert json.loads(body) == want
    assert headers["mcp-session-id"] == "s1"


@pytest.mark.parametrize(
    ("lines", "want"),
    [
        ("X-User-ID: a", "a"),
        ("X-User-ID: a\r\nX-User-ID: b", "(repeated)"),
        ("X-User-ID: a\r\nB: b\r\nx-user-id: a", "(repeated)"),
        ("X-User-ID: a\r\nX-User-ID: a\r\nX-User-ID: a", "(repeated)"),
        ("B: x-user-id: q\r\nX-User-ID: a\r\nB: x-user-id:", "a"),
        ("B: x-user-id: q\r\nX-User-ID: a\r\nB: x-user-id:\r\nX-USER-ID: b", "(repeated)"),
        ("X-User-ID: x-user-id:x-user-id:", "x-user-id:x-user-id:"),
        ("XX-User-ID: b\r\nX-User-ID: a\r\nX-User-IDD: c", "a"),
        ("B: " + "x-user-id: " * 20 + "\r\nX-User-ID: a", "(repeated)"),
        ("B: b", ""),
    ],
)
def test_a_custom_header_that_comes_twice_is_told(client: Client, lines: str, want: str) -> None:
    for _ in range(2):  # the second finds what the first left in memory
        body = b'{"method":"headers"}'
        client.send(
            f"POST /mcp?x-user-id: HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        status, _, answer = client.reply()
        assert (status, json.loads(answer)["X-User-ID"]) == (200, want)


@pytest.mark.parametrize(
    "head",
    [
        "DELETE \r\nGET /health \r\n\r\n",  # the path was not where it was looked for
        "DELETE /mcp HTTP/1.1\r\nHost: localhost\r\nGET /health HTTP/1.1\r\n\r\n",
        "GET /health HTTP/1.1\r\nHost: localhost\r\nPOST /mcp HTTP/1.1\r\nX-User-ID: a\r\n\r\n",
    ],
)
def test_a_head_with_two_request_lines_is_refused(toy: Toy, head: str) -> None:
    with toy.client() as client:
        client.send(head.encode())
        assert client.at_end(30)  # lws itself may have closed it
        assert not client.buf or client.status() in {400, 403}
    with toy.client() as client:
        ping_works(client)


@pytest.mark.parametrize(
    "name", ["A", "X-Auth", "user", "Content", "Sec-WebSocket", "X-Forwarded", "t"]
)
@pytest.mark.parametrize(
    "lost", ["Origin: http://evil.example", "X-User-ID: b", "Content-Length: 9"]
)
@pytest.mark.parametrize("pad", [0, 7800])
def test_a_header_that_lws_would_lose_is_noticed(toy: Toy, name: str, lost: str, pad: int) -> None:
    headers: dict[str, str | None] = {"B": "x" * pad, "X-User-ID": "a", name: f"1\r\n{lost}"}
    with toy.client() as client:
        client.send(req("GET", "/health", headers=headers) + b"GET / HTT")
        assert client.error() == (
            400,
            f"the header '{name.lower()}' hides the one that follows it from this server; "
            "rename it or leave it out",
        )
        assert client.at_end()
        assert not client.buf
    with toy.client() as client:  # finds in memory what the last one left
        for _ in range(3):
            ping_works(client)


def test_a_head_as_large_as_may_be_has_no_blind_spot(toy: Toy) -> None:
    statuses = []
    for pad in range(7900, 8150):
        headers: dict[str, str | None] = {"B": "x" * pad, "A": "1\r\nC: d"}
        with toy.client() as client:
            client.send(req("GET", "/health", headers=headers))
            statuses.append(client.status() if client.more() else 0)
            client.sock.close()
    assert set(statuses) == {400, 0}


def test_a_head_may_have_6_kb_but_not_9(toy: Toy, client: Client) -> None:
    headers = {"Mcp-Session-Id": "a" * 200, "X-Pad": "p" * 6000}
    client.send(req(body=b'{"method":"headers"}', headers=headers))
    assert json.loads(client.reply()[2])["mcp-session-id"] == "a" * 200
    with toy.client() as second:
        with contextlib.suppress(OSError):
            second.send(req(body=PING, headers={"X-Pad": "p" * 9000}))
        assert second.at_end()  # lws closes without a 431
        assert not second.buf
    ping_works(client)


@pytest.mark.parametrize(
    ("host", "origin", "want"),
    [
        ("localhost", None, 200),
        ("localhost:123", None, 200),
        ("[::1]:9", None, 200),
        ("vivarium:8000", None, 200),
        ("127.0.0.1", "http://localhost", 200),
        ("localhost", "https://localhost:9", 200),
        ("localhost.evil.example", None, 403),
        ("evil.example", None, 403),
        ("localhost:1:2", None, 403),
        ("a" * 3000, None, 403),
        ("localhost\r\nHost: evil.example", None, 403),
        ("localhost\r\nHost: localhost", None, 403),
        ("localhost", "null", 403),
        ("localhost", "", 403),
        ("localhost", "http://evil.example", 403),
        ("localhost", "http://localhost\r\nOrigin: http://evil.example", 403),
        ("localhost", "x" * 3000, 403),
        ("", None, 400),
        (None, None, 400),
    ],
)
def test_host_and_origin_are_checked_first(
    client: Client, host: str | None, origin: str | None, want: int
) -> None:
    client.send(
        req("GET", "/health" if want == 200 else "/nope", host=host, headers={"Origin": origin})
    )
    if want == 200:
        assert client.status() == 200
    else:
        assert client.error()[0] == want


def test_the_gate_says_what_to_do(client: Client) -> None:
    client.send(req(body=PING, host="evil.example:80"))
    assert client.error() == (
        403,
        "Host 'evil.example:80' is not allowed here; use localhost or 127.0.0.1, "
        "or add it to VIVARIUM_ALLOWED_HOSTS",
    )
    client.send(req("GET", "/health", headers={"Origin": 'http://"evil"' + "x" * 300}))
    status, text = client.error()
    assert status == 403
    assert text.startswith('Origin \'http://"evil"xx')
    assert "x...' is not allowed here" in text


def test_allowed_hosts_are_let_in(other: Callable[..., Toy]) -> None:
    toy = other("allowed_hosts=a.example, py.example.org")
    with toy.client() as client:
        for host, want in (("py.example.org", 200), ("A.example:1", 200), ("b.example", 403)):
            client.send(req("GET", "/health", host=host))
            assert client.status() == want


def test_upgrades_are_refused_in_words_where_that_is_safe(toy: Toy) -> None:
    for upgrade in ("websocket", "h2c", "foo"):
        for first in (True, False):  # CVE-2025-11677 needs a second request
            with toy.client() as client:
                if not first:
                    ping_works(client)
                headers = {"Upgrade": upgrade, "Connection": "Upgrade"}
                headers["HTTP2-Settings"] = "AAMAAABkAARAAAAAAAIAAAAA"
                headers["Sec-WebSocket-Key"] = "MDAwMDAwMDAwMDAwMDAwMA=="
                headers["Sec-WebSocket-Version"] = "13"
                client.send(req("GET", "/health", headers=headers))
                if upgrade != "foo":
                    status, text = client.error()
                    assert status == 501
                    assert f"Upgrade: {upgrade} is not offered here" in text
                assert client.at_end()
                assert b" 101 " not in client.buf
                assert b" 200 " not in client.buf
    with toy.client() as client:
        client.send(
            req("GET", host="evil.example", headers={"Upgrade": "h2c", "Connection": "Upgrade"})
        )
        assert client.error()[0] == 403
    with toy.client() as client:
        ping_works(client)


# ---- streams and late answers


def test_a_get_stream_starts_at_once_comments_and_its_end_is_noticed(
    toy: Toy, client: Client
) -> None:
    wait_until(toy.is_quiet)
    start = time.monotonic()
    client.send(req("GET", headers=SSE))
    status, headers = client.head()
    assert status == 200
    assert headers["content-type"] == "text/event-stream"
    assert headers["cache-control"] == "no-store"
    assert client.chunk() == COMMENT
    assert time.monotonic() - start < 0.5
    assert client.chunk() == COMMENT
    assert 0.8 < time.monotonic() - start < 2.5
    assert toy.health()["streams"] == 1
    client.sock.close()
    wait_until(lambda: toy.health()["streams"] == 0, 1)


@pytest.mark.parametrize("accept", [None, "application/json", "text/html"])
def test_a_route_may_refuse_in_begin(client: Client, accept: str | None) -> None:
    client.send(req("GET", headers={"Accept": accept}))
    assert client.error() == (406, "accept text/event-stream")
    ping_works(client)


@pytest.mark.parametrize("accept", ["*/*", "text/*;q=0.5", "application/json, text/event-stream"])
def test_accept_knows_lists_and_wildcards(client: Client, accept: str) -> None:
    client.send(req("GET", headers={"Accept": accept}))
    assert client.head()[0] == 200


def test_an_idle_stream_costs_no_cpu(toy: Toy) -> None:
    clients = [toy.client() for _ in range(3)]
    for client in clients:
        client.send(req("GET", headers=SSE))
        client.until(b"\r\n\r\n")
        assert client.chunk() == COMMENT
    before = toy.cpu_ticks()
    for client in clients:
        assert client.chunk() == COMMENT  # about a second later
    assert toy.cpu_ticks() - before < 10
    clients[0].send(b"junk that is not read")  # bytes on an open stream
    assert clients[1].chunk() == COMMENT
    assert toy.cpu_ticks() - before < 20, "spins"
    for client in clients:
        client.sock.close()
    wait_until(toy.is_quiet)


def test_a_post_answered_as_a_stream_then_the_next_request(toy: Toy, client: Client) -> None:
    for _ in range(2):
        client.send(req(body=b'{"method":"ticks"}'))
        _, headers = client.head()
        assert headers["mcp-session-id"] == "s1"
        events: list[bytes] = []
        while events[-1:] != [b""]:
            events.append(client.chunk())
        ticks = [b'data: {"left":%d}\n\n' % i for i in (3, 2, 1, 0)]
        assert events == [COMMENT, *ticks, b""]
        ping_works(client)
    wait_until(toy.is_quiet)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_client_that_leaves_is_noticed_before_the_answer(toy: Toy, method: str) -> None:
    wait_until(toy.is_quiet)
    gone = toy.health()["gone"]
    with toy.client() as client:
        client.send(req(method, "/hold", body=b"x" * 10))
        wait_until(lambda: not toy.is_quiet())
    wait_until(lambda: toy.health()["gone"] == gone + 1, 1)
    assert toy.is_quiet()


def test_a_client_that_leaves_a_stream_is_noticed(toy: Toy) -> None:
    with toy.client() as client:
        client.send(req(body=b'{"method":"ticks"}'))
        client.until(b"\r\n\r\n")
    wait_until(lambda: toy.health()["streams"] == 0, 0.5)


def test_an_answer_from_another_connections_callback_goes_out(toy: Toy) -> None:
    with toy.client() as get, toy.client() as post, toy.client() as third:
        get.send(req("GET", "/hold"))
        post.send(req("POST", "/hold", body=b"x"))
        wait_until(lambda: toy.health()["busy"] == 3)
        third.send(req("POST", "/release", body=b"x"))
        status, headers, _ = third.reply()
        assert status == 204
        assert "content-length" not in headers
        for held in (get, post):
            assert held.reply()[2] == b'{"released":true}'
            ping_works(held)


def test_a_client_that_stops_reading_does_not_grow_memory_and_may_resume(toy: Toy) -> None:
    before = toy.rss_kb()
    with toy.client(rcvbuf=8192) as client:
        client.send(req(body=b'{"method":"flood"}'))
        seen = [-1, -2]

        def has_stalled() -> bool:
            seen.append(toy.health()["flooded"])
            return seen[-1] == seen[-2] == seen[-3] > 0

        wait_until(has_stalled)
        stalled = seen[-1]
        assert stalled < 12 << 20
        assert toy.rss_kb() - before < 16000
        client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        got, end = 0, time.monotonic() + 5
        while got <= stalled * 2 and time.monotonic() < end:
            got += len(client.sock.recv(1 << 20))
        assert got > stalled * 2, "does not resume"
    wait_until(toy.is_quiet)


def test_a_client_that_takes_nothing_is_cut_off(other: Callable[..., Toy]) -> None:
    toy = other("stall_timeout_s=1")
    with toy.client(rcvbuf=8192) as stalled, toy.client() as idle:
        idle.send(req("GET", headers=SSE))  # has nothing to take: is left alone
        idle.until(b"\r\n\r\n")
        stalled.send(req(body=b'{"method":"flood"}'))
        wait_until(lambda: toy.health()["streams"] == 2)
        wait_until(lambda: toy.health()["streams"] == 1, 4)
        assert toy.health()["gone"] == 1
        assert stalled.at_end()
        assert idle.chunk() == COMMENT
    wait_until(toy.is_quiet)
    assert "took nothing for 1 s" in toy.log.read_text()


# ---- limits, addresses, stopping


def test_connections_are_given_back(toy: Toy) -> None:
    wait_until(toy.is_quiet)
    before = toy.fds()
    with contextlib.ExitStack() as stack:
        for _ in range(50):
            ping_works(stack.enter_context(toy.client()))
        assert toy.fds() >= before + 49
    wait_until(lambda: toy.fds() <= before + 1)


def test_connections_are_bounded(other: Callable[..., Toy]) -> None:
    toy = other("connections_max=8")
    before = toy.fds()
    with contextlib.ExitStack() as stack:
        for _ in range(6):  # this machine's share: see wire/peers.h
            ping_works(stack.enter_context(toy.client()))
        with contextlib.suppress(OSError):
            seventh = stack.enter_context(toy.client())
            seventh.send(req("GET", "/health"))
            assert seventh.at_end()
            assert not seventh.buf
    wait_until(lambda: toy.fds() <= before)
    assert toy.is_quiet()


def test_bodies_are_bounded_together(other: Callable[..., Toy]) -> None:
    toy = other("bodies_max=4000000")  # of which this machine gets three quarters
    part = b"x" * 1_400_000
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(toy.client()) for _ in range(2)]
        for client in held:
            client.send(req("POST", "/hold", body=part))
        wait_until(lambda: toy.health()["held"] == 2)
        refused = stack.enter_context(toy.client())
        refused.send(req(body=part))
        assert refused.error() == (503, "too many large requests at once; send it again later")
        ping_works(stack.enter_context(toy.client()))
        held[0].sock.close()
        wait_until(lambda: toy.health()["held"] == 1)
        later = stack.enter_context(toy.client())
        for _ in range(2):  # the first one's room is given back by then
            later.send(req(body=part))
            assert later.status() == 200


def test_ipv6_is_served(other: Callable[..., Toy]) -> None:
    toy = other("address=::1")
    if not toy.port:
        pytest.skip(f"no IPv6 loopback here: {toy.log.read_text()}")
    with Client(toy.port, host="::1") as client:
        client.send(req("GET", "/health", host=f"[::1]:{toy.port}"))
        assert client.status() == 200
        ping_works(client)


def test_a_name_for_the_address_is_served(other: Callable[..., Toy]) -> None:
    for address in ("localhost", "0.0.0.0"):
        with other(f"address={address}").client() as client:
            ping_works(client)


@pytest.mark.parametrize(
    ("options", "want"),
    [
        (
            ["address=127.0.0.1", "port={port}"],
            "another program has this port: stop it, or choose another with --port: listen on "
            "127.0.0.1:{port}: Address already in use",
        ),
        (
            ["address=203.0.113.7", "port=1"],
            "this machine does not have this address: choose another with --host: listen on "
            "203.0.113.7:1: Cannot assign requested address",
        ),
        (["address=nobody.invalid"], "listen on nobody.invalid:0: not an IP address"),
        (
            ["address=2001:db8::7", "port=9"],
            "this machine does not have this address: choose another with --host: listen on "
            "[2001:db8::7]:9: Cannot assign requested address",
        ),
    ],
)
def test_a_failure_to_listen_says_why(
    toy: Toy, tmp_path: Path, options: list[str], want: str
) -> None:
    failed = Toy(tmp_path, *[option.format(port=toy.port) for option in options])
    assert not failed.port
    failed.stop(code=1)
    assert failed.log.read_text() == want.format(port=toy.port) + "\n"


def test_stopping_ends_streams_and_lets_answers_out(other: Callable[..., Toy]) -> None:
    toy = other("later_ms=300")
    stream, post, late, idle = (toy.client() for _ in range(4))
    ping_works(idle)
    stream.send(req("GET", headers=SSE))
    stream.until(b"\r\n\r\n")
    late.send(req("POST", "/later", body=b"x"))
    post.send(req(body=b'{"method":"ticks"}'))
    post.until(b"\r\n\r\n")
    wait_until(lambda: toy.health()["busy"] == 4)
    toy.process.send_signal(signal.SIGTERM)
    while stream.chunk():
        pass
    assert stream.at_end()
    with contextlib.suppress(OSError), toy.client() as new:
        new.send(req("GET", "/health"))
        assert new.at_end()
        assert not new.buf
    idle.send(req("GET", "/health"))
    assert idle.reply()[1]["connection"] == "close"
    assert idle.at_end()
    status, headers, body = late.reply()
    assert (status, body) == (200, b'{"late":true}')
    assert headers["connection"] == "close"
    assert post.at_end()
    assert b'data: {"left":0}\n\n' in post.buf
    for client in (stream, post, late, idle):
        client.sock.close()
    toy.process.wait(5)


def test_ending_in_the_middle_tells_every_owner(other: Callable[..., Toy]) -> None:
    toy = other()
    with contextlib.ExitStack() as stack:
        stream, held, half, flood, last = (stack.enter_context(toy.client()) for _ in range(5))
        stream.send(req("GET", headers=SSE))
        held.send(req("GET", "/hold"))
        half.send(req(length=100) + b"half")
        flood.send(req(body=b'{"method":"flood"}'))
        wait_until(lambda: toy.health()["busy"] == 5)
        last.send(req("POST", "/quit", body=b"x"))
        assert toy.process.wait(5) == 0  # 2 if a stream's owner was not told

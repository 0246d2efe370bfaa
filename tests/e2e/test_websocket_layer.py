"""WebSockets (wire/ws*) from outside, frame by frame, against toy_http, which echoes."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from frames import (
    BINARY,
    CLOSE,
    CONTINUATION,
    PING,
    PONG,
    TEXT,
    Refused,
    WebSocket,
    frame,
)
from harness import make_certificate
from test_http_layer import Toy, other, ping_works, req, wait_until

LIMIT = 4 << 20


__all__ = ["other"]  # a fixture


@pytest.fixture(scope="module", params=["ws", "wss"])
def toy(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Toy]:
    tmp = tmp_path_factory.mktemp("toy")
    options, cert = [], None
    if request.param == "wss":
        cert, key = make_certificate(tmp)
        options = [f"tls_cert={cert}", f"tls_key={key}"]
    toy = Toy(tmp, *options, cert=cert)
    yield toy
    toy.stop()


def connect(toy: Toy, **options: Any) -> WebSocket:
    return WebSocket(toy.port, tls=toy.tls, **options)


# ---- before 101 ----


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 403),
        ({"Host": None}, 400),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"A": "x", "Origin": "http://evil.example"}, 400),  # lws loses the second
        ({"path": "/other"}, 404),
        ({"path": "/mcp/"}, 404),
        ({"path": "/health"}, 501),
        ({"Upgrade": "h2c"}, 501),
        ({"Sec_WebSocket_Version": "8"}, 426),
        ({"Sec_WebSocket_Version": None}, 426),
        ({"Sec_WebSocket_Key": None}, 400),
        ({"Sec_WebSocket_Key": "short"}, 400),
        ({"Sec_WebSocket_Protocol": "foo"}, 400),
        ({"Sec_WebSocket_Protocol": "none"}, 400),
        ({"Sec_WebSocket_Protocol": ""}, 400),
        ({"Content_Length": "5"}, 400),
        ({"Transfer_Encoding": "chunked"}, 400),
    ],
)
def test_what_is_refused_gets_a_plain_answer(
    toy: Toy, headers: dict[str, Any], status: int
) -> None:
    with pytest.raises(Refused) as refused:
        connect(toy, **headers)
    assert refused.value.status == status
    assert json.loads(refused.value.body)["error"]
    if status == 426:
        assert refused.value.headers["sec-websocket-version"] == "13"
    with toy.client() as client:
        ping_works(client)


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [
        ("mcp", "mcp"),
        ("foo, mcp", "mcp"),
        ("mcp.auth.abc, mcp", "mcp"),
        ("mcp.version.1", "mcp.version.1"),
        (None, None),
    ],
)
def test_a_known_subprotocol_is_echoed(toy: Toy, offered: str | None, chosen: str | None) -> None:
    with connect(toy, Sec_WebSocket_Protocol=offered) as ws:
        assert ws.headers.get("sec-websocket-protocol") == chosen
        ws.text("hello")
        assert ws.message() == b"hello"


def test_compression_is_not_agreed_on(toy: Toy) -> None:
    with connect(toy, Sec_WebSocket_Extensions="permessage-deflate") as ws:
        assert "sec-websocket-extensions" not in ws.headers
        ws.text("hello")
        assert ws.message() == b"hello"


def test_it_may_follow_a_request_and_bring_its_first_frame_along(toy: Toy) -> None:
    with connect(toy, first=frame(TEXT, b"at once")) as ws:
        assert ws.message() == b"at once"
    with toy.client() as client:
        ping_works(client)
        headers = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
        headers["Sec-WebSocket-Key"] = "MDAwMDAwMDAwMDAwMDAwMA=="
        client.send(req("GET", headers=headers))
        assert client.head()[0] == 101
        client.send(frame(TEXT, b"later"))
        assert client.take(7) == b"\x81\x05later"


# ---- messages ----


def test_fragments_make_one_message_with_pings_between(toy: Toy) -> None:
    with connect(toy) as ws:
        ws.send(frame(TEXT, b"a" * 70000, fin=False) + frame(CONTINUATION, b"", fin=False))
        ws.send(frame(PING, b"p"))
        assert ws.frame() == (PONG, True, b"p")
        ws.send(frame(CONTINUATION, b"b" * 70000))
        assert ws.message() == b"a" * 70000 + b"b" * 70000


def test_fragments_of_one_byte(toy: Toy) -> None:
    text = "grün ".encode() * 400
    pieces = [frame(CONTINUATION, text[i : i + 1], fin=False) for i in range(1, len(text) - 1)]
    with connect(toy) as ws:
        ws.send(frame(TEXT, text[:1], fin=False))
        for piece in pieces:
            ws.send(piece)
        ws.send(frame(CONTINUATION, text[-1:]))
        assert ws.message() == text


def test_an_empty_message_and_many_at_once(toy: Toy) -> None:
    with connect(toy) as ws:
        ws.text("")
        assert ws.message() == b""
        ws.send(b"".join(frame(TEXT, str(n).encode()) for n in range(2000)))
        assert [int(ws.message()) for _ in range(2000)] == list(range(2000))


def test_a_message_has_4_mib_and_not_a_byte_more(toy: Toy) -> None:
    whole = b"z" * LIMIT
    with connect(toy) as ws:
        ws.send(frame(TEXT, whole[: LIMIT // 2], fin=False) + frame(0, whole[LIMIT // 2 :]))
        assert ws.message() == whole
        ws.send(frame(TEXT, whole + b"!")[:15])  # what it announces, and a byte
        assert ws.close_code() == 1009
    with connect(toy) as ws:
        ws.send(frame(TEXT, whole, fin=False))
        ws.send_while_taken(frame(CONTINUATION, b"!"))
        assert ws.close_code() == 1009


def test_20_mib_go_out_in_one_message(toy: Toy) -> None:
    with connect(toy) as ws:
        ws.text("send 20 MiB")
        assert ws.message() == b"z" * (20 << 20)


# ---- its end ----


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (frame(BINARY, b"\0\1"), 1003),
        (frame(BINARY, b""), 1003),
        (frame(TEXT, b"\xff\xfe"), 1007),
        (frame(TEXT, "ü".encode()[:1]), 1007),
        (frame(TEXT, "ü".encode()[:1], fin=False) + frame(CONTINUATION, b"x"), 1007),
    ],
)
def test_what_is_no_text_closes_with_its_code(toy: Toy, data: bytes, code: int) -> None:
    with connect(toy) as ws:
        ws.send(data)
        assert ws.close_code() == code
    with connect(toy) as ws:
        ws.text("others go on")
        assert ws.message() == b"others go on"


@pytest.mark.parametrize(
    "data",
    [
        frame(TEXT, b"x", flags=0x40),  # a reserved bit
        frame(3, b"x"),  # a reserved opcode
        frame(11, b"x"),
        frame(CONTINUATION, b"x"),  # of nothing
        frame(TEXT, b"x", fin=False) + frame(TEXT, b"y"),
        frame(PING, b"x" * 126),
        frame(PING, b"x", fin=False),
        frame(CLOSE, b"x"),
        b"\x81\xff" + struct.pack(">Q", 1 << 63) + b"mask",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
)
def test_what_breaks_the_protocol_ends_the_connection(toy: Toy, data: bytes) -> None:
    with connect(toy) as ws:
        ws.send(data)
        assert ws.close_code() in {0, 1002, 1005, 1009}
    with connect(toy) as ws:
        ws.text("others go on")
        assert ws.message() == b"others go on"


def test_a_close_is_answered(toy: Toy) -> None:
    with connect(toy) as ws:
        ws.send(frame(CLOSE, struct.pack(">H", 1000)))
        assert ws.frame()[0] == CLOSE
    wait_until(lambda: toy.health()["sockets"] == 0)


def test_who_just_leaves_is_noticed(toy: Toy) -> None:
    sockets = [connect(toy) for _ in range(5)]
    assert toy.health()["sockets"] == 5
    sockets[0].send(frame(TEXT, b"x" * 1000)[:500])
    for ws in sockets:
        ws.sock.close()
    wait_until(lambda: toy.health()["sockets"] == 0)


def test_pings_come_and_who_does_not_answer_is_cut_off(other: Callable[..., Toy]) -> None:
    toy = other("ping_s=1")
    with connect(toy) as alive, connect(toy) as dead:
        dead.answers_pings = False
        with ThreadPoolExecutor() as pool:
            code = pool.submit(dead.close_code)
            assert alive.listen(4) == []
            assert code.result(10) == 0
        assert dead.pings >= 1
        assert alive.pings >= 2
        alive.text("still here")
        assert alive.message() == b"still here"


def test_who_reads_nothing_is_bounded_and_cut_off(other: Callable[..., Toy]) -> None:
    toy = other("stall_timeout_s=2")
    with connect(toy, rcvbuf=4096) as ws, connect(toy) as neighbour:
        before = toy.rss_kb()
        ws.sock.settimeout(1)
        with pytest.raises(TimeoutError):
            ws.send(frame(TEXT, b"y" * 100_000) * 400)
        assert toy.rss_kb() - before < 16 * 1024, "only what 1 MiB of queue can cost"
        neighbour.text("not disturbed")
        assert neighbour.message() == b"not disturbed"
        wait_until(lambda: toy.health()["sockets"] == 1, 8)


def test_a_slow_reader_gets_all_of_it_in_the_end(other: Callable[..., Toy]) -> None:
    toy = other("ping_s=1")
    with connect(toy, rcvbuf=4096) as ws:
        for n in range(40):
            ws.text(str(n).encode() + b"y" * 100_000)
        for n in range(40):
            assert ws.message() == str(n).encode() + b"y" * 100_000


def test_a_message_that_never_ends_is_cut_off(other: Callable[..., Toy]) -> None:
    toy = other("stall_timeout_s=2", "body_timeout_s=1")
    with connect(toy) as ws:
        ws.send(frame(TEXT, b"x", fin=False))
        assert ws.close_code() == 1008


def test_stopping_closes_with_1012(other: Callable[..., Toy]) -> None:
    toy = other()
    with connect(toy) as ws:
        toy.process.terminate()
        assert ws.close_code() == 1012
    toy.process.wait(10)


def test_an_end_in_the_middle_of_everything(other: Callable[..., Toy]) -> None:
    toy = other()
    with connect(toy, rcvbuf=4096) as ws, toy.client() as client:
        ws.text("send 20 MiB")
        ws.send(frame(TEXT, b"half", fin=False))
        client.send(req("POST", "/quit", body=b"{}"))
        assert ws.close_code() == 0

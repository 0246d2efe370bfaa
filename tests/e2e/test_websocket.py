"""MCP over WebSockets: both eras, who asks, cancelling, and what ends a connection."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import type_of_start
from dialogue import BATCHES, META, STATELESS, Dialogue
from frames import TEXT, Closed, Refused, WebSocket, frame
from harness import Daemon, exchange, make_certificate, wait_until

SLEEP = "open('begun', 'w').close(); import time; time.sleep(100)"


class Talk(Dialogue):
    """A conversation over one."""

    def __init__(self, daemon: Daemon, path: str = "/mcp", **options: Any) -> None:
        super().__init__()
        self.ws = WebSocket(daemon.port, path, **options)

    def send(self, message: object) -> None:
        self.ws.text(message if isinstance(message, bytes) else json.dumps(message))

    def read(self) -> Any:
        return json.loads(self.ws.message())


type_of_connect = Callable[..., Talk]


@pytest.fixture
def connect() -> Iterator[type_of_connect]:
    """connect(daemon, ...): conversations that end with the test."""
    begun: list[Talk] = []

    def begin(daemon: Daemon, *args: str, **options: Any) -> Talk:
        begun.append(Talk(daemon, *args, **options))
        return begun[-1]

    yield begin
    for talk in begun:
        talk.ws.sock.close()


@pytest.fixture
def talk(shared: Daemon, connect: type_of_connect) -> Talk:
    talk = connect(shared).initialize()
    talk.run("%reset -f")
    return talk


def begun(daemon: Daemon) -> Path:
    return daemon.work / "begun"


def wait_for_begun(daemon: Daemon) -> None:
    wait_until(begun(daemon).exists, 20)
    begun(daemon).unlink()


def test_each_era_and_both_paths(shared: Daemon, talk: Talk, connect: type_of_connect) -> None:
    assert talk.run("x = 41").startswith("(no output)")
    other = connect(shared, "/ws", Sec_WebSocket_Protocol=None)  # the newest needs no initialize
    assert other.request("server/discover", {"_meta": META})["supportedVersions"] == [STATELESS]
    assert other.run("x + 1", _meta=META).endswith(": 42")
    assert other.request("tools/list")["code"] == -32600
    assert other.request("ping") == {}
    wanted = other.ask("initialize", {"_meta": META})
    assert other.read() == {
        "jsonrpc": "2.0",
        "id": wanted,
        "error": {"code": -32601, "message": "Method not found: initialize"},
    }


def test_lists_answer_while_a_cell_runs(shared: Daemon, talk: Talk) -> None:
    wanted = talk.ask_run(SLEEP)
    wait_for_begun(shared)
    assert talk.request("ping") == {}
    assert talk.request("tools/list")["tools"]
    talk.cancel(wanted)
    assert talk.run("7").endswith(": 7"), "the cancelled one is not answered"


def test_a_question_of_a_cancelled_call_is_withdrawn(
    shared: Daemon, connect: type_of_connect
) -> None:
    (shared.work / "theirs").write_text("old")
    connect(shared).initialize(elicitation={}).check_question_is_withdrawn("theirs")
    assert (shared.work / "theirs").read_text() == "old"


def test_an_id_in_flight_is_refused_without_it(shared: Daemon, talk: Talk) -> None:
    talk.ask_run(SLEEP)
    wait_for_begun(shared)
    talk.ids = itertools.count(int(next(talk.ids)) - 1)
    wanted = talk.ask_run("1")
    error = talk.read()
    assert error["id"] is None
    assert f"id {wanted} " in error["error"]["message"]
    talk.cancel(wanted)


def test_batches_only_where_the_revision_has_them(
    shared: Daemon, talk: Talk, connect: type_of_connect
) -> None:
    ping = {"jsonrpc": "2.0", "id": "a", "method": "ping"}
    note = {"jsonrpc": "2.0", "method": "notifications/x"}
    talk.send([ping])
    assert talk.read()["error"]["code"] == -32600
    old = connect(shared).initialize(BATCHES)
    old.send([ping, note, ping | {"id": "b", "method": "none"}, 5])
    answers = old.read()
    assert [answer["id"] for answer in answers] == ["a", "b", None]
    assert [answer.get("error", {}).get("code") for answer in answers] == [None, -32601, -32600]
    old.send([note])
    old.send([])
    assert "1 to 100" in old.read()["error"]["message"]
    for count in (101, 10_000):
        old.send([ping] * count)
        assert "1 to 100" in old.read()["error"]["message"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b"nonsense", -32700),
        (b"", -32700),
        (b"[" * 10_000 + b"]" * 10_000, -32700),
        (b"42", -32600),
        (b'{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}', -32600),
    ],
    ids=["nonsense", "empty", "deep", "number", "id"],
)
def test_bad_messages_are_answered_and_the_next_one_works(
    talk: Talk, text: bytes, code: int
) -> None:
    talk.send(text)
    assert talk.read()["error"]["code"] == code
    assert talk.request("ping") == {}


def test_an_argument_of_5_mib_closes_it_and_disturbs_nobody(
    shared: Daemon, talk: Talk, connect: type_of_connect
) -> None:
    large = connect(shared).initialize()
    params = {"name": "run_python", "arguments": {"code": "#" + "x" * (5 << 20)}}
    message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    sender = threading.Thread(target=large.ws.send_while_taken, args=(message.encode(),))
    large.ws.send(b"\x81\xff" + len(message).to_bytes(8, "big") + b"\0\0\0\0")
    sender.start()
    assert large.ws.close_code() in {1009, 0}
    sender.join()
    assert talk.request("ping") == {}


PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "tls"])
def test_a_frame_that_is_not_masked_closes_it_with_1002(
    start: type_of_start, tmp_path: Path, secure: bool
) -> None:
    """Which libwebsockets 4.1 does not say itself."""
    cert, key = make_certificate(tmp_path)
    files = {"VIVARIUM_TLS_CERT": str(cert), "VIVARIUM_TLS_KEY": str(key)}
    daemon = start(env=files if secure else {})
    if daemon.log_contains("does not let see"):
        pytest.skip("this libwebsockets takes frames without a mask, and does not tell")
    tls = ssl.create_default_context(cafile=cert) if secure else None
    unmasked, large = frame(TEXT, PING, mask=b""), PING.ljust(70_000)
    begun = frame(TEXT, PING[:9], fin=False)
    goods = [frame(TEXT, PING, mask=bytes(4)), frame(TEXT, large), begun + frame(0, PING[9:])]
    bads = [
        [unmasked],
        [unmasked[:1], unmasked[1:7], unmasked[7:]],
        [begun + frame(0, PING[9:], mask=b"")],
        [frame(TEXT, large, mask=b"")],
        [frame(TEXT, b"", mask=b"")],
    ]
    with contextlib.closing(WebSocket(daemon.port, tls=tls, Host="masks").sock):
        for bad in bads:
            ws = WebSocket(daemon.port, tls=tls)
            for good in goods:
                ws.send(good)
                assert json.loads(ws.message())["result"] == {}
            for piece in bad:
                ws.send_while_taken(piece)
            assert ws.close_code() == 1002
            ws.sock.close()


def test_who_leaves_lets_older_calls_go_on(
    shared: Daemon, talk: Talk, connect: type_of_connect
) -> None:
    other = connect(shared).initialize()
    other.ask_run("open('begun', 'w').close(); import time; time.sleep(2); gone_on = 1")
    wait_for_begun(shared)
    other.ws.sock.close()
    assert talk.run("gone_on").endswith(": 1")


def test_who_leaves_cancels_what_is_stateless(
    shared: Daemon, talk: Talk, connect: type_of_connect
) -> None:
    other = connect(shared)
    other.ask_run(SLEEP, _meta=META)
    wait_for_begun(shared)
    other.ws.sock.close()
    assert talk.run("'free'").endswith(": 'free'")


def test_who_may_come_in_by_token(start: type_of_start, connect: type_of_connect) -> None:
    token = "viv_AbC-123_xyz~more"
    daemon = start(env={"VIVARIUM_TOKEN": token})
    for headers in (
        {},
        {"Authorization": "Bearer wrong"},
        {"Sec_WebSocket_Protocol": "mcp, mcp.auth.wrong"},
        {"Authorization": "Bearer wrong", "Sec_WebSocket_Protocol": f"mcp.auth.{token}, mcp"},
    ):
        with pytest.raises(Refused) as refused:
            connect(daemon, **headers)
        assert refused.value.status == 401
    with pytest.raises(Refused) as refused:
        connect(daemon, Sec_WebSocket_Protocol=f"mcp.auth.{token}")
    assert refused.value.status == 400  # it would have to be echoed
    for headers in (
        {"Authorization": f"Bearer {token}"},
        {"Sec_WebSocket_Protocol": f"mcp.auth.{token}, mcp"},
        {"Sec_WebSocket_Protocol": f"mcp, mcp.auth.{token}"},
    ):
        talk = connect(daemon, **headers)
        assert talk.ws.headers["sec-websocket-protocol"] == "mcp" or "Authorization" in headers
        assert talk.initialize().request("ping") == {}
        talk.ws.sock.close()
    assert token not in daemon.log()


def test_a_token_that_is_taken_away_closes_with_1008(
    start: type_of_start, tmp_path: Path, connect: type_of_connect
) -> None:
    tokens = tmp_path / "tokens"
    hashes = {name: hashlib.blake2b(name.encode(), digest_size=32).hexdigest() for name in "ab"}
    lines = {name: f"{name} {hashed}\n" for name, hashed in hashes.items()}
    tokens.write_text(lines["a"] + lines["b"])
    tokens.chmod(0o600)
    daemon = start(env={"VIVARIUM_TOKENS_FILE": str(tokens)})
    a, b = (connect(daemon, Authorization=f"Bearer {name}").initialize() for name in "ab")
    a.run("whose = 'a'")
    assert "NameError" in b.run("whose")
    tokens.write_text(lines["b"])
    assert a.ws.close_code() == 1008
    assert b.request("ping") == {}


def test_whose_workspace_it_is_by_the_upgrades_headers(
    start: type_of_start, connect: type_of_connect
) -> None:
    daemon = start(env={"VIVARIUM_USER_HEADER": "X-User-ID"})
    vouched = {"X_Vivarium_Proxy_Secret": daemon.secret}
    alice = connect(daemon, X_User_ID="alice", **vouched).initialize()
    bob = connect(daemon, X_User_ID="bob", **vouched).initialize()
    alice.run("x = 1")
    assert "NameError" in bob.run("x")
    assert (daemon.work / "users/alice").is_dir()
    assert "X-User-ID" in connect(daemon, **vouched).initialize().run("x")
    assert "Secret" in connect(daemon, X_User_ID="alice").initialize().run("x")
    assert "placeholder" in connect(daemon, X_User_ID="{{ID}}", **vouched).initialize().run("x")


def test_stopping_answers_what_runs_and_closes_with_1012(
    start: type_of_start, connect: type_of_connect
) -> None:
    daemon = start()
    idle, busy = connect(daemon).initialize(), connect(daemon).initialize()
    wanted = busy.ask_run("open('begun', 'w').close(); import time; time.sleep(1); 5")
    wait_for_begun(daemon)
    daemon.process.terminate()
    assert idle.ws.close_code() == 1012
    assert busy.read()["id"] == wanted
    with pytest.raises(Closed) as closed:
        busy.read()
    assert closed.value.code == 1012
    assert daemon.process.wait(30) == 0


def test_a_plain_request_to_the_path_of_its_own_says_426(shared: Daemon) -> None:
    reply = exchange(shared.port, "GET", "/ws")
    assert reply.status == 426
    assert reply.headers["Upgrade"] == "websocket"

"""Every revision over every transport: how it begins, one call, what is no method there, and
what is wrong everywhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import test_http_sse
import test_websocket
from dialogue import BATCHES, META, NEWEST, STATELESS, Dialogue
from events import Stream
from frames import TEXT, frame
from harness import Client, Daemon, Result, RpcError, wait_until
from stdio import Stdio

REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", STATELESS]
CALL = {"name": "run_python", "arguments": {"code": "6 * 7"}}


class Over:
    """One transport, whatever it is: the answer to a request, or to anything."""

    def __init__(self, client: Client | Dialogue, revision: str) -> None:
        self.client = client
        self.meta = {"_meta": META} if revision == STATELESS else {}

    def request(self, method: str, params: dict[str, Any]) -> Any:
        params = params | self.meta
        if isinstance(self.client, Dialogue):
            return self.client.request(method, params)
        if not self.meta:
            try:
                return self.client.request(method, params)
            except RpcError as error:
                return {"code": error.code}
        body = self.client.message(method, params)
        (answer,) = self.client.post(body, **self.headers(method, params)).messages()
        return answer.get("result", answer.get("error"))

    def headers(self, method: str, params: dict[str, Any]) -> dict[str, str]:
        """Those of 2026-07-28 over HTTP."""
        if not self.meta:
            return {}
        name = {"Mcp_Name": params["name"]} if "name" in params else {}
        return {"MCP_Protocol_Version": STATELESS, "Mcp_Method": method} | name

    def message(self, method: str, params: object = None, **more: object) -> dict[str, Any]:
        params = (params if isinstance(params, dict) else {}) | self.meta
        return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params} | more

    def answer(self, message: object) -> Any:
        """To whatever it is; bytes are sent as they are."""
        if isinstance(self.client, Client):
            method = message["method"] if isinstance(message, dict) else "tools/list"
            params = message["params"] if isinstance(message, dict) else {}
            return self.client.post(message, **self.headers(method, params)).messages()[-1]
        if isinstance(self.client, test_http_sse.Talk):
            body = message if isinstance(message, bytes) else json.dumps(message).encode()
            reply = self.client.post(body)
            if reply.status != 202:  # nobody knows whose answer it would be
                return {"id": None, "error": {"code": {400: -32700}[reply.status]}}
            return self.client.read()
        if isinstance(message, bytes) and isinstance(self.client, Stdio):
            message += b"\n"
        self.client.send(message)
        return self.client.read()

    def notify(self, method: str, params: dict[str, Any]) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params | self.meta}
        if isinstance(self.client, Dialogue):
            self.client.send(message)
        else:
            assert self.client.post(message, **self.headers(method, params)).status == 202


@pytest.fixture(params=["http", "http with sse", "websocket", "stdio"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=REVISIONS)
def revision(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def over(kind: str, revision: str, shared: Daemon, tmp_path: Path) -> Iterator[Over]:
    if kind == "http":
        client = Client(shared.port, revision)
        if revision != STATELESS:
            client.initialize()
            assert client.revision == revision
        yield Over(client, revision)
        return
    env = {"VIVARIUM_WORKDIR": str(shared.work), "VIVARIUM_STATE_DIR": str(shared.state)}
    dialogue: test_http_sse.Talk | test_websocket.Talk | Stdio
    if kind == "stdio":
        dialogue = Stdio(tmp_path, env=env)
        end = dialogue.clean_up
    elif kind == "websocket":
        dialogue = test_websocket.Talk(shared)
        end = dialogue.ws.sock.close
    else:
        dialogue = test_http_sse.Talk(shared)
        end = dialogue.stream.close
    try:
        yield Over(dialogue if revision == STATELESS else dialogue.initialize(revision), revision)
    finally:
        end()


def test_it_begins_calls_and_refuses(over: Over, revision: str) -> None:
    result = Result(over.request("tools/call", CALL))
    assert result.text.endswith(": 42")
    assert ("structuredContent" in result.raw) is (revision >= "2025-06-18")
    assert ("resultType" in result.raw) is (revision == STATELESS)
    tools = over.request("tools/list", {})["tools"]
    assert ("annotations" in tools[0]) is (revision >= "2025-03-26")
    assert over.request("nonsense", {})["code"] == -32601
    other = "ping" if revision == STATELESS else "server/discover"
    assert over.request(other, {})["code"] == -32601


# ---- what is wrong everywhere ----

ERAS = pytest.mark.parametrize("revision", [NEWEST, STATELESS])
GOOD_IDS = ["", "seven", '\u00fc\n"', 0, -1, 7, 2**53, -(2**62)]
BAD_IDS = [None, True, False, 1.5, 1e300, [], [1], {}, {"id": 1}]


@ERAS
def test_ids_of_every_type_of_json(over: Over) -> None:
    for identity in GOOD_IDS:
        answer = over.answer(over.message("tools/list", id=identity))
        assert answer["id"] == identity
        assert answer["result"]["tools"]
    for identity in BAD_IDS:
        answer = over.answer(over.message("tools/list", id=identity))
        assert answer["id"] is None, identity
        assert answer["error"]["code"] == -32600
    assert over.request("tools/list", {})["tools"]


@ERAS
def test_to_cancel_what_never_was_does_nothing(over: Over) -> None:
    unknown: list[object] = ["never", 10**9, None, 1.5, [1], {}]
    for wanted in unknown:
        over.notify("notifications/cancelled", {"requestId": wanted})
    over.notify("notifications/cancelled", {})
    assert over.request("tools/list", {})["tools"]
    assert Result(over.request("tools/call", CALL)).text.endswith(": 42")


@ERAS
def test_an_id_twice_in_flight(over: Over, shared: Daemon) -> None:
    """Over HTTP each has an answer of its own; else the second is refused, without the id."""
    code = "import os, time\nopen('begun', 'w').close()\n"
    code += "while not os.path.exists('go'): time.sleep(0.02)\nos.remove('go'); 'first'"
    params = {"name": "run_python", "arguments": {"code": code}}
    message = over.message("tools/call", params, id="same")
    if isinstance(over.client, Dialogue):
        over.client.send(message)
        answer_of_first = over.client.read
    else:
        headers = over.client.headers(**over.headers("tools/call", params))
        stream = Stream(shared.port, "POST", message, headers)
        answer_of_first = stream.message
    wait_until((shared.work / "begun").exists, 30)
    (shared.work / "begun").unlink()
    files = {"name": "list_files", "arguments": {}}
    second = over.answer(over.message("tools/call", files, id="same"))
    if isinstance(over.client, Dialogue):
        assert second["id"] is None
        assert second["error"]["code"] == -32600
    else:
        assert second["id"] == "same"
        assert second["result"]["content"]
    (shared.work / "go").touch()
    first = answer_of_first()
    assert first["id"] == "same"
    assert first["result"]["content"][0]["text"].endswith(": 'first'")
    if isinstance(over.client, Client):
        stream.close()


@pytest.mark.parametrize("revision", [BATCHES, NEWEST, STATELESS])
def test_ten_thousand_in_a_batch_are_refused_as_one(over: Over, shared: Daemon) -> None:
    message = {"jsonrpc": "2.0", "method": "tools/list", "params": {}}
    batch = [message | {"id": number} for number in range(10_000)]
    answer = over.answer(batch)
    assert answer["id"] is None
    assert answer["error"]["code"] in {-32600, -32000}  # without a session it is of no revision
    assert over.request("tools/list", {})["tools"]
    assert shared.client().request("ping") == {}


@ERAS
@pytest.mark.parametrize("where", ["argument", "params", "id", "nothing"])
def test_ten_thousand_levels_are_no_json(over: Over, shared: Daemon, where: str) -> None:
    deep = "[" * 10_000 + "]" * 10_000
    params = {"name": "run_python", "arguments": {"code": "@deep"}}
    message = {
        "argument": over.message("tools/call", params),
        "params": over.message("tools/list", id=1) | {"params": "@deep"},
        "id": over.message("tools/list", id="@deep"),
        "nothing": "@deep",
    }[where]
    answer = over.answer(json.dumps(message).replace('"@deep"', deep).encode())
    assert answer["id"] is None
    assert answer["error"]["code"] == -32700
    assert over.request("tools/list", {})["tools"]
    assert shared.client().request("ping") == {}


@ERAS
def test_an_argument_of_5_mib_is_refused(over: Over, kind: str, shared: Daemon) -> None:
    params = {"name": "run_python", "arguments": {"code": "#" * (5 << 20)}}
    message = over.message("tools/call", params)
    if isinstance(over.client, Client):
        assert over.client.post(message, **over.headers("tools/call", params)).status == 413
    elif isinstance(over.client, test_http_sse.Talk):
        assert over.client.post(json.dumps(message).encode()).status == 413
    elif isinstance(over.client, test_websocket.Talk):
        over.client.ws.send_while_taken(frame(TEXT, json.dumps(message).encode()))
        assert over.client.ws.close_code() in {1009, 0}  # or is cut off, still sending
    else:
        assert over.answer(message)["error"]["code"] == -32600
    if kind != "websocket":
        assert over.request("tools/list", {})["tools"]
    assert shared.client().request("ping") == {}

"""Every revision over every transport: how it begins, one call, what is no method there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import test_http_sse
import test_websocket
from dialogue import META, STATELESS, Dialogue
from harness import Client, Daemon, Result, RpcError
from stdio import Stdio

REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", STATELESS]
CALL = {"name": "run_python", "arguments": {"code": "6 * 7"}}


class Over:
    """One transport, whatever it is: the answer to a request."""

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
        headers = {"MCP_Protocol_Version": STATELESS, "Mcp_Method": method}
        if "name" in params:
            headers["Mcp_Name"] = params["name"]
        body = self.client.message(method, params)
        (answer,) = self.client.post(body, **headers).messages()
        return answer.get("result", answer.get("error"))


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

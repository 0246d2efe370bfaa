"""The transport of 2024-11-05: messages by POST, answers on the stream of a GET."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from conftest import type_of_start
from dialogue import Dialogue
from events import Stream
from harness import Daemon, Reply, exchange, resident_kb
from test_clients import LIMIT_S, Client, converse

ACCEPT = {"Accept": "text/event-stream"}


class Talk(Dialogue):
    """A conversation; its stream is read as it comes."""

    def __init__(self, daemon: Daemon, path: str = "/mcp", **headers: str) -> None:
        super().__init__()
        self.port = daemon.port
        self.extra = {name.replace("_", "-"): value for name, value in headers.items()}
        self.stream = Stream(daemon.port, "GET", headers=ACCEPT | self.extra, path=path)
        assert self.stream.status == 200
        first = self.stream.event()
        assert first
        assert first.name == "endpoint"
        self.endpoint = first.data

    def post(self, body: bytes, **headers: str) -> Reply:
        more = {name.replace("_", "-"): value for name, value in headers.items()}
        head = {"Content-Type": "application/json"} | self.extra | more
        return exchange(self.port, "POST", self.endpoint, body, head)

    def send(self, message: object) -> None:
        data = message if isinstance(message, bytes) else json.dumps(message).encode()
        reply = self.post(data)
        assert reply.status == 202, reply.body

    def read(self) -> Any:
        return self.stream.message()


@pytest.fixture
def talk(shared: Daemon) -> Iterator[Talk]:
    with (talk := Talk(shared)).stream:
        yield talk.initialize("2024-11-05")


@pytest.mark.parametrize("path", ["/mcp", "/sse"])
def test_the_endpoint_is_where_the_stream_is(shared: Daemon, path: str) -> None:
    with (talk := Talk(shared, path)).stream:
        assert urlsplit(talk.endpoint).path == path
        talk.initialize("2024-11-05")
        assert talk.request("ping") == {}
        assert talk.run("1 + 1").startswith("Out[")


def test_newer_revisions_are_spoken_too(shared: Daemon) -> None:
    with (talk := Talk(shared)).stream:
        talk.initialize("2025-11-25")
        assert "structuredContent" in json.dumps(
            talk.request("tools/call", {"name": "list_files", "arguments": {}})
        )


def test_progress_lines_and_answers_come_on_the_stream(shared: Daemon, talk: Talk) -> None:
    code = "import os, time\nprint('a')\nwhile not os.path.exists('go'): time.sleep(0.02)"
    assert talk.request("logging/setLevel", {"level": "info"}) == {}
    wanted = talk.ask_run(code, _meta={"progressToken": 5})
    methods: set[str] = set()
    while methods != {"notifications/progress", "notifications/message"}:
        methods.add(talk.read()["method"])
    (shared.work / "go").touch()
    while (message := talk.read()).get("id") != wanted:
        assert message["method"] in methods
    assert talk.request("logging/setLevel", {"level": "emergency"}) == {}


def test_a_call_can_be_cancelled(shared: Daemon, talk: Talk) -> None:
    wanted = talk.ask_run("open('begun', 'w').close()\nimport time; time.sleep(100)")
    while not (shared.work / "begun").exists():
        assert talk.request("ping") == {}
    params = {"requestId": wanted}
    talk.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
    assert talk.run("'on'") != ""  # and no answer to the other before it


def test_the_user_is_asked_on_the_stream(shared: Daemon) -> None:
    with (talk := Talk(shared)).stream:
        talk.initialize(elicitation={}).check_input_is_asked()


def test_two_conversations_are_apart(shared: Daemon, talk: Talk) -> None:
    with (other := Talk(shared)).stream:
        assert other.endpoint != talk.endpoint
        other.initialize()
        wanted = talk.ask("ping", id="same")
        assert other.ask("ping", id="same") == wanted
        assert talk.read()["id"] == other.read()["id"] == "same"


def test_bad_posts(shared: Daemon, talk: Talk) -> None:
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    for endpoint in ("/mcp?conversation=nonsense", "/sse?conversation=" + 32 * "0"):
        body = json.dumps(ping)
        reply = exchange(shared.port, "POST", endpoint, body, {"Content-Type": "application/json"})
        assert reply.status == 404
    assert talk.post(b"{").status == 400
    assert talk.post(b"[]", Content_Type="text/plain").status == 415
    talk.send([ping])  # batches came with 2025-03-26, JSON-RPC had them before
    assert talk.read()[0]["result"] == {}
    talk.send({"jsonrpc": "2.0", "id": 2, "method": "nonsense"})
    assert talk.read()["error"]["code"] == -32601


def test_who_asks_is_looked_at_with_every_message(start: type_of_start) -> None:
    daemon = start(env={"VIVARIUM_USER_HEADER": "X-User"})
    proof = {"X_Vivarium_Proxy_Secret": daemon.secret}
    with (talk := Talk(daemon, **proof)).stream:
        talk.initialize()
        assert "X-User" in talk.run("1")  # nobody: told what is missing
        talk.extra["X-User"] = "ada"
        assert talk.run("1").startswith("Out[1]")


def test_a_token_is_needed_and_the_conversation_is_its_users(start: type_of_start) -> None:
    daemon = start(env={"VIVARIUM_TOKEN": "a-token-that-is-long-enough-to-be-taken"})
    with Stream(daemon.port, "GET", headers=ACCEPT, path="/sse") as refused:
        assert refused.status == 401
    with (talk := Talk(daemon, Authorization=f"Bearer {daemon.bearer}")).stream:
        talk.initialize()
        talk.extra = {}
        assert talk.post(b"{}").status == 401


def test_an_answer_that_was_left_is_told_later(daemon: Daemon) -> None:
    client = daemon.client()
    client.run("pass")
    with (talk := Talk(daemon)).stream:
        talk.initialize("2024-11-05")
        code = "open('begun', 'w').close()\nimport os, time\n"
        talk.ask_run(code + "while not os.path.exists('go'): time.sleep(0.02)\nkept = 5")
        while not (daemon.work / "begun").exists():
            assert talk.request("ping") == {}
    (daemon.work / "go").touch()
    told = client.run("kept")
    assert told.data["result"] == "5"


def test_who_does_not_read_makes_nothing_grow(start: type_of_start) -> None:
    daemon = start(env={"VIVARIUM_RESULT_LIMIT": str(1 << 20)})
    client = daemon.client()
    client.call("write_file", path="big", content="x" * 700_000)
    with (talk := Talk(daemon)).stream:
        talk.initialize()
        before = resident_kb(daemon.pid)
        for _ in range(120):
            talk.ask("resources/read", {"uri": "workspace:///big"})
        assert client.request("ping") == {}
        assert resident_kb(daemon.pid) - before < 80_000
        answers = [talk.read() for _ in range(120)]
    assert [a for a in answers if "error" in a], "some had to be dropped"
    assert [a for a in answers if "result" in a]


@pytest.mark.timeout(LIMIT_S + 30)
@pytest.mark.parametrize("path", ["/mcp", "/sse"])
@pytest.mark.parametrize("script", ["python_sdk1.py", "typescript_sdk1.mjs"])
def test_the_conversation_of_the_older_clients(
    script: str, path: str, start: type_of_start
) -> None:
    client = Client(script, "", "2025-11-25" if script.endswith(".py") else "")
    client.command("URL")
    converse(client, "sse:" + start().url.replace("/mcp", path))

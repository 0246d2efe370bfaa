"""What a client is told while a cell runs: progress and lines, over every transport, only
if it asked, and never after the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import type_of_start
from dialogue import META, STATELESS, Dialogue
from events import Stream, ask_run
from harness import Client, Daemon
from stdio import Stdio
from test_websocket import Talk

LEVEL = "io.modelcontextprotocol/logLevel"
# Each waits for a file, so that no test depends on how fast anything is.
WAIT = "import os, time\nwhile not os.path.exists({0!r}): time.sleep(0.02)\nos.remove({0!r})\n"
BAR = r"""
import sys
for n, name in ((1, 'one'), (3, 'two')):
    sys.stderr.write(f'\rloading: {n * 25:3d}%|##   | {n}/4 [00:01<00:03,  1.00it/s]')
    sys.stderr.flush()
    while not os.path.exists(name): time.sleep(0.02)
"""


class Asking:
    """One tools/call under way, whatever carries it."""

    def __init__(self, workspace: Path, messages: Iterator[Any]) -> None:
        self.workspace = workspace
        self.messages = messages
        self.answer: Any = None

    def let(self, name: str) -> None:
        (self.workspace / name).touch()

    def told(self) -> Any:
        """The next notification, or None: the answer has come."""
        message = next(self.messages)
        if "method" in message:
            return message
        self.answer = message
        return None

    def told_until(self, is_enough: Callable[[Any], bool]) -> list[Any]:
        told: list[Any] = []
        while not told or not is_enough(told[-1]):
            message = self.told()
            assert message, f"the answer came first: {self.answer}, after {told}"
            told.append(message)
        return told

    def rest(self) -> list[Any]:
        """What is told until the answer, which has to be the last."""
        told = []
        while message := self.told():
            told.append(message)
        return told


class Way:
    """A transport and an era."""

    def __init__(self, daemon: Daemon, kind: str, home: Path) -> None:
        self.kind = kind
        self.meta: dict[str, Any] = dict(META) if kind.endswith(STATELESS) else {}
        self.work = daemon.work
        self.client: Client | None = None
        self.dialogue: Dialogue | None = None
        self.ends: list[Callable[[], object]] = []
        if kind.startswith("http"):
            self.client = daemon.client()
        elif kind.startswith("ws"):
            talk = Talk(daemon)
            self.dialogue = talk
            self.ends.append(talk.ws.sock.close)
        else:  # the daemon has the work directory: handed on through its door
            stdio = Stdio(
                home,
                env={"VIVARIUM_WORKDIR": str(daemon.work), "VIVARIUM_STATE_DIR": str(daemon.state)},
            )
            self.dialogue = stdio
            self.ends += [stdio.close, stdio.clean_up]
        if self.dialogue and not self.meta:
            self.dialogue.initialize()

    def set_level(self, level: str) -> None:
        if self.meta:
            self.meta[LEVEL] = level
        elif self.dialogue:
            assert self.dialogue.request("logging/setLevel", {"level": level}) == {}
        elif self.client:
            assert self.client.request("logging/setLevel", {"level": level}) == {}

    def run(self, code: str, **meta: object) -> Asking:
        params = {"name": "run_python", "arguments": {"code": code}, "_meta": self.meta | meta}
        if self.dialogue:
            dialogue = self.dialogue
            wanted = dialogue.ask("tools/call", params)
            return Asking(self.work, self._until(dialogue, wanted))
        assert self.client
        headers = self.client.headers()
        if self.meta:
            del headers["Mcp-Session-Id"]
            headers |= {"MCP-Protocol-Version": STATELESS, "Mcp-Method": "tools/call"}
            headers |= {"Mcp-Name": "run_python"}
        body = self.client.message("tools/call", params)
        stream = Stream(self.client.port, "POST", body, headers)
        self.ends.append(stream.close)
        return Asking(self.work, stream.messages())

    def close(self) -> None:
        for end in self.ends:
            end()

    @staticmethod
    def _until(dialogue: Dialogue, wanted: object) -> Iterator[Any]:
        while True:
            message = dialogue.read()
            assert "method" in message or message["id"] == wanted
            yield message


WAYS = ["http", "ws", "stdio", f"http-{STATELESS}", f"ws-{STATELESS}", f"stdio-{STATELESS}"]


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, shared: Daemon, tmp_path: Path) -> Iterator[Way]:
    way = Way(shared, request.param, tmp_path)
    yield way
    way.close()


def is_progress(message: Any) -> bool:
    return bool(message["method"] == "notifications/progress")


def test_a_bar_is_told_as_progress_that_grows(way: Way) -> None:
    call = way.run("import os, time\n" + BAR, progressToken="bar")
    first = call.told_until(lambda m: m["params"].get("total") == 4)[-1]
    assert first["params"]["progressToken"] == "bar"
    assert "loading: 25%, 1/4" in first["params"]["message"]
    call.let("one")
    then = call.told_until(lambda m: m["params"]["progress"] == 3)
    call.let("two")
    told = [first, *then, *call.rest()]
    assert all(map(is_progress, told))
    values = [message["params"]["progress"] for message in told]
    assert values == sorted(set(values))
    assert "3/4" in call.answer["result"]["content"][0]["text"]
    call.let("one")
    call.let("two")
    assert way.run("import os; os.remove('one'); os.remove('two')").rest() == []


def test_time_and_lines_are_told_without_a_bar(way: Way) -> None:
    call = way.run("print('a')\nprint('b')\n" + WAIT.format("go"), progressToken=2**53 + 1)
    told = call.told_until(lambda m: "2 lines so far" in m["params"]["message"])[-1]
    assert told["params"]["progressToken"] == 2**53 + 1
    assert "total" not in told["params"]
    assert " s, " in told["params"]["message"]
    call.let("go")
    call.rest()


def test_lines_are_told_as_the_level_asks(way: Way) -> None:
    code = "import sys\nprint('plain')\nprint('bad', file=sys.stderr)\n" + WAIT.format("go")
    way.set_level("info")
    call = way.run(code)
    told = call.told_until(lambda m: m["params"]["logger"] == "stderr")
    assert {message["method"] for message in told} == {"notifications/message"}
    lines = {message["params"]["logger"]: message["params"]["data"] for message in told}
    assert lines == {"stdout": "plain", "stderr": "bad"}
    levels = {message["params"]["logger"]: message["params"]["level"] for message in told}
    assert levels == {"stdout": "info", "stderr": "warning"}
    call.let("go")
    assert call.rest() == []
    way.set_level("warning")
    call = way.run(code)
    assert call.told()["params"]["data"] == "bad"
    call.let("go")
    assert call.rest() == []
    way.set_level("emergency")


def test_nothing_is_told_unasked(way: Way) -> None:
    """Three seconds of work, three ticks of a second: there would be something."""
    call = way.run("import time\nfor i in range(30): print(i); time.sleep(0.1)")
    assert call.rest() == []


def test_a_flood_is_told_in_bounded_pieces(way: Way) -> None:
    way.set_level("info")
    call = way.run("for i in range(200000): print('line', i)\n" + WAIT.format("go"))
    told = call.told_until(lambda m: m["params"]["data"].endswith("line 199999"))
    call.let("go")
    call.rest()
    assert all(len(message["params"]["data"]) < 9000 for message in told)
    assert "lines left out" in told[-1]["params"]["data"]
    way.set_level("emergency")


def test_a_level_that_is_none_is_refused(client: Client) -> None:
    body = client.message("logging/setLevel", {"level": "loud"})
    assert client.post(body).json()["error"]["code"] == -32602


def test_levels_belong_to_their_session(daemon: Daemon) -> None:
    one, other = daemon.client(), daemon.client()
    one.request("logging/setLevel", {"level": "debug"})
    code = "print('x')\n" + WAIT.format("go")
    params = {"name": "run_python", "arguments": {"code": code}}
    with Stream(one.port, "POST", one.message("tools/call", params), one.headers()) as told:
        assert told.message()["params"]["data"] == "x"
        quiet = Stream(other.port, "POST", other.message("tools/call", params), other.headers())
        (daemon.work / "go").touch()
        assert "result" in told.message()
        (daemon.work / "go").touch()
        assert "result" in quiet.message()
        quiet.close()


def test_a_level_is_known_after_the_daemon_was_killed(start: type_of_start) -> None:
    first = start()
    client = first.client()
    for level in "info", "warning":
        client.request("logging/setLevel", {"level": level})
    first.kill()
    second = start()
    client.port = second.port
    code = "import sys\nprint('plain')\nprint('bad', file=sys.stderr)\n" + WAIT.format("go")
    with ask_run(client, code) as stream:
        assert stream.message()["params"]["data"] == "bad"
        (second.work / "go").touch()
        assert [message.get("method") for message in stream.messages()] == [None]

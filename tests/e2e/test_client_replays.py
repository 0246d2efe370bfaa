"""What the clients of deploy/clients send, as far as public sources tell: the requests of
tests/data/client_replays, in their order, with their headers and members.
"""

from __future__ import annotations

import http.client
import json
import re
import tomllib
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from conftest import any_python
from harness import REPO, Daemon, Reply, exchange
from stdio import Stdio

REPLAYS = sorted((REPO / "tests" / "data" / "client_replays").glob("*.json"))
PAGES = REPO / "deploy" / "clients"


def load(path: Path) -> dict[str, Any]:
    replay = json.loads(path.read_text())
    assert isinstance(replay, dict)
    return replay


def at(value: Any, path: str) -> Any:
    for step in path.split("."):
        if isinstance(value, list):
            value = value[int(step)] if int(step) < len(value) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


def check(answer: dict[str, Any], request: dict[str, Any], wanted: dict[str, Any]) -> None:
    """wanted: path -> value; one that begins with "~" is what its text has to match."""
    assert answer["id"] == request["id"]
    for path, value in wanted.items():
        got = at(answer, path)
        if isinstance(value, str) and value.startswith("~"):
            text = got if isinstance(got, str) else json.dumps(got)
            assert re.search(value[1:], text, re.MULTILINE), (path, got)
        else:
            assert got == value, (path, got)


class Replay:
    """Over HTTP: a session as the client keeps one."""

    def __init__(self, port: int, replay: dict[str, Any], stack: ExitStack) -> None:
        self.port, self.replay, self.stack = port, replay, stack
        self.session: dict[str, str] = {}

    def post(self, step: dict[str, Any]) -> None:
        message = step["post"]
        hello = message["method"] == "initialize"
        headers = self.replay["headers"] | ({} if hello else self.session) | step.get("headers", {})
        reply = exchange(self.port, "POST", "/mcp", json.dumps(message), headers)
        assert reply.status == step.get("status", 200), reply.body
        if hello:
            self.begin(reply)
        if "expect" in step:
            *_, answer = reply.messages()  # notifications come before it
            check(answer, message, step["expect"])

    def begin(self, reply: Reply) -> None:
        self.session = {"mcp-session-id": reply.headers["Mcp-Session-Id"]}
        if "version_header" in self.replay:
            self.session["mcp-protocol-version"] = self.replay["version_header"]

    def open(self, method: str, body: str | None, headers: dict[str, str]) -> None:
        """A stream, which stays open until the end."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        self.stack.enter_context(closing(connection))
        own = self.replay["headers"] | self.session | headers
        if body is None:
            del own["content-type"]
        connection.request(method, "/mcp", body, own)
        response = connection.getresponse()
        self.stack.enter_context(closing(response))
        assert response.status == 200
        assert response.headers.get_content_type() == "text/event-stream"

    def delete(self) -> None:
        own = self.replay["headers"] | self.session
        assert exchange(self.port, "DELETE", "/mcp", headers=own).status == 200

    def play(self) -> None:
        for step in self.replay["steps"]:
            if "post" in step:
                self.post(step)
            elif "get" in step:
                self.open("GET", None, {"accept": "text/event-stream"})
            elif "listen" in step:
                self.open("POST", json.dumps(step["listen"]), step["headers"])
            else:
                self.delete()


def play_stdio(replay: dict[str, Any], home: Path) -> None:
    one = Stdio(home, env={"VIVARIUM_PYTHON": str(any_python())})
    try:
        for step in replay["steps"]:
            one.send(step["post"])
            if "expect" in step:
                check(one.read(), step["post"], step["expect"])
        one.close()
    finally:
        one.clean_up()


@pytest.mark.parametrize("path", REPLAYS, ids=lambda path: path.stem)
def test_what_a_client_sends_is_answered(path: Path, shared: Daemon, tmp_path: Path) -> None:
    replay = load(path)
    assert replay["source"]
    if replay["transport"] == "stdio":
        play_stdio(replay, tmp_path)
        return
    with ExitStack() as stack:
        Replay(shared.port, replay, stack).play()


# ---- the pages ----


def as_most(server: dict[str, Any]) -> dict[str, Any]:
    """With url, or command, args and env, as most clients spell it."""
    names = {"httpUrl": "url", "environment": "env"}
    own = {names.get(name, name): value for name, value in server.items()}
    if isinstance(own.get("command"), list):
        own["command"], *own["args"] = own["command"]
    return own


def configurations(page: Path) -> list[dict[str, Any]]:
    """The servers that the page's JSON and TOML blocks configure."""
    found: list[dict[str, Any]] = []
    for kind, block in re.findall(
        r"^```(json|toml)\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE
    ):
        settings = json.loads(block) if kind == "json" else tomllib.loads(block)
        for key in ("mcpServers", "servers", "mcp", "mcp_servers"):
            found += map(as_most, settings.get(key, {}).values())
    # test_real_clients.py runs mcp-remote
    return [server for server in found if server.get("command") != "npx"]


PAGED = [
    pytest.param(server, id=f"{page.stem}-{number}")
    for page in sorted(PAGES.glob("*.md"))
    for number, server in enumerate(configurations(page))
]


@pytest.mark.parametrize("server", PAGED)
def test_a_pages_configuration_works(
    server: dict[str, Any], shared: Daemon, tmp_path: Path
) -> None:
    own = json.dumps({name: server[name] for name in server.keys() - {"env"}})
    assert "VIVARIUM_" not in own, "a client's variable is called like a setting of the daemon"
    if "url" in server:
        assert server["url"] == "http://127.0.0.1:8000/mcp"
        headers = server.get("headers", {})
        assert set(headers) <= {"Authorization", "X-User-ID"}
        assert shared.client(**headers).run("6 * 7").text.endswith(": 42")
        return
    assert server["command"] == "/path/to/build/vivarium"
    assert server["args"] == ["--stdio"]
    env = {name: value.replace("/home/me", str(tmp_path)) for name, value in server["env"].items()}
    one = Stdio(tmp_path, env=env | {"VIVARIUM_PYTHON": str(any_python())})
    try:
        assert one.initialize().run("6 * 7") == "Out[1]: 42"
        assert Path(env["VIVARIUM_WORKDIR"]).is_dir()
        one.close()
    finally:
        one.clean_up()


def test_each_client_has_a_page_with_both_ways_or_the_reason() -> None:
    pages = {page.stem: page.read_text() for page in PAGES.glob("*.md")}
    assert pages.keys() >= {
        *["librechat", "claude-desktop", "claude-code", "cursor", "vscode"],
        *["open-webui", "inspector", "codex", "gemini-cli", "opencode"],
    }
    for name, text in pages.items():
        assert len(text.splitlines()) < 60, f"{name}: one short page"
        assert "HTTP" in text, name
        assert "stdio" in text, name
        assert re.search(r"tests/e2e/test_\w+\.py", text), f"{name}: what tests it"

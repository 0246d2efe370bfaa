"""Real clients: each of those in tests/clients holds the conversation of
conversation.json with a daemon of its own, over the newest revision that it speaks.
"""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from conftest import any_python, type_of_start
from harness import PROGRAM, REPO, SANITIZER, bare_env, png_size, wait_until

ROOM = REPO / "tests" / "clients"
TOOLS = REPO / ".venv-clients" / "bin"
NEWEST_WITH_SESSIONS, STATELESS = "2025-11-25", "2026-07-28"
LIMIT_S = 150
# Of a daemon that was killed, which test_each_goes_on_when_the_daemon_was_killed alone does.
RESTARTED = re.compile(r"Vivarium was restarted: .*\n\d+ variables? restored, .*\n")
PAUSE = 5  # before this step, counted from 0: the next one asks no kernel


@dataclass
class Client:
    """How to start one, and the revision it has to agree on ("": it does not say)."""

    script: str
    mode: str = ""
    protocol: str = ""

    def command(self, url: str) -> list[str]:
        arguments = [str(ROOM / self.script), url, *filter(None, [self.mode])]
        if self.script.endswith(".mjs"):
            return [str(require(TOOLS / "node", "Node.js")), *arguments]
        if self.script == "python_sdk1.py":
            return [str(require(TOOLS / "python", "the older SDK")), *arguments]
        pytest.importorskip("mcp.client", reason="PyPI was out of reach at set-up")
        return [sys.executable, *arguments]


STDIO = {
    "python-2-auto": Client("python_sdk2.py", "auto", STATELESS),
    "python-2-legacy": Client("python_sdk2.py", "legacy", NEWEST_WITH_SESSIONS),
    "python-1": Client("python_sdk1.py", "", NEWEST_WITH_SESSIONS),
    "typescript-2-auto": Client("typescript_sdk2.mjs", "auto", STATELESS),
    "typescript-2-legacy": Client("typescript_sdk2.mjs", "legacy", NEWEST_WITH_SESSIONS),
    "typescript-1": Client("typescript_sdk1.mjs"),
}
CLIENTS = {
    "python-2-auto": Client("python_sdk2.py", "auto", STATELESS),
    "python-2-legacy": Client("python_sdk2.py", "legacy", NEWEST_WITH_SESSIONS),
    "python-1": Client("python_sdk1.py", "", NEWEST_WITH_SESSIONS),
    "typescript-2-auto": Client("typescript_sdk2.mjs", "auto", STATELESS),
    "typescript-2-legacy": Client("typescript_sdk2.mjs", "legacy", NEWEST_WITH_SESSIONS),
    "typescript-1": Client("typescript_sdk1.mjs", "", NEWEST_WITH_SESSIONS),
    "inspector-modern": Client("inspector.mjs", "modern"),
    "inspector-legacy": Client("inspector.mjs", "legacy"),
}


def require(program: Path, what: str) -> Path:
    if not program.exists():
        pytest.skip(f"no {what}: PyPI was out of reach at set-up")
    if program.name == "node" and not (ROOM / "node_modules" / ".stamp").exists():
        pytest.skip("no npm packages: npm's registry was out of reach at set-up")
    return program


def steps() -> list[dict[str, Any]]:
    found = json.loads((ROOM / "conversation.json").read_text())["steps"]
    assert isinstance(found, list)
    return found


def shown(answer: dict[str, Any]) -> str:
    """For the transcript: long strings cut."""
    return re.sub(r'"([^"]{200})[^"]{200,}"', r'"\1..."', json.dumps(answer, ensure_ascii=False))


def check_tools(answer: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert [tool["name"] for tool in answer["tools"]] == wanted["tools"]
    assert all(tool["outputSchema"]["type"] == "object" for tool in answer["tools"])


def check_result(result: dict[str, Any], wanted: dict[str, Any], schema: dict[str, Any]) -> None:
    content = result["content"]
    texts = [item["text"] for item in content if item["type"] == "text"]
    texts[0] = RESTARTED.sub("", texts[0])
    assert content[0]["type"] == "text", "text comes first, whatever else there is"
    assert re.match(wanted["text"], texts[0]), texts[0]
    assert re.search(wanted.get("footer", ""), texts[-1], re.MULTILINE), texts[-1]
    assert result["isError"] is wanted["error"]
    images = [item for item in content if item["type"] == "image"]
    assert len(images) == wanted.get("images", 0)
    for image in images:
        assert image["mimeType"] == "image/png"
        assert min(png_size(base64.b64decode(image["data"], validate=True))) > 100
    structure = result["structuredContent"]
    jsonschema.validate(structure, schema)
    assert {name: structure[name] for name in wanted["structure"]} == wanted["structure"]


def check(answers: list[dict[str, Any]], client: Client) -> None:
    if client.protocol:
        assert answers.pop(0) == {"protocol": client.protocol}
    schemas = {tool["name"]: tool["outputSchema"] for tool in answers[0]["tools"]}
    assert len(answers) == len(steps())
    for step, answer in zip(steps(), answers, strict=True):
        try:
            if "tool" in step:
                check_result(answer["result"], step["expect"], schemas[step["tool"]])
            else:
                check_tools(answer, step["expect"])
        except (AssertionError, KeyError, jsonschema.ValidationError) as error:
            raise AssertionError(f"step '{step['name']}': {error}") from error


def converse(client: Client, url: str, env: dict[str, str] | None = None) -> None:
    run = subprocess.run(
        client.command(url),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        stdin=subprocess.DEVNULL,
        env=env,
        check=False,
    )
    check_said(client, run.returncode, run.stdout, run.stderr)
    # Where a leak check cannot look, as behind walls, it says so.
    words = [line for line in run.stderr.splitlines() if not line.startswith("==")]
    assert not words, "the client complains"
    assert not SANITIZER.search(run.stderr)


def check_said(client: Client, status: int, out: str, complaints: str) -> None:
    answers = [json.loads(line) for line in out.splitlines()]
    print(*map(shown, answers), complaints, sep="\n")  # pytest shows it after a failure
    assert status == 0, complaints
    check(answers, client)


@pytest.mark.timeout(LIMIT_S + 30)
@pytest.mark.parametrize("name", CLIENTS)
def test_the_conversation(name: str, start: type_of_start) -> None:
    CLIENTS[name].command("URL")  # skips before a daemon is started in vain
    converse(CLIENTS[name], start().url)


@pytest.mark.timeout(LIMIT_S + 30)
@pytest.mark.parametrize("name", STDIO)
def test_the_conversation_over_standard_streams(name: str, tmp_path: Path) -> None:
    env = bare_env(
        tmp_path,
        VIVARIUM_PYTHON=str(any_python()),
        VIVARIUM_LOG_LEVEL="warn",  # what is said on stderr is a complaint
    )
    converse(STDIO[name], f"stdio:{PROGRAM}", env)


@pytest.mark.timeout(LIMIT_S + 30)
def test_the_conversation_over_a_websocket(start: type_of_start) -> None:
    client = Client("typescript_sdk1.mjs")
    client.command("URL")
    converse(client, start().url.replace("http", "ws"))


@pytest.mark.timeout(LIMIT_S + 30)
@pytest.mark.parametrize("name", CLIENTS)
def test_each_goes_on_when_the_daemon_was_killed(
    name: str, start: type_of_start, tmp_path: Path
) -> None:
    client = CLIENTS[name]
    command = client.command("URL")
    daemon = start()
    command[command.index("URL")] = daemon.url
    complaints = tmp_path / "complaints"
    with complaints.open("w") as file:
        run = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=file,
            text=True,
            env=os.environ | {"CONVERSATION_PAUSE": str(PAUSE)},
        )
    assert run.stdin
    assert run.stdout
    with run:
        before = [run.stdout.readline() for _ in range(PAUSE + bool(client.protocol))]
        wait_until(lambda: daemon.saved_upto() == 4, 30, "the fourth cell is saved")
        daemon.kill()
        start(args=["--port", str(daemon.port)])
        run.stdin.write("go on\n")
        run.stdin.flush()
        after = run.stdout.read()
    check_said(client, run.returncode, "".join(before) + after, complaints.read_text())


def test_there_are_eleven_steps() -> None:
    assert len(steps()) == 11
    assert all(step["expect"] for step in steps())

# SPDX-License-Identifier: MIT
"""Claude Code, Gemini CLI and mcp-remote as people install them: that what Vivarium answers
reaches the model whole, once and readable.  The model follows a script (agents.py)."""

from __future__ import annotations

import json
import re
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agents import NODE, QUIET, REMOTE, Claude, GeminiCli, Run, require
from conftest import any_python, type_of_start
from enclosed import SERVER
from harness import (
    MARK,
    PROGRAM,
    REPO,
    Daemon,
    all_pids,
    bare_env,
    png_size,
    read_proc,
    wait_until,
)
from scripted_models import Got, Use
from test_clients import LIMIT_S, RESTARTED, STDIO, converse

PAGE = REPO / "deploy" / "clients" / "claude-code.md"
REPLAY = REPO / "tests" / "data" / "client_replays" / "claude_code_2026.json"
CARRIER = {"connection", "content-length", "host"}  # headers of HTTP itself
FIGURE = "import matplotlib.pyplot as plt\nplt.plot([1, 4, 9])\nplt.show()"
TABLE = "import pandas as pd\npd.DataFrame({'größe': [1, 2], 'b': ['x', 'y']})"
FOREIGN = "from pathlib import Path\nPath('theirs.txt').write_text('precious')"
SLOW = "import time\nfor step in range(3):\n    print('step', step)\n    time.sleep(0.7)"


def uses(agent: type[Claude | GeminiCli]) -> list[Use]:
    def run(code: str) -> Use:
        return Use(agent.TOOLS + "run_python", {"code": code})

    def write(path: str) -> Use:
        return Use(agent.TOOLS + "write_file", {"path": path, "content": "new\n"})

    return [
        *[run("x = 41\nprint('hello')\nx"), run("x + 1"), run(FIGURE), run(TABLE)],
        *[run(FIGURE + "\n1 / 0"), write("ours.txt"), run(FOREIGN), write("theirs.txt")],
        run(SLOW),
    ]


def check_conversation(got: list[Got], *, replaces: bool) -> None:
    first, second, figure, table, failed, ours, foreign, theirs, slow = got
    assert [one.error for one in got] == [False] * 4 + [True] + [False] * 2 + [not replaces, False]
    assert re.search(r"^hello\nOut\[1\]: 41$", first.text, re.MULTILINE)
    assert re.search(r"^Out\[2\]: 42$", second.text, re.MULTILINE)
    assert [png_size(picture)[0] > 100 for picture in figure.pictures] == [True]
    assert re.search(r"^ +größe +b\n0 +1 +x\n1 +2 +y$", table.text, re.MULTILINE), (
        "as people read it"
    )
    for one in got[:5]:
        assert one.text.count("--- state ---") == 1, "the footer comes, and once"
        assert "exit_code" not in one.text, "a structure besides"
        assert not one.pictures or one is figure
    assert re.search(r"^vars: .*\bx 41", second.text, re.MULTILINE)
    assert failed.text.count("Error: ZeroDivisionError: division by zero (exit code 1)") == 1
    assert failed.text.index("(exit code 1)") < failed.text.index("Traceback")
    assert "Picture 1 is not shown: this client shows none beside an error." in failed.text
    assert len(failed.text) < 3000, "nor as its bytes"
    assert "Wrote ours.txt, 4 bytes." in ours.text
    assert "wrote: theirs.txt (8B)" in foreign.text
    words = "Replaced theirs.txt" if replaces else "the user did not agree; nothing was changed"
    assert words in theirs.text
    assert "step 0\nstep 1\nstep 2\n" in slow.text


# ---- Claude Code ----

PLACES = {
    "http://127.0.0.1:8000/mcp": f"http://127.0.0.1:{SERVER}/mcp",
    "/path/to/build/vivarium": str(PROGRAM),
}


def page_commands() -> list[list[str]]:
    """How the page adds the server: over HTTP, over standard streams."""
    lines = PAGE.read_text().replace("\\\n", "").splitlines()
    return [line.split() for line in lines if line.startswith("claude mcp add")]


def add(agent: Claude, command: list[str], **env: str) -> None:
    words = [PLACES.get(word, word.replace("/home/me", str(agent.home))) for word in command[1:]]
    at = words.index("python") + 1
    agent.run(*words[:at], *(f"--env={name}={value}" for name, value in env.items()), *words[at:])


@pytest.fixture
def claude(daemon: Daemon, tmp_path: Path) -> Claude:
    """With the daemon, over HTTP."""
    agent = Claude(tmp_path / "home", daemon.port)
    add(agent, page_commands()[0])
    return agent


def marked(token: str) -> list[int]:
    mark = f"{MARK}={token}".encode()
    return [pid for pid in all_pids() if mark in read_proc(pid, "environ").split(b"\0")]


@pytest.fixture
def claude_alone(tmp_path: Path) -> Iterator[Claude]:
    """It starts Vivarium itself."""
    agent, token = Claude(tmp_path / "home"), secrets.token_hex(8)
    with tempfile.TemporaryDirectory(prefix="v") as runtime:
        own = {"VIVARIUM_PYTHON": str(any_python()), "XDG_RUNTIME_DIR": runtime, MARK: token}
        add(agent, page_commands()[1], VIVARIUM_CONFIRM="0", **own)
        yield agent
        wait_until(lambda: not marked(token), 30, "what it started has ended")


@pytest.mark.timeout(LIMIT_S + 30)
def test_claude_code_over_http(claude: Claude) -> None:
    assert re.search(r"^python: .* Connected$", claude.run("mcp", "list").out, re.MULTILINE)
    where = {"server": "python", "uri": "workspace:///ours.txt"}
    run = claude.ask("Go.", [*uses(Claude), Use("ReadMcpResourceTool", where)])
    assert run.out == "done\n"
    _, *calls, resource = run.got
    check_conversation(calls, replaces=False)
    assert "new\\n" in resource.text
    check_descriptions(run)
    check_replay(run)


@pytest.mark.timeout(LIMIT_S + 30)
def test_claude_code_over_standard_streams(claude_alone: Claude) -> None:
    """And VIVARIUM_CONFIRM=0: nobody is asked."""
    assert re.search(r"^python: .* Connected$", claude_alone.run("mcp", "list").out, re.MULTILINE)
    run = claude_alone.ask("Go.", uses(Claude))
    check_conversation(run.got[1:], replaces=True)
    assert (claude_alone.home / "python" / "theirs.txt").read_text() == "new\n"


def check_descriptions(run: Run) -> None:
    """They and the instructions reach the model uncut."""
    asked = run.model.asked[-1]
    (tool,) = (tool for tool in asked["tools"] if tool["name"] == Claude.TOOLS + "run_python")
    assert tool["description"].startswith("Run Python code in a live IPython kernel")
    assert tool["description"].endswith("keeps the variables.")
    assert tool["input_schema"]["required"] == ["code"]
    told = json.dumps(asked["messages"])
    assert "run_python runs cells in one live IPython kernel" in told
    assert "vivarium_charts draws one in a line." in told


def check_replay(run: Run) -> None:
    """What test_client_replays.py sends in its name is what it sends itself."""
    replay = json.loads(REPLAY.read_text())
    sent = {
        key_of(request.body): request
        for request in run.requests
        if "inputResponses" not in request.body["params"]
    }
    for step in replay["steps"]:
        wanted = step.get("post") or step["listen"]
        request = sent[key_of(wanted)]
        assert list(request.body) == list(wanted), "the order of members"
        assert list(request.body["params"]) == list(wanted["params"])
        assert without_numbers(request.body["params"]) == without_numbers(wanted["params"])
        assert {name: request.headers[name] for name in request.headers.keys() - CARRIER} == (
            replay["headers"] | step["headers"]
        )


def key_of(message: dict[str, Any]) -> tuple[str, object]:
    return message["method"], message["params"].get("name")


def without_numbers(params: dict[str, Any]) -> dict[str, Any]:
    """Of a call's params what is in each of its calls."""
    meta = {**params["_meta"]}
    for own in ("claudecode/toolUseId", "progressToken"):
        meta[own] = own in meta
    return params | {"_meta": meta, "arguments": None}


@pytest.mark.timeout(LIMIT_S + 30)
def test_claude_code_goes_on_when_the_daemon_was_killed(
    claude: Claude, daemon: Daemon, start: type_of_start
) -> None:
    def kill() -> None:
        wait_until(lambda: daemon.saved_upto() == 1, 30, "the cell is saved")
        daemon.kill()
        start(args=["--port", str(daemon.port)])

    run_python = Claude.TOOLS + "run_python"
    script = [Use(run_python, {"code": "x, y = 41, 1"}), Use(run_python, {"code": "x + 1"}, kill)]
    _, before, after = claude.ask("Go.", script).got
    assert (before.error, after.error) == (False, False)
    assert RESTARTED.match(after.text)
    assert re.search(r"^Out\[2\]: 42$", after.text, re.MULTILINE)


@pytest.mark.timeout(LIMIT_S + 30)
def test_prompts_are_commands_in_claude_code(claude: Claude, daemon: Daemon) -> None:
    (daemon.work / "sales.csv").write_text("size,price\n1,2\n")
    run = claude.ask("/mcp__python__explore_file sales.csv", [])
    told = json.dumps(run.model.asked[0]["messages"])
    assert "Explore the file `sales.csv` (15B) of the workspace" in told
    assert "size,price\\n1,2" in told


# ---- Gemini CLI ----


@pytest.mark.timeout(LIMIT_S + 30)
def test_gemini_cli_over_http(start: type_of_start, tmp_path: Path) -> None:
    run = GeminiCli(tmp_path / "home", start().port).ask("Go.", uses(GeminiCli))
    assert run.out.startswith("done")
    check_conversation(run.got, replaces=True)  # it says that it cannot ask


# ---- mcp-remote ----


@pytest.mark.timeout(LIMIT_S + 30)
@pytest.mark.parametrize("name", ["python-1", "typescript-1"])
def test_the_conversation_through_mcp_remote(
    name: str, start: type_of_start, tmp_path: Path
) -> None:
    """What clients that only start servers reach a daemon with tokens by."""
    require(REMOTE)
    daemon = start(env={"VIVARIUM_TOKEN": "a-token-that-is-long-enough-to-be-taken"})
    header = f"--header 'Authorization: Bearer {daemon.bearer}'"
    bridge = tmp_path / "bridge"
    bridge.write_text(f'#!/bin/sh\nexec "{NODE}" "{REMOTE}" {daemon.url} --silent {header}\n')
    bridge.chmod(0o755)
    env = bare_env(tmp_path, **QUIET, MCP_REMOTE_CONFIG_DIR=str(tmp_path / "auth"))
    converse(STDIO[name], f"stdio:{bridge}", env)

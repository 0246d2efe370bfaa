# SPDX-License-Identifier: MIT
"""Programs that people talk to a model with, run as they are: with a model that follows a
script, the daemon behind a relay, and nothing else that they could reach."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import platform
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from enclosed import MODEL, SERVER
from harness import REPO
from relay import Relay, Request
from scripted_models import Anthropic, Gemini, Got, Model, Use

ROOM = REPO / "tests" / "agents" / "node_modules"
NODE = REPO / ".venv-clients" / "bin" / "node"
CPU = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), "")
CLAUDE = ROOM / "@anthropic-ai" / f"claude-code-linux-{CPU}" / "claude"
GEMINI = ROOM / "@google" / "gemini-cli" / "bundle" / "gemini.js"
REMOTE = ROOM / "mcp-remote" / "dist" / "proxy.js"
URL = f"http://127.0.0.1:{SERVER}/mcp"
LIMIT_S = 150
# Nothing is reached even if these are overlooked; what is not tried saves time.
QUIET = {
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_AUTOUPDATER": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "HTTP_PROXY": "http://127.0.0.1:9",
    "HTTPS_PROXY": "http://127.0.0.1:9",
    "NO_PROXY": "127.0.0.1",
}


def require(program: Path) -> Path:
    if not ((ROOM / ".stamp").exists() and program.exists() and NODE.exists()):
        pytest.skip(f"no {program.name}: npm's registry was out of reach at set-up")
    return program


@functools.cache
def unshare() -> list[str]:
    """The command that a network of one's own begins with; [] where none can be had."""
    command = [shutil.which("unshare") or "unshare", "--net"]
    if os.getuid():
        command.insert(1, "--map-root-user")
    tried = subprocess.run([*command, "true"], capture_output=True, check=False)
    return [] if tried.returncode else command


@contextlib.contextmanager
def enclosed(
    command: Sequence[str | Path], env: Mapping[str, str], cwd: Path
) -> Iterator[tuple[subprocess.Popen[str], socket.socket, socket.socket]]:
    """The process, and the sockets that listen on MODEL and SERVER beside it."""
    if not unshare():
        pytest.skip("no network of its own for a program that is to reach nothing")
    inside = str(Path(__file__).with_name("enclosed.py"))
    ours, theirs = socket.socketpair()
    with ours, theirs:
        process = subprocess.Popen(
            [*unshare(), sys.executable, inside, str(theirs.fileno()), *command],
            env=env,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            pass_fds=[theirs.fileno()],
        )
        theirs.close()
        message, fds, *_ = socket.recv_fds(ours, 1, 2)
    with process:
        assert message, process.communicate(timeout=LIMIT_S)
        model, server = (socket.socket(fileno=fd) for fd in fds)
        with model, server:
            try:
                yield process, model, server
            finally:
                process.kill()


@dataclass
class Run:
    """What a program that has ended said and did."""

    out: str
    model: Model
    requests: list[Request]

    @property
    def got(self) -> list[Got]:
        return self.model.got()


class Agent:
    """A program with a home of its own.  port: the daemon's, or 0: it starts one itself."""

    env: Mapping[str, str]
    model: type[Model]

    def __init__(self, home: Path, port: int = 0) -> None:
        self.home, self.port = home, port
        self.room = home / "project"
        self.room.mkdir(parents=True)
        self.set_up()

    def set_up(self) -> None:
        """Tells it of the server where that takes more than the command line."""

    def start(self, *command: str | Path, script: Sequence[Use] = ()) -> Run:
        own = {"PATH": "/usr/bin:/bin", "HOME": str(self.home), **QUIET, **self.env}
        with enclosed(command, own, self.room) as (process, models, servers):
            model, relay = self.model(models, script), Relay(servers, self.port)
            try:
                out, complaints = process.communicate(timeout=LIMIT_S)
            finally:
                model.close()
                relay.close()
        print(out, complaints, sep="\n")  # pytest shows it after a failure
        assert process.returncode == 0
        return Run(out, model, relay.requests())


class Claude(Agent):
    env: Mapping[str, str] = {
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{MODEL}",
        "ANTHROPIC_API_KEY": "none",
        # A slow machine is no reason to begin without the server.
        "MCP_CONNECTION_NONBLOCKING": "0",
        "MCP_CONNECT_TIMEOUT_MS": "120000",
        "MCP_TIMEOUT": "120000",
    }
    model = Anthropic
    TOOLS = "mcp__python__"

    def run(self, *arguments: str, script: Sequence[Use] = ()) -> Run:
        return self.start(require(CLAUDE), *arguments, script=script)

    def ask(self, prompt: str, script: Sequence[Use]) -> Run:
        """Without anybody at the keyboard.  It looks for tools of servers by name first."""
        tools = {use.tool for use in script}
        find = Use("ToolSearch", {"query": "select:" + ",".join(sorted(tools))})
        may = "mcp__python,ReadMcpResourceTool"
        return self.run("--print", prompt, "--allowedTools", may, script=[find, *script])


class GeminiCli(Agent):
    env: Mapping[str, str] = {
        "GOOGLE_GEMINI_BASE_URL": f"http://127.0.0.1:{MODEL}",
        "GEMINI_API_KEY": "none",
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
    }
    model = Gemini
    TOOLS = "mcp_python_"

    def set_up(self) -> None:
        settings = {
            "mcpServers": {"python": {"httpUrl": URL}},
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "privacy": {"usageStatisticsEnabled": False},
            "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
        }
        place = self.home / ".gemini"
        place.mkdir()
        (place / "settings.json").write_text(json.dumps(settings))

    def ask(self, prompt: str, script: Sequence[Use]) -> Run:
        model = ("--model", "gemini-2.5-pro", "--yolo")
        return self.start(NODE, require(GEMINI), *model, "--prompt", prompt, script=script)

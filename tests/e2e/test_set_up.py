# SPDX-License-Identifier: MIT
"""Set-up (deploy/setup.sh) in a clone of its own, with an index of packages on this machine."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import shutil
import signal
import socket
import subprocess
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from harness import REPO

pytestmark = pytest.mark.timeout(180)  # makes environments

NAME = "vivarium_try-1.0-py3-none-any.whl"
PATIENCE = 120


def make_wheel() -> bytes:
    room = io.BytesIO()
    with zipfile.ZipFile(room, "w") as wheel:
        about = "vivarium_try-1.0.dist-info"
        wheel.writestr("vivarium_try.py", "")
        wheel.writestr(
            f"{about}/METADATA", "Metadata-Version: 2.1\nName: vivarium-try\nVersion: 1.0\n"
        )
        wheel.writestr(
            f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{about}/RECORD", "")
    return room.getvalue()


WHEEL = make_wheel()
LOCK = f"vivarium-try==1.0 --hash=sha256:{hashlib.sha256(WHEEL).hexdigest()}\n"


class Index:
    """Has one package.  Gives its file when `may_give` is set, or never if it `refuses`."""

    def __init__(self) -> None:
        self.refuses = False
        self.was_asked = threading.Event()  # for the file
        self.may_give = threading.Event()
        self.may_give.set()
        self.asked: list[str] = []
        index = self

        class Answer(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                index.asked.append(self.path)
                body = f'<a href="/{NAME}">{NAME}</a>'.encode()
                if self.path.endswith(".whl"):
                    index.was_asked.set()
                    index.may_give.wait(PATIENCE)
                    body = WHEEL
                refused = index.refuses and self.path.endswith(".whl")
                with contextlib.suppress(OSError):
                    self.send_response(404 if refused else 200)
                    self.send_header("Content-Type", "text/html")
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self.port = self.server.server_address[1]

    def files_given(self) -> int:
        return sum(path.endswith(".whl") for path in self.asked)


@pytest.fixture
def index() -> Iterator[Index]:
    index = Index()
    thread = threading.Thread(target=index.server.serve_forever)
    thread.start()
    yield index
    index.may_give.set()
    index.server.shutdown()
    thread.join()
    index.server.server_close()


class Clone:
    """What set-up reads of a clone; a package manager that only says that it was called."""

    def __init__(self, root: Path, port: int) -> None:
        self.root, self.tools, self.called = root / "clone", root / "tools", root / "called"
        shutil.copytree(REPO / "deploy", self.root / "deploy")
        shutil.copytree(REPO / "pyside/vivarium_charts", self.root / "pyside/vivarium_charts")
        (self.root / "deploy/packages.txt").write_text("dev no-such-package\n")
        for lock in ("requirements.txt", "requirements-dev.txt"):
            (self.root / lock).write_text(LOCK)
        self.tools.mkdir()
        for tool in ("apt-get", "sudo"):
            (self.tools / tool).write_text(f"#!/bin/sh\necho {tool} >>{self.called}\nexit 1\n")
            (self.tools / tool).chmod(0o755)
        self.env = {
            "PATH": f"{self.tools}:{os.environ['PATH']}",
            "HOME": str(root),
            "PIP_CONFIG_FILE": "/dev/null",
            "PIP_INDEX_URL": f"http://127.0.0.1:{port}/simple",
        }

    def begin(self, purpose: str, **env: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["deploy/setup.sh", purpose],
            cwd=self.root,
            env=self.env | env,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=heed_signals,  # noqa: PLW1509 (three system calls)
        )

    def set_up(self, purpose: str = "run", **env: str) -> tuple[int, str]:
        return end(self.begin(purpose, **env))

    def source(self, environment: str = ".venv") -> str:
        """Where its packages came from; "" if it is not there at all."""
        room = self.root / environment
        return (room / ".stamp").read_text().split()[1] if room.exists() else ""


def heed_signals() -> None:
    """In the child, as in a terminal: what nohup or a job in the background ignores, it would."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def end(process: subprocess.Popen[str]) -> tuple[int, str]:
    said = process.communicate(timeout=PATIENCE)[1]
    return process.returncode, said


@pytest.fixture
def clone(tmp_path: Path, index: Index) -> Clone:
    return Clone(tmp_path, index.port)


@pytest.fixture
def lonely(tmp_path: Path) -> Iterator[Clone]:
    """Where no index answers: its port is taken, and nobody listens."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        yield Clone(tmp_path, silent.getsockname()[1])


def test_an_environment_is_made_once(clone: Clone, index: Index) -> None:
    status, said = clone.set_up()
    assert (status, clone.source()) == (0, "pypi"), said
    assert clone.set_up() == (0, "")
    assert index.files_given() == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_ends_set_up(clone: Clone, index: Index, number: signal.Signals) -> None:
    index.may_give.clear()
    process = clone.begin("run")
    assert index.was_asked.wait(PATIENCE)
    os.killpg(process.pid, number)  # as a terminal does
    status, said = end(process)
    assert (status, clone.source()) == (128 + number, ""), said
    assert "interrupted" in said
    index.may_give.set()
    assert clone.set_up()[0] == 0
    assert clone.source() == "pypi"


def test_a_second_set_up_waits_for_the_first(clone: Clone, index: Index) -> None:
    index.may_give.clear()
    first = clone.begin("run")
    assert index.was_asked.wait(PATIENCE)
    second = clone.begin("run")
    assert second.stderr
    assert "waiting for it" in second.stderr.readline()
    index.may_give.set()
    assert end(first)[0] == 0
    assert end(second) == (0, "")
    assert (clone.source(), index.files_given()) == ("pypi", 1)


@pytest.mark.parametrize("by_proxy", [False, True])
def test_a_failure_that_is_not_the_networks_is_not_hidden(
    clone: Clone, index: Index, by_proxy: bool
) -> None:
    index.refuses = True
    if by_proxy:  # the index itself, asked for a name that no name server knows
        clone.env |= {
            "http_proxy": f"http://127.0.0.1:{index.port}",
            "PIP_INDEX_URL": "http://index.invalid/simple",
            "PIP_TRUSTED_HOST": "index.invalid",
        }
    status, said = clone.set_up()
    assert (status, clone.source()) == (1, ""), said
    assert "404" in said  # pip's own words
    assert "VIVARIUM_SETUP_PYPI=0 make run" in said


def test_without_room_for_an_environment_there_is_none(clone: Clone, index: Index) -> None:
    python = clone.tools / "python"
    python.write_text("#!/bin/sh\necho 'No space left on device' >&2\nexit 1\n")
    python.chmod(0o755)
    status, said = clone.set_up(VIVARIUM_SETUP_PYTHON=str(python))
    assert (status, clone.source(), index.asked) == (1, "", []), said
    assert "could not be made; the lines above say why" in said


def test_without_pypi_debian_has_the_packages_and_set_up_says_so(lonely: Clone) -> None:
    for _ in range(2):
        status, said = lonely.set_up()
        assert (status, lonely.source()) == (0, "debian"), said
        assert "to try PyPI again: rm -r .venv\n" in said


def test_debians_packages_can_be_asked_for(clone: Clone, index: Index) -> None:
    status, said = clone.set_up(VIVARIUM_SETUP_PYPI="0")
    assert (status, clone.source(), index.asked) == (0, "debian", []), said


def test_the_demo_needs_pypi_and_says_so_before_it_installs_anything(lonely: Clone) -> None:
    for _ in range(2):
        status, said = lonely.set_up("demo")
        assert (status, lonely.source(".venv-dev")) == (1, ""), said
        assert said.endswith("the official MCP client for Python, which only PyPI has\n")
    assert not lonely.called.exists()

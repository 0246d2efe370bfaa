"""Fixtures of the end-to-end tests.  Nothing here is automatic: a module that has
fixtures of its own is left alone.
"""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import REPO, Client, Daemon

PYTHONS = {
    "ipykernel-6": Path("/usr/bin/python3"),
    "ipykernel-7": REPO / ".venv" / "bin" / "python",
}
PLOTS = REPO / ".venv-plots" / "bin" / "python"  # has what the extra `plots` lists
FAKE = Path(__file__).with_name("fake_kernel.py")

type_of_start = Callable[..., Daemon]


@functools.cache
def ipykernel_of(python: Path) -> str:
    """The version that the interpreter has, or ""."""
    if not os.access(python, os.X_OK):
        return ""
    probe = subprocess.run(
        [python, "-c", "import ipykernel; print(ipykernel.__version__)"],
        capture_output=True,
        text=True,
        check=False,
    )
    return probe.stdout.strip() if probe.returncode == 0 else ""


def require_python(name: str) -> Path:
    python = PYTHONS[name]
    if ipykernel_of(python).partition(".")[0] != name.rpartition("-")[2]:
        pytest.skip(f"{python} has no {name}")
    return python


def require_plots() -> Path:
    if not PLOTS.exists():
        pytest.skip(f"there is no {PLOTS}; `make test` makes it where PyPI can be reached")
    return PLOTS


def any_python() -> Path:
    for python in reversed(PYTHONS.values()):
        if ipykernel_of(python):
            return python
    pytest.skip("no interpreter has ipykernel")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        for value in getattr(item, "funcargs", {}).values():
            if isinstance(value, Daemon):
                report.sections.append((f"log of daemon {value.pid}", value.log()[-8000:]))
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What tests want to have shown though they pass: record_property("shown", TEXT)."""
    for report in terminalreporter.getreports("passed"):
        for name, value in report.user_properties:
            if name == "shown":
                terminalreporter.write_line(str(value))


def run_daemon(home: Path, **options: Any) -> Iterator[Daemon]:
    daemon = Daemon(home, **options)
    try:
        yield daemon
        daemon.stop()
    finally:
        daemon.clean_up()


@pytest.fixture(params=list(PYTHONS), scope="module")
def live(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A daemon that the tests of a module share, once with each interpreter."""
    python = require_python(request.param)
    home = tmp_path_factory.mktemp(request.param)
    yield from run_daemon(home, env={"VIVARIUM_PYTHON": str(python)})


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon that the tests of a module share, where the interpreter does not matter."""
    yield from run_daemon(
        tmp_path_factory.mktemp("shared"), env={"VIVARIUM_PYTHON": str(any_python())}
    )


@pytest.fixture
def start(tmp_path: Path) -> Iterator[type_of_start]:
    """start(env=..., args=..., name=...): daemons of this test alone."""
    daemons: list[Daemon] = []

    def begin(name: str = "d", **options: Any) -> Daemon:
        home = tmp_path / name
        home.mkdir(exist_ok=True)
        env = {"VIVARIUM_PYTHON": str(any_python()), **options.pop("env", {})}
        daemons.append(Daemon(home, env=env, **options))
        return daemons[-1]

    try:
        yield begin
        for daemon in daemons:
            daemon.stop()
    finally:
        for daemon in daemons:
            daemon.clean_up()


@contextlib.contextmanager
def mounted_tmpfs(place: Path, size: str) -> Iterator[None]:
    """A disk that is soon full; skips the test where none can be mounted."""
    place.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
    mounted = subprocess.run(command, capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip(f"no tmpfs can be mounted here: {mounted.stderr.decode().strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", place], check=True)


@pytest.fixture
def daemon(start: type_of_start) -> Daemon:
    """A daemon of this test alone."""
    return start()


@pytest.fixture
def client(daemon: Daemon) -> Client:
    return daemon.client()


@pytest.fixture
def fake_python(tmp_path: Path) -> Path:
    """A program for VIVARIUM_PYTHON that is the scripted kernel of fake_kernel.py."""
    wrapper = tmp_path / "fake-python"
    wrapper.write_text(
        # The daemon asks first whether it is a Python with ipykernel.
        f'#!/bin/sh\n[ "$1" != -c ] || exec "{any_python()}" "$@"\n'
        f'exec "{sys.executable}" "{FAKE}" "$@"\n'
    )
    wrapper.chmod(0o755)
    return wrapper

# SPDX-License-Identifier: MIT
"""What people do in cells works behind every wall, with both kernels."""

from __future__ import annotations

import http.server
import subprocess
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from conftest import require_python
from harness import Client, Daemon
from tiers import HOUSES, home_of, require, walls
from workload import NETWORK_THINGS, PROXY_THINGS, THINGS, Thing

# Every tier with both; as an ordinary user once.
RUNS = [
    (tier, who, python)
    for tier, who in [("off", "root"), *HOUSES]
    for python in ("ipykernel-6", "ipykernel-7")
    if who == "root" or python == "ipykernel-7"
]


def missing_modules(python: Path, things: Mapping[str, Thing]) -> set[str]:
    """Of those that the things need, what the kernels' interpreter does not have."""
    wanted = sorted({module for thing in things.values() for module in thing.needs})
    code = (
        "import sys, importlib.util as u\n"
        "print(*[name for name in sys.argv[1:] if not u.find_spec(name)])"
    )
    command = [str(python), "-c", code, *wanted]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def do(client: Client, things: Mapping[str, Thing], tier: str, missing: set[str]) -> list[str]:
    """What did not work, in words."""
    failures = []
    for name, thing in things.items():
        if tier in thing.not_in or missing.intersection(thing.needs):
            continue
        result = client.run(thing.code.strip())
        if result.exit_code != 0 or thing.wants not in result.text:
            failures.append(f"{name}: exit code {result.exit_code}: {result.text[:300]}")
    return failures


def test_there_are_enough_things() -> None:
    assert len(THINGS) + len(NETWORK_THINGS) >= 30
    assert len([thing for thing in THINGS.values() if not thing.needs]) >= 30


@pytest.mark.timeout(180)
@pytest.mark.parametrize(("tier", "who", "name"), RUNS)
def test_what_people_do(tier: str, who: str, name: str) -> None:
    python = require_python(name)
    require(tier, who)
    env = {"VIVARIUM_PYTHON": str(python), "VIVARIUM_WALLS": walls(tier)}
    things = THINGS | NETWORK_THINGS
    with home_of(who) as (home, options):
        daemon = Daemon(home, env=env, **options)
        try:
            client = daemon.client()
            kernel = client.run("import os; os.getpid()").data["result"]
            failures = do(client, things, tier, missing_modules(python, things))
            assert not failures, "\n" + "\n".join(failures)
            # All of it in one kernel: none died on the way.
            assert client.run("os.getpid()").data["result"] == kernel
            daemon.stop()
        finally:
            daemon.clean_up()


class Proxy(http.server.BaseHTTPRequestHandler):
    """Answers by itself whatever it is asked for."""

    def do_GET(self) -> None:
        body = f"proxied {self.path}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def proxy() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.timeout(120)
@pytest.mark.parametrize(("tier", "who"), [("off", "root"), *HOUSES])
def test_the_proxy_is_reached(tier: str, who: str, proxy: str) -> None:
    python = require_python("ipykernel-7")
    require(tier, who)
    env = {
        "VIVARIUM_PYTHON": str(python),
        "VIVARIUM_WALLS": walls(tier),
        "VIVARIUM_NETWORK": "proxy",
        "http_proxy": proxy,
        "https_proxy": proxy,
    }
    with home_of(who) as (home, options):
        daemon = Daemon(home, env=env, **options)
        try:
            missing = missing_modules(python, PROXY_THINGS)
            failures = do(daemon.client(), PROXY_THINGS, tier, missing)
            assert not failures, "\n" + "\n".join(failures)
            daemon.stop()
        finally:
            daemon.clean_up()

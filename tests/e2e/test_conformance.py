"""The official conformance suite of MCP against the real program: with its fixtures
(--conformance), where all that is required has to pass, and without them, where only what
is named in tests/conformance/expected-failures.yml may fail.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import type_of_start
from harness import REPO, Daemon, bare_env, run_program

ROOM = REPO / "tests" / "conformance"
NODE = REPO / ".venv-clients" / "bin" / "node"
EXPECTED = ROOM / "expected-failures.yml"
LIMIT_S = 150
BAD = {"FAILURE", "WARNING"}  # a warning is a SHOULD that is not kept
UNSCORED = r"^  \S (\S+) \([\w-]+\)$"  # as the suite lists them
UNWRITTEN = {"tasks-status-notifications"}  # in the suite: see test_tasks.py


@dataclass
class Suite:
    version: str  # as the packages are called in package.json
    options: list[str]
    required: int  # scenarios
    checks: int  # that succeed


SUITES = {
    "0.1.16": Suite("conformance-1", [], 30, 40),
    "2025-11-25": Suite("conformance-2", ["--requirements", "2025-11-25"], 30, 84),
    "2026-07-28": Suite("conformance-2", ["--requirements", "2026-07-28"], 37, 196),
}


def command(suite: Suite, daemon: Daemon, *options: str) -> list[str | Path]:
    program = ROOM / "node_modules" / suite.version / "dist" / "index.js"
    return [NODE, program, "server", "--url", daemon.url, *suite.options, *options]


def run(arguments: list[str | Path]) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        arguments,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    _, _, summary = done.stdout.partition("=== SUMMARY ===")
    print(summary or done.stdout, done.stderr, sep="\n")
    return done


def read_results(place: Path) -> dict[str, Counter[str]]:
    """How often each status came, by scenario; server-NAME-TIME is a directory."""
    results = {}
    for file in place.glob("server-*/checks.json"):
        name = re.sub(r"^server-(.*)-\d{4}-\d\d-\d\dT.*$", r"\1", file.parent.name)
        checks = json.loads(file.read_text())
        results[name] = Counter(check["status"] for check in checks)
    return results


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    if not NODE.exists() or not (ROOM / "node_modules" / ".stamp").exists():
        pytest.skip("no conformance suite: npm's registry was out of reach at set-up")


@pytest.mark.timeout(LIMIT_S + 30)
@pytest.mark.parametrize("name", SUITES)
def test_all_that_is_required_passes(
    name: str,
    start: type_of_start,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    suite, out = SUITES[name], tmp_path / "out"
    done = run(command(suite, start(args=["--conformance"]), "-o", str(out)))
    results = read_results(out)
    failed = {scenario for scenario, statuses in results.items() if statuses.keys() & BAD}
    assert not failed
    assert len(results) >= suite.required
    assert sum(statuses["SUCCESS"] for statuses in results.values()) >= suite.checks
    skipped = {scenario for scenario, statuses in results.items() if "SKIPPED" in statuses}
    assert skipped <= UNWRITTEN
    unscored = re.findall(UNSCORED, done.stdout, re.MULTILINE)
    assert len(results) == suite.required + len(unscored)
    record_property(
        "shown",
        f"conformance {name}: {suite.required}/{suite.required} scenarios required,"
        f" {sum(statuses['SUCCESS'] for statuses in results.values())} checks pass; of the"
        f" unscored {', '.join(unscored) or '(none)'} {len(unscored) - len(skipped)} pass,"
        f" {len(skipped)} the suite skips",
    )


@pytest.mark.timeout(LIMIT_S + 30)
@pytest.mark.parametrize("name", SUITES)
def test_without_fixtures_only_what_needs_them_fails(name: str, start: type_of_start) -> None:
    # Exits with 0 only if exactly what is named there fails, of what this suite has.
    done = run(command(SUITES[name], start(), "--expected-failures", str(EXPECTED)))
    assert done.returncode == 0


def test_without_the_flag_there_is_no_fixture(daemon: Daemon) -> None:
    client = daemon.client()
    offered = [tool["name"] for tool in client.request("tools/list")["tools"]]
    offered += [prompt["name"] for prompt in client.request("prompts/list")["prompts"]]
    offered += [row["uri"] for row in client.request("resources/list")["resources"]]
    assert not [name for name in offered if name.startswith(("test", "json_schema"))]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_fixtures_are_not_for_other_machines(host: str, tmp_path: Path) -> None:
    env = bare_env(tmp_path, VIVARIUM_ANONYMOUS="1")
    done = run_program("--conformance", "--host", host, env=env, cwd=tmp_path)
    assert done.returncode == 2
    assert f"--host={host} is reached by other machines" in done.stderr

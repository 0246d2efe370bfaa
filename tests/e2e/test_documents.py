"""The documents tell the truth: generated tables are fresh, the tour is what happens."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUILD = ROOT / os.environ.get("VIVARIUM_BUILD", "build-asan")


def without_numbers(text: str) -> str:
    """Memory, sizes, versions and the moment of saving differ from run to run."""
    return re.sub(r"being saved", "saved", re.sub(r"[\d.]+K?", "N", text))


def test_the_generated_tables_are_fresh() -> None:
    run = subprocess.run(
        [sys.executable, ROOT / "docs/tables.py", BUILD / "vivarium"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout


def test_the_tour_is_the_transcript_of_the_demo(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, ROOT / "tests/demo.py", BUILD / "vivarium", tmp_path],
        capture_output=True,
        text=True,
        check=True,
    )
    tour = re.search(
        r"<!-- begin tour -->\n(.*?)<!-- end tour -->", (ROOT / "README.md").read_text(), re.S
    )
    assert tour
    assert without_numbers(run.stdout) == without_numbers(tour[1])
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_architecture_stays_short() -> None:
    assert len((ROOT / "ARCHITECTURE.md").read_text().splitlines()) <= 200
    assert len((ROOT / "README.md").read_text().splitlines()) <= 260

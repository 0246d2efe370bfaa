"""The documents tell the truth: generated tables are fresh, the tour is what happens."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("deploy/clients/*.md")])
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


def anchors(page: Path) -> set[str]:
    """Of its headings, as the sites that show repositories make them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.M)
    return {re.sub(r"[^\w -]", "", text.lower()).replace(" ", "-") for text in headings}


def test_links_between_documents_lead_somewhere() -> None:
    for page in PAGES:
        for path, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", page.read_text()):
            to = (page.parent / path).resolve() if path else page
            assert to.exists(), (page.name, path)
            assert not anchor or anchor in anchors(to), (page.name, path, anchor)


def test_documents_name_settings_that_there_are() -> None:
    run = subprocess.run([BUILD / "vivarium", "--help"], capture_output=True, text=True, check=True)
    known = run.stdout + (ROOT / "deploy/setup.sh").read_text()
    settings = set(re.findall(r"VIVARIUM_[A-Z_]+", known))
    for page in PAGES:
        named = set(re.findall(r"\bVIVARIUM_[A-Z_]+\b", page.read_text()))
        assert named <= settings, page.name


def test_make_help_lists_every_verb() -> None:
    makefile = (ROOT / "Makefile").read_text().replace("\\\n", " ")
    verbs = re.search(r"^\.PHONY: (.*)$", makefile, re.M)
    command = ["make", "--no-print-directory", "help"]  # it may be inside `make test`
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert verbs
    assert {line.split()[0] for line in run.stdout.splitlines()} == set(verbs[1].split())


def test_architecture_stays_short() -> None:
    assert len((ROOT / "ARCHITECTURE.md").read_text().splitlines()) <= 200
    assert len((ROOT / "README.md").read_text().splitlines()) <= 260

# SPDX-License-Identifier: MIT
"""What a chat gets for a cell: result_cells.py is the list, all run in one kernel."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import PYTHONS, require_plots, require_python, run_daemon
from harness import Client, Daemon, Result, png_size
from result_cells import GROUPS, PLOTS, Cell

CELLS = {
    extra: [
        pytest.param(cell, id=f"{group}-{number}")
        for group, cells in GROUPS.items()
        for number, cell in enumerate(cells)
        if bool(PLOTS.intersection(cell.needs)) == extra
    ]
    for extra in (False, True)
}


@pytest.fixture(params=list(PYTHONS), scope="module")
def chat(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    yield from begin(require_python(request.param), tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="module")
def plots(tmp_path_factory: pytest.TempPathFactory) -> Any:
    yield from begin(require_plots(), tmp_path_factory.mktemp("plots"))


def begin(python: Path, home: Path) -> Iterator[Chat]:
    # Nothing is saved: that looks into objects in its own way, and is no part of this.
    env = {"VIVARIUM_PYTHON": str(python), "VIVARIUM_DURABILITY": "off"}
    for daemon in run_daemon(home, env=env):
        yield Chat(daemon)


class Chat:
    """A session, and what its interpreter has."""

    def __init__(self, daemon: Daemon) -> None:
        self.client: Client = daemon.client()
        self.packages: dict[str, bool] = {}

    def has(self, package: str) -> bool:
        if package.startswith("!"):
            return not self.has(package[1:])
        if package not in self.packages:
            probe = f"__import__('importlib.util').util.find_spec('{package}') is not None"
            self.packages[package] = self.client.run(probe).data["result"] == "True"
        return self.packages[package]


def plain(text: str) -> str:
    """Without the numbers of cells."""
    text = re.sub(r"\bOut\[\d+\]", "Out", text)
    return re.sub(r"\b(picture|page|chart)-\d+(-\d+)?\.", r"\1-N.", text)


@pytest.mark.parametrize("cell", CELLS[False])
def test_a_cell_gives(chat: Chat, cell: Cell) -> None:
    missing = [package for package in cell.needs if not chat.has(package)]
    if missing:
        pytest.skip(f"this interpreter has no {' and no '.join(missing)}")
    check(chat.client.run(cell.code), cell)


@pytest.mark.parametrize("cell", CELLS[True])
def test_a_cell_with_the_chart_libraries_gives(plots: Chat, cell: Cell) -> None:
    check(plots.client.run(cell.code), cell)


def check(result: Result, cell: Cell) -> None:
    text, footer = plain(result.text), plain(result.footer)
    if cell.text is not None:
        assert text == cell.text
    for part in cell.has:
        assert part in text
    for part in cell.lacks:
        assert part not in text + footer
    sizes = [png_size(image) for image in result.images]
    assert len(sizes) == len(cell.images), (sizes, text)
    for size, wanted in zip(sizes, cell.images, strict=True):
        assert wanted is None or size == wanted, sizes
    assert cell.footer in footer.replace("\n", " \n"), footer


def test_there_are_enough_cells() -> None:
    assert sum(map(len, GROUPS.values())) >= 150

# SPDX-License-Identifier: MIT
"""What `cmake --install` puts somewhere is all that is needed there."""

import subprocess
from pathlib import Path

import pytest
from conftest import type_of_start
from harness import BUILD, REPO

CHART = """
from vivarium_charts import bar_chart
bar_chart({'北京': 1200, 'القاهرة': 900, 'Zürich 😀': 400}, title='销售 مبيعات')
"""
FONTS = """
from vivarium_charts import fontlist
made, here = ({path.name for path in place.glob('fontlist-*.json')}
              for place in (fontlist.SHARED, fontlist.home_cache()))
print(fontlist.SHARED, made <= here)
"""


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    prefix = tmp_path / "usr"
    subprocess.run(
        ["cmake", "--install", BUILD, "--prefix", prefix], check=True, capture_output=True
    )
    return prefix


def test_an_installed_daemon_draws_any_script(prefix: Path, start: type_of_start) -> None:
    client = start(program=prefix / "bin" / "vivarium").client()
    drawn = client.run(CHART)
    assert len(drawn.images) == 1, drawn.text
    assert "no font" not in drawn.text
    assert drawn.data["files"][0]["path"].endswith(".png")
    fonts = client.run(FONTS)
    shared = f"{prefix}/share/vivarium/pyside/vivarium_charts/fontlists"
    assert fonts.data["stdout"] == f"{shared} True\n", fonts.text


def test_what_is_installed_is_what_is_there(prefix: Path) -> None:
    def files(root: Path) -> set[Path]:
        found = {path.relative_to(root) for path in root.rglob("*") if path.is_file()}
        return {p for p in found if "__pycache__" not in p.parts and p.name != ".stamp"}

    assert files(prefix / "share/vivarium/pyside") == files(REPO / "pyside")
    assert not list(prefix.rglob("__pycache__"))
    programs = {path.name for path in (prefix / "bin").iterdir()}
    assert programs == {path.name for path in BUILD.glob("vivarium*") if path.is_file()} - {
        "vivarium-filter"  # writes the filters that are compiled in
    }

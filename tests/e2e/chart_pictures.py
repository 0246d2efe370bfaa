# SPDX-License-Identifier: MIT
"""The charts whose pictures are kept in tests/data/charts, drawn by the interpreter that runs this.

usage: chart_pictures.py compare   one JSON object: for each chart how far it is from its picture
       chart_pictures.py write     keep the charts as they are now, after somebody looked at them

There are two sets: matplotlib 3.11 and newer shape text, older ones do not.
"""

import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "pyside"))

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from PIL import Image  # noqa: E402
from vivarium_charts import bar_chart, line_chart, scatter_chart  # noqa: E402
from vivarium_charts.lettering import SHAPES  # noqa: E402

KEPT = ROOT / "tests/data/charts" / ("shaped" if SHAPES else "unshaped")
BLOCK = 8  # pixels that are compared as one: letters may be set a little differently
COLOURS = 200  # in a kept picture


def wave(rows: int, columns: int) -> np.ndarray:
    """Numbers that look like data, the same everywhere."""
    at, series = np.arange(rows)[:, None], np.arange(columns)[None, :]
    return 50 + 9 * np.sin(at / (4 + series)) + 0.7 * at * np.cos(series * 1.7) + series


def lines(name: str) -> None:
    years = pd.DataFrame(wave(26, 2), columns=["de", "fr"]).assign(year=range(1995, 2021))
    line_chart(
        years,
        x="year",
        y=["de", "fr"],
        title="Unit labour costs, 1995=100",
        ylabel="Index",
        filename=name,
    )


def days(name: str) -> None:
    index = pd.date_range("2014-01-01", periods=3652, freq="D").strftime("%Y-%m-%d")
    line_chart({"price": pd.Series(wave(3652, 1)[:, 0] * 1000, index)}, filename=name)


def many_lines(name: str) -> None:
    line_chart(pd.DataFrame(wave(60, 100)).add_prefix("series "), filename=name)


def legend_beside(name: str) -> None:
    line_chart(pd.DataFrame(wave(40, 12)).add_prefix("Region of the country "), filename=name)


def gaps(name: str) -> None:
    line_chart({"v": ["1", "n/a", "3", "NA", "5", "6", "7,5", ":", "9"]}, filename=name)


def log_with_zero(name: str) -> None:
    line_chart({"v": [0, 1, 10, 500, 20000, 0, 3]}, yscale="log", filename=name)


def groups(name: str) -> None:
    table = {"quarter": ["2020Q1", "2020Q2", "2020Q3"], "ulc": [1, 3.4, -2], "mrc": [1, 2, -0.5]}
    bar_chart(table, x="quarter", y=["ulc", "mrc"], title="Standing", filename=name)


def lying(name: str) -> None:
    table = {"quarter": ["2020Q1", "2020Q2", "2020Q3"], "ulc": [1, 3.4, -2], "mrc": [1, 2, -0.5]}
    bar_chart(table, x="quarter", y=["ulc", "mrc"], horizontal=True, filename=name)


def long_names(name: str) -> None:
    names = [f"A name of category {i} that nobody could call a short one" for i in range(50)]
    bar_chart(dict(zip(names, wave(50, 1)[:, 0], strict=True)), title="Fifty", filename=name)


def months(name: str) -> None:
    index = pd.period_range("2023-01", periods=18, freq="M")
    bar_chart(pd.DataFrame(wave(18, 2), index, ["v", "w"]), title="Months", filename=name)


def points(name: str) -> None:
    table = pd.DataFrame(wave(120, 2), columns=["invest", "growth"]) * [4000, 1]
    scatter_chart(table, x="invest", y="growth", title="Points", filename=name)


def scripts(name: str) -> None:
    table = pd.DataFrame(
        wave(4, 5), columns=["עברית", "العربية", "Ελλάδα", "Россия", "🚀 growth"]
    ).assign(x=["北京", "さいたま", "서울", "กรุงเทพ"])
    line_chart(table, x="x", title="城市 and مدينة, $5 and $6 ½ ★", filename=name)


CHARTS: list[Callable[[str], None]] = [
    lines,
    days,
    many_lines,
    legend_beside,
    gaps,
    log_with_zero,
    groups,
    lying,
    long_names,
    months,
    points,
    scripts,
]


def blocks(picture: Image.Image, size: tuple[int, int]) -> np.ndarray:
    small = (max(1, size[0] // BLOCK), max(1, size[1] // BLOCK))
    return np.asarray(picture.convert("RGB").resize(size).resize(small, Image.BOX), dtype=float)


def distance(made: Path, kept: Path) -> dict[str, float]:
    """Both of 255: over the whole picture, and where it is farthest."""
    new, old = Image.open(made), Image.open(kept)
    stretch = max(abs(a / b - 1) for a, b in zip(new.size, old.size, strict=True))
    apart = np.abs(blocks(new, old.size) - blocks(old, old.size))
    return {"stretch": stretch, "mean": float(apart.mean()), "most": float(apart.max())}


def main(what: str) -> None:
    found = {}
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        for chart in CHARTS:
            name = f"{chart.__name__}.png"
            chart(name)
            if what == "write":
                KEPT.mkdir(parents=True, exist_ok=True)
                small = Image.open(name).convert("RGB").quantize(COLOURS)
                small.save(KEPT / name, optimize=True)
            else:
                found[chart.__name__] = distance(Path(name), KEPT / name)
        os.chdir(ROOT)
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])

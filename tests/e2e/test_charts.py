# SPDX-License-Identifier: MIT
"""vivarium_charts in kernels of both interpreters: what is drawn, saved, shown and said.

How charts look is compared with kept pictures; see chart_pictures.py.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from conftest import PYTHONS, require_plots, require_python
from harness import REPO, Daemon, png_size
from kernel_process import KernelProcess

sys.path.append(str(REPO / "pyside"))

fontlist: Any = importlib.import_module("vivarium_charts.fontlist")

PRELUDE = """
import json, warnings
import numpy as np, pandas as pd
import vivarium_charts
from vivarium_charts import bar_chart, clean_numeric, kinds, line_chart, scatter_chart
warnings.simplefilter("error")
seen, save = [], kinds.save
def keep(figure, title, filename):
    seen.append(figure)
    return save(figure, title, filename)
kinds.save = keep
def box(artist):
    return [round(side) for side in artist.get_window_extent().extents]
def shown(axis):
    low, high = sorted(axis.get_view_interval())
    ticks = [t for t in axis.get_major_ticks() if low <= t.get_loc() <= high]
    return [t.label1 for t in ticks if t.label1.get_text()]
def about(axes):
    legend = axes.get_legend()
    return {
        "lines": [np.asarray(l.get_ydata(), float).tolist() for l in axes.lines],
        "xs": [np.asarray(l.get_xdata(), float).tolist() for l in axes.lines],
        "bars": [[[float(v) for v in (b.get_x(), b.get_y(), b.get_width(), b.get_height())]
                  for b in group]
                 for group in axes.containers],
        "points": [c.get_offsets().tolist() for c in axes.collections],
        "x": [l.get_text() for l in shown(axes.xaxis)],
        "y": [l.get_text() for l in shown(axes.yaxis)],
        "turned": [l.get_rotation() for l in shown(axes.xaxis)],
        "x boxes": [box(l) for l in shown(axes.xaxis)],
        "y boxes": [box(l) for l in shown(axes.yaxis)],
        "xlabel": axes.get_xlabel(), "ylabel": axes.get_ylabel(),
        "title": axes.get_title(loc="left"),
        "legend": [t.get_text() for t in legend.get_texts()] if legend else [],
        "legend box": box(legend) if legend else None,
        "axes box": box(axes),
        "spines": sorted(side for side, spine in axes.spines.items() if spine.get_visible()),
        "yscale": axes.get_yscale(), "xscale": axes.get_xscale(),
        "texts": [t.get_text() for t in axes.texts],
    }
def look(name):
    figure = seen[-1]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")
        figure.canvas.draw()
    print(json.dumps({"name": name, **about(figure.axes[0])}))
"""
Look = dict[str, Any]


@pytest.fixture(scope="module", params=list(PYTHONS))
def kernel(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KernelProcess]:
    with charting(require_python(request.param), tmp_path_factory.mktemp("charts")) as started:
        yield started


@contextmanager
def charting(python: Path, place: Path) -> Iterator[KernelProcess]:
    with KernelProcess(str(python), place) as started:
        result = started.run(PRELUDE)
        assert result.status == "ok", result.reply
        yield started


def look(kernel: KernelProcess, call: str, setup: str = "") -> Look:
    """What the chart that a call drew looks like; "said" is what was printed besides."""
    result = kernel.run(f"{setup}\nlook({call})", timeout=50)
    assert result.status == "ok", result.reply["content"]
    *said, last = result.stdout.splitlines()
    return {**json.loads(last), "said": "\n".join(said), "stderr": result.stderr}


def value(kernel: KernelProcess, code: str, expression: str) -> Any:
    result = kernel.run(f"{code}\nprint('=' + json.dumps({expression}))")
    assert result.status == "ok", result.reply["content"]
    return json.loads(
        result.stdout.rpartition("\n=")[2] if "\n=" in result.stdout else result.stdout[1:]
    )


def overlap(a: list[int], b: list[int]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def none_overlap(boxes: list[list[int]]) -> bool:
    return not any(overlap(a, b) for i, a in enumerate(boxes) for b in boxes[:i])


YEARS = "df = pd.DataFrame({'year': [2000, 2001, 2002], 'de': [1000, 2000, 3000],"
YEARS += " 'fr': [4, 5, 6], 'note': ['a', 'b', 'c']})"


def test_the_examples_of_its_page_run(kernel: KernelProcess) -> None:
    blocks = re.findall(
        r"^```python\n(.*?)^```", (REPO / "docs/charts.md").read_text(), re.S | re.M
    )
    assert len(blocks) == 2
    for block in blocks:
        result = kernel.run(block, timeout=50)
        assert result.status == "ok", result.reply["content"]


# ---- which columns ----


def test_x_is_never_plotted_against_itself(kernel: KernelProcess) -> None:
    seen = look(kernel, "line_chart(df, x='year')", YEARS)
    assert seen["lines"] == [[1000, 2000, 3000], [4, 5, 6]]
    assert seen["xs"] == [[2000, 2001, 2002]] * 2
    assert seen["legend"] == ["de", "fr"]
    assert (seen["xlabel"], seen["ylabel"]) == ("year", "")


def test_without_x_it_is_the_index(kernel: KernelProcess) -> None:
    seen = look(kernel, "line_chart(df.set_index('year'), title='T')", YEARS)
    assert seen["xs"] == [[2000, 2001, 2002]] * 2
    assert (seen["title"], seen["xlabel"]) == ("T", "year")


def test_an_index_that_counts_gives_way_to_a_column_of_names(kernel: KernelProcess) -> None:
    seen = look(kernel, "bar_chart(pd.DataFrame({'city': ['Rome', 'Oslo'], 'n': [2, 1]}))")
    assert (seen["x"], seen["xlabel"], seen["ylabel"]) == (["Rome", "Oslo"], "city", "n")


def test_one_y_names_its_axis_and_has_no_legend(kernel: KernelProcess) -> None:
    seen = look(kernel, "scatter_chart(df, x='year', y='fr')", YEARS)
    assert (seen["ylabel"], seen["legend"]) == ("fr", [])
    assert seen["points"] == [[[2000, 4], [2001, 5], [2002, 6]]]


def test_junk_is_left_out_and_named(kernel: KernelProcess) -> None:
    setup = "df = pd.DataFrame({'year': ['2000', '2001', '2002', '2003', '2004'],"
    setup += " 'v': ['1', '2', 'n/a', '', '1,200'], 'w': [1, 2, 'abc', 3, None]})"
    seen = look(kernel, "line_chart(df, x='year')", setup)
    assert [str(v) for v in seen["lines"][0]] == ["1.0", "2.0", "nan", "nan", "1200.0"]
    assert seen["said"] == "left out 1 value of 'w', no numbers: 'abc'"


INPUTS = {
    "a Series": "pd.Series([1, 2, 3], name='s')",
    "a list": "[1, 2, 3]",
    "a tuple": "(1, 2, 3)",
    "an array": "np.array([1, 2, 3])",
    "a dict of lists": "{'s': [1, 2, 3]}",
    "a dict of numbers": "{'a': 1, 'b': 2, 'c': 3}",
    "records": "[{'s': 1}, {'s': 2}, {'s': 3}]",
    "nullable integers": "pd.DataFrame({'s': pd.array([1, 2, 3], dtype='Int64')})",
    "categories of numbers": "pd.Series(pd.Categorical(['1', '2', '3']))",
    "rows and columns": "np.array([[1], [2], [3]])",
}


@pytest.mark.parametrize("data", INPUTS.values(), ids=INPUTS)
def test_what_a_chart_is_drawn_from(kernel: KernelProcess, data: str) -> None:
    assert look(kernel, f"line_chart({data})")["lines"] == [[1, 2, 3]]


def test_polars(tmp_path: Path) -> None:
    """Without pyarrow."""
    with charting(require_plots(), tmp_path) as kernel:
        draw_polars(kernel)


def draw_polars(kernel: KernelProcess) -> None:
    setup = (
        "import sys; sys.modules['pyarrow'] = None; import polars as pl\n"
        "df = pl.DataFrame({'d': ['2020-01', '2020-02'], 'v': ['1', 'NA'], 'w': [5, 6]})"
    )
    for frame in ("df", "df.lazy()"):
        seen = look(kernel, f"line_chart({frame}, x='d')", setup)
        assert (seen["legend"], seen["x"]) == (["v", "w"], ["2020-01", "2020-02"])
    assert look(kernel, "line_chart(df['w'])")["ylabel"] == "w"
    kinds = value(kernel, "done = clean_numeric(df)", "[type(done).__module__, str(done.dtypes)]")
    assert kinds == ["polars.dataframe.frame", "[String, Float64, Int64]"]


TOO_LARGE = {
    "line_chart({'v': [np.inf, -np.inf, 1]})": "2 values of 'v', no numbers: 'inf (too large)',"
    " '-inf (too large)'",
    "line_chart([1e308, -1e308, 1])": "2 values of y, no numbers: '1e+308 (too large)',"
    " '-1e+308 (too large)'",
    "bar_chart({'a': 10**400, 'b': 1})": "1 value of y, no numbers: 'inf (too large)'",
    "bar_chart({'a': '1e999', 'b': '1'})": "1 value of y, no numbers: 'inf (too large)'",
}


@pytest.mark.parametrize("call", TOO_LARGE)
def test_what_is_too_large_to_draw_is_left_out_and_said(kernel: KernelProcess, call: str) -> None:
    assert look(kernel, call)["said"] == "left out " + TOO_LARGE[call]


def test_very_many_bars_are_drawn_in_one_piece(kernel: KernelProcess) -> None:
    """One by one they would take a minute."""
    for how, value_at in (("horizontal=False", 1), ("horizontal=True", 0)):
        paths = value(
            kernel,
            "df = pd.DataFrame({'a': np.arange(5000.), 'b': -1.0, 'c': np.nan})\n"
            f"bar_chart(df, {how})",
            "[[p.vertices.tolist() for p in c.get_paths()] for c in seen[-1].axes[0].collections]",
        )
        assert [len(bars) for bars in paths] == [5000, 5000, 0]
        tops = [[max(abs(corner[value_at]) for corner in bar) for bar in bars] for bars in paths]
        assert tops[0] == [float(row) for row in range(5000)]
        assert set(tops[1]) == {1.0}


@pytest.mark.parametrize(("draw", "pieces"), [("line_chart", 1), ("scatter_chart", 10)])
def test_a_host_of_lines_is_grey_in_one_piece(
    kernel: KernelProcess, draw: str, pieces: int
) -> None:
    setup = "df = pd.DataFrame(np.arange(900.).reshape(3, 300)); df.iloc[1, 0] = np.nan"
    seen = look(kernel, f"{draw}(df)", setup)
    assert seen["legend"][0] == "299"
    assert seen["legend"][-1] == "291 others"
    assert (len(seen["lines"]), len(seen["points"])) == (10 - pieces if pieces == 1 else 0, pieces)
    expression = "[len(c.get_paths()) for c in seen[-1].axes[0].collections][0]"
    assert value(kernel, "", expression) == (291 if pieces == 1 else 1)


def test_names_that_come_twice_and_names_of_levels(kernel: KernelProcess) -> None:
    twice = "pd.DataFrame([[1, 2, 3]], columns=['a', 'a', 'b'])"
    assert look(kernel, f"bar_chart({twice})")["legend"] == ["a", "a", "b"]
    assert look(kernel, f"line_chart({twice}, x='a')")["lines"] == [[2], [3]]
    levels = "pd.MultiIndex.from_product([['n', 's'], [2020, 2021]], names=['r', 'y'])"
    seen = look(kernel, f"bar_chart(pd.DataFrame({{'v': [1, 2, 3, 4]}}, index={levels}))")
    assert (seen["x"], seen["xlabel"]) == (
        ["n / 2020", "n / 2021", "s / 2020", "s / 2021"],
        "r / y",
    )


ERRORS = {
    "line_chart(df, x='Yaer')": "no column 'Yaer'; there are: year, de, fr, note; did you mean"
    " 'year'?",
    "bar_chart(df, y=['de', 'xx'])": "no column 'xx'; there are: year, de, fr, note",
    "scatter_chart(df, y='note')": "column 'note' has no numbers in it; those with numbers: year,"
    " de, fr",
    "line_chart(df[['note']])": "no column of numbers to draw; there are: note",
    "line_chart(df, x=[1, 2])": "x has 2 values for 3 rows; name a column instead",
    "line_chart(df, yscale='ln')": "no yscale 'ln'; there are: linear, log, symlog",
    "line_chart({'v': [0, -1]}, logy=True)": "a log scale needs values above zero; 'v' has none",
    "line_chart(pd.DataFrame())": "there is nothing to draw: the data has no columns",
    "line_chart('abc')": "a chart is drawn from a DataFrame, a Series, a dict or a list, not from"
    " str",
    "line_chart(np.zeros((2, 2, 2)))": "a chart is drawn from rows and columns, not from 3"
    " dimensions",
    "bar_chart([1j])": "no column of numbers to draw; there are: (no name)",
    "bar_chart(np.zeros((2, 1000)))": "1,000 columns cannot stand side by side; name some as y, or"
    " turn the table",
    "line_chart(df, filename='/proc/x.png')": "the picture cannot be written as '/proc/x.png': No"
    " such file or directory",
    "line_chart(df, filename='a\\0b')": "the picture cannot be written as 'a\\x00b': embedded null"
    " byte",
    "clean_numeric(df, ['DE'])": "no column 'DE'; there are: year, de, fr, note; did you mean"
    " 'de'?",
}


@pytest.mark.parametrize("call", ERRORS)
def test_errors_are_one_sentence(kernel: KernelProcess, call: str) -> None:
    result = kernel.run(f"{YEARS}\n{call}")
    assert (result.error, result.reply["content"]["evalue"]) == ("ChartError", ERRORS[call])
    trace = "\n".join(result.reply["content"]["traceback"])
    assert "----> " in trace
    assert "vivarium_charts" not in trace
    assert len("".join(result.reply["content"]["traceback"]).splitlines()) < 20


# ---- axes ----


def test_thousands_are_parted_on_y_and_years_are_not(kernel: KernelProcess) -> None:
    seen = look(kernel, "line_chart(df, x='year', y='de')", YEARS)
    assert "1,500" in seen["y"]
    assert seen["x"] == ["2000", "2001", "2002"]
    assert seen["spines"] == ["bottom", "left"]


NUMBERS = {
    "[1.2e13, 2.3e13]": "2\N{MULTIPLICATION SIGN}10¹³",
    "[1e-9, 3e-9]": "2\N{MULTIPLICATION SIGN}10⁻⁹",
    "[-1500, 1500]": "\N{MINUS SIGN}1,000",
    "[0.1, 0.4]": "0.30",
    "[1000000.001, 1000000.002]": "1,000,000.0010",
}


@pytest.mark.parametrize("values", NUMBERS)
def test_ticks_say_what_they_stand_for(kernel: KernelProcess, values: str) -> None:
    assert NUMBERS[values] in look(kernel, f"line_chart({{'v': {values}}})")["y"]


DATES = {
    "['2020-01-31', '2020-02-29', '2020-03-31']": ["2020-01", "2020-02", "2020-03"],
    "['2020Q1', '2020Q2', '2020Q3']": ["2020 Q1", "2020 Q2", "2020 Q3"],
    "['Q1 2020', 'Q2 2020', 'Q3 2020']": ["2020 Q1", "2020 Q2", "2020 Q3"],
    "['2020M01', '2020M02', '2020M03']": ["2020-01", "2020-02", "2020-03"],
    "['31.12.2019', '31.12.2020', '31.12.2021']": ["2019", "2020", "2021"],
    "['01/30/2020', '01/31/2020', '02/01/2020']": ["2020-01-30", "2020-01-31", "2020-02-01"],
    "['30/01/2020', '31/01/2020', '01/02/2020']": ["2020-01-30", "2020-01-31", "2020-02-01"],
    "['Jan 2020', 'February 2020', 'Mar-20']": ["2020-01", "2020-02", "2020-03"],
    "['5 May 2020', 'May 6, 2020', '7-May-2020']": ["2020-05-05", "2020-05-06", "2020-05-07"],
    "['1500-01-01', '1600-01-01', '1700-01-01']": ["1500", "1600", "1700"],
    "[20200101, 20200201, 20200301]": ["2020-01", "2020-02", "2020-03"],
    "['2020-01-01T10:00Z', '2020-01-01 11:00', '2020-01-01T12:00:00+00:00']": [
        "10:00",
        "11:00",
        "12:00",
    ],
    "pd.date_range('2024-03-30', periods=3, tz='Europe/Berlin')": [
        "2024-03-30",
        "2024-03-31",
        "2024-04-01",
    ],
    "pd.period_range('2020Q1', periods=3, freq='Q')": ["2020 Q1", "2020 Q2", "2020 Q3"],
    "['2001', '2002', '2003']": ["2001", "2002", "2003"],
    "['Jan', 'Feb', 'Mar']": ["Jan", "Feb", "Mar"],
    "['32/01/2020', '31/01/2020', '01/02/2020']": ["32/01/2020", "31/01/2020", "01/02/2020"],
}


@pytest.mark.parametrize("dates", DATES)
def test_dates_are_recognised(kernel: KernelProcess, dates: str) -> None:
    for kind in ("line", "bar"):
        seen = look(kernel, f"{kind}_chart({{'d': list({dates}), 'v': [1, 2, 3]}}, x='d')")
        assert seen["x"] == DATES[dates]


def test_rows_are_drawn_in_the_order_of_their_dates(kernel: KernelProcess) -> None:
    data = "{'d': ['2020-03-01', None, '2020-01-01', '2020-02-01'], 'v': [3, 9, 1, 2]}"
    assert look(kernel, f"line_chart({data}, x='d')")["lines"] == [[1, 2, 3]]


def test_crowded_dates_are_turned(kernel: KernelProcess) -> None:
    few = look(kernel, "line_chart({'v': [1, 2]}, x=['2020-01-01', '2020-01-02'])")
    assert set(few["turned"]) == {0}
    index = "pd.date_range('2023-12-29 22:00', periods=8, freq='7h')"
    many = look(kernel, f"line_chart(pd.Series(range(8), index={index}))")
    assert len(many["x"]) > 3
    assert set(many["turned"]) == {30}


@pytest.mark.parametrize("scale", ["yscale='log'", "logy=True"])
def test_log_scale_by_name(kernel: KernelProcess, scale: str) -> None:
    seen = look(kernel, f"line_chart({{'v': [0, 1, 10, 20000, -5]}}, {scale})")
    assert (seen["yscale"], seen["xscale"]) == ("log", "linear")
    assert {"1", "100", "10,000"} <= set(seen["y"])
    assert seen["said"] == "not on the log scale: 2 of 5 values of 'v', not above zero"
    assert look(kernel, f"bar_chart({{'a': 5, 'b': 5000}}, {scale})")["yscale"] == "log"
    both = look(kernel, f"scatter_chart({{'a': [1, 90], 'b': [5, 9]}}, x='a', logx=True, {scale})")
    assert (both["xscale"], both["yscale"]) == ("log", "log")
    assert "0" in look(kernel, "line_chart({'v': [-9, 0, 900]}, yscale='symlog')")["y"]


# ---- bars, names, legends ----


def test_bars_of_several_columns_stand_side_by_side(kernel: KernelProcess) -> None:
    seen = look(kernel, "bar_chart(df, x='year', y=['de', 'fr'])", YEARS)
    first, second = seen["bars"]
    assert len(first) == len(second) == 3
    assert all(a[0] + a[2] <= b[0] + 1e-9 for a, b in zip(first, second, strict=True))
    assert seen["x"] == ["2000", "2001", "2002"]


def test_lying_bars_start_on_top(kernel: KernelProcess) -> None:
    seen = look(kernel, "bar_chart(df, x='year', y=['de', 'fr'], horizontal=True)", YEARS)
    assert [bar[2] for bar in seen["bars"][0]] == [1000, 2000, 3000]
    assert seen["y"] == ["2000", "2001", "2002"]
    assert seen["y boxes"][0][1] > seen["y boxes"][1][1]
    assert (seen["ylabel"], seen["xlabel"]) == ("year", "")
    assert "1,000" in seen["x"]


@pytest.mark.parametrize("how", ["", ", horizontal=True", ", horizontal=False"])
@pytest.mark.parametrize("count", [8, 30, 50])
def test_long_names_can_be_read(kernel: KernelProcess, count: int, how: str) -> None:
    """All of them, except below standing bars where there is no room for so many lines."""
    names = f"{{f'A rather long name of category number {{i}}': i for i in range({count})}}"
    seen = look(kernel, f"bar_chart({names}{how})")
    lying = bool(seen["y"]) and seen["y"][0].startswith("A rather")
    assert lying == (how != ", horizontal=False")
    if lying:
        assert len(set(seen["y"])) == count
        assert none_overlap(seen["y boxes"])
    else:
        assert set(seen["turned"]) == {45} or none_overlap(seen["x boxes"])
        assert len(seen["x"]) >= min(count, 25)


def test_names_that_differ_at_their_ends_stay_different(kernel: KernelProcess) -> None:
    names = "{'The same beginning of a name that goes on and on until ' + str(i): i"
    seen = look(kernel, f"bar_chart({names} for i in range(60)}})")
    assert len(set(seen["y"])) == 60


@pytest.mark.parametrize("count", [2, 6, 15, 100])
@pytest.mark.parametrize("kind", ["line", "scatter", "bar"])
def test_the_legend_hides_nothing(kernel: KernelProcess, kind: str, count: int) -> None:
    data = f"pd.DataFrame(np.arange({count * 9}).reshape(9, {count})).add_prefix('series ')"
    seen = look(kernel, f"{kind}_chart({data})")
    assert not overlap(seen["legend box"], seen["axes box"])
    if count <= 20 or kind == "bar":
        assert len(seen["legend"]) == count
    else:
        assert seen["legend"][0] == "series 99"  # it ends highest
        assert seen["legend"][-1] == "91 others"


def test_names_with_signs_that_mean_something_to_matplotlib(kernel: KernelProcess) -> None:
    data = "{'_a': [1, 2], '$b_{': [2, 3], '': [3, 4]}"
    seen = look(kernel, f"line_chart({data}, title='$5 and $6_{{')")
    assert seen["legend"] == ["_a", "$b_{", "(no name)"]
    assert seen["title"] == "$5 and $6_{"


@pytest.mark.parametrize("kind", ["line", "scatter", "bar"])
@pytest.mark.parametrize("data", ["{'v': []}", "{'v': [None, 'NA']}", "pd.DataFrame({'v': [':']})"])
def test_nothing_to_draw_is_said_in_the_picture(
    kernel: KernelProcess, kind: str, data: str
) -> None:
    assert look(kernel, f"{kind}_chart({data}, y='v')")["texts"] == ["no data"]


@pytest.mark.parametrize("kind", ["line", "scatter", "bar"])
def test_one_point(kernel: KernelProcess, kind: str) -> None:
    seen = look(kernel, f"{kind}_chart({{'2020-05-01': 3.5}})")
    assert seen["x"] == ["2020-05-01"]
    assert len(seen["lines"] or seen["points"] or seen["bars"]) == 1


# ---- text ----


def test_every_letter_has_a_font(kernel: KernelProcess) -> None:
    title = "Ελλάδα Россия 北京 さいたま 서울 עברית العربية กรุงเทพ 🚀 ★ ½"
    seen = look(kernel, f"line_chart([1, 2], title={title!r})")
    assert "no font" not in seen["said"]
    missing = value(
        kernel,
        "from vivarium_charts import lettering\n"
        f"fonts = lettering.families([{title!r}])\n"
        "have = set().union(*map(lettering.letters, fonts))",
        f"[c for c in {title!r} if c not in have and c != ' ']",
    )
    assert missing == []


def test_a_letter_without_a_font_is_said(kernel: KernelProcess) -> None:
    seen = look(kernel, "line_chart([1, 2], title='a\\U0003fff0')")
    assert seen["said"].startswith("no font here can draw \U0003fff0 (U+3FFF0): a box")
    assert seen["stderr"] == ""


def test_arabic_is_joined(kernel: KernelProcess) -> None:
    """By matplotlib since 3.11, else by arabic-reshaper, or it is said that it is not."""
    code = "from vivarium_charts import lettering\nmade = lettering.drawn('مدينة 5')"
    shapes, made = value(kernel, code, "[lettering.SHAPES, made]")
    if shapes:
        assert made == "مدينة 5"
    elif kernel.run("import arabic_reshaper, bidi.algorithm").error:
        assert (
            "cannot join letters"
            in kernel.run("lettering.shaping.cache_clear(); lettering.drawn('مدينة')").stdout
        )
    else:
        assert made == "5 \ufe94\ufee8\ufef3\ufeaa\ufee3"


def test_titles_are_broken_into_lines(kernel: KernelProcess) -> None:
    seen = look(kernel, "line_chart([1], title='word ' * 30)")
    assert 2 <= seen["title"].count("\n") + 1 <= 3
    assert look(kernel, "line_chart([1], title='城市' * 40)")["title"].count("\n") == 2


# ---- what is left behind ----


def test_no_file_is_overwritten(kernel: KernelProcess) -> None:
    result = kernel.run(
        "names = [line_chart([1], title='Größe: A/B', filename=f)"
        " for f in (None, None, 'sub/x.png', 'sub/x')]\nnames"
    )
    assert result.text == "['größe-a-b.png', 'größe-a-b-2.png', 'sub/x.png', 'sub/x-2.png']"
    assert (kernel.workspace / "sub/x-2.png").is_file()
    long = value(kernel, "", "line_chart([1], title='../' + 'ü' * 300)")
    assert (kernel.workspace / long).is_file()
    assert len(long.encode()) < 80


def test_the_picture_is_of_a_size_for_a_chat(kernel: KernelProcess) -> None:
    for data in ("[1, 2]", "{f'A name that is long, number {i}': i for i in range(300)}"):
        seen = look(kernel, f"bar_chart({data})")
        wide, high = png_size((kernel.workspace / seen["name"]).read_bytes())
        assert 600 < wide < 1300
        assert 250 < high < 1300


def test_matplotlib_is_as_the_user_left_it(kernel: KernelProcess) -> None:
    code = """
import logging, warnings, matplotlib
import matplotlib.pyplot as plt
plt.style.use("dark_background")
matplotlib.rcParams["lines.linewidth"] = 7
mine = plt.figure()
def state():
    level = logging.getLogger("matplotlib.font_manager").level
    return dict(matplotlib.rcParams), plt.get_fignums(), level, list(warnings.filters)
before = state()
line_chart([1, 2]), bar_chart([1]), scatter_chart([1])
try:
    line_chart([0], logy=True)
except ValueError:
    pass
same = state() == before
plt.close(mine); matplotlib.rcdefaults(); plt.close("all")
"""
    assert value(kernel, code, "same") is True


def test_the_look_does_not_depend_on_the_users_style(kernel: KernelProcess) -> None:
    code = """
import hashlib, matplotlib
def picture():
    return hashlib.sha256(open(line_chart([1, 2, 3]), "rb").read()).hexdigest()
plain = picture()
with matplotlib.rc_context({"axes.facecolor": "black", "font.size": 30, "text.usetex": False}):
    styled = picture()
"""
    assert value(kernel, code, "plain == styled") is True


# ---- clean_numeric ----

CLEAN = {
    "['1', 'NA', 'n/a', ':', '..', '-', '', None]": [1.0] + [None] * 7,
    "['12.3p', '12.4', '11 e', '10 (b)', '9.9*', '8[1]', '7¹', ': c']": [
        12.3,
        12.4,
        11,
        10,
        9.9,
        8,
        7,
        None,
    ],
    "['1,234.5', '2,000']": [1234.5, 2000],
    "['1.234,5', '2.000', '3,5']": [1234.5, 2000, 3.5],
    "['1.234', '2.5']": [1.234, 2.5],
    "['1,234', '5,678']": [1234, 5678],
    "['1 234,5', '2\\u00a0000,0', '3\\u202f000']": [1234.5, 2000, 3000],
    "[\"1'234.50\", '12,34,567.5']": [1234.5, 1234567.5],
    "['(1,234)', '($5.5)', '-$6', '$-7', '\\u22128', '9-']": [-1234, -5.5, -6, -7, -8, -9],
    "['12%', '5.5 %', '€3.5', 'USD 4', '5 CHF', '6 zł']": [12, 5.5, 3.5, 4, 5, 6],
    "['1e5', '2.5E-3', '+7', '.5']": [1e5, 0.0025, 7, 0.5],
    "['0,123', '0,5']": [0.123, 0.5],
    "['١٢٣', '\\uff14']": [123, 4],
    "['1', 'abc', 3]": [1, None, 3],
    "['1st', '2nd', '3rd']": ["1st", "2nd", "3rd"],
    "['5k', '3M']": ["5k", "3M"],
    "['Rue 5', 'x', '1984']": [None, None, 1984],
    "['abc', 'NA', '-']": ["abc", "NA", "-"],
    "['2020-01-01', '2020-02-01']": ["2020-01-01", "2020-02-01"],
}


@pytest.mark.parametrize("texts", CLEAN)
def test_texts_that_mean_numbers(kernel: KernelProcess, texts: str) -> None:
    code = f"done = clean_numeric(pd.Series({texts}, dtype=object))"
    found = value(kernel, code, "[None if v != v else v for v in done.tolist()]")
    assert found == CLEAN[texts]


def test_a_column_of_text_is_never_destroyed(kernel: KernelProcess) -> None:
    code = """
df = pd.DataFrame({
    "street": ["Rue 5", "Elm", "1984"], "zip": ["01234", "55555", "10001"],
    "ean": ["4006381333931111"] * 3, "v": ["1", "NA", "3"], "year": ["1999", "2000", "2001"],
    "when": pd.date_range("2020", periods=3), "ok": [True, False, None]})
kept = df.copy()
done = clean_numeric(df)
same = [name for name in df if done[name].equals(df[name])]
kinds_ = {name: done[name].dtype.kind for name in ("v", "year")}
"""
    result = kernel.run(code)
    assert result.stdout.splitlines() == [
        "clean_numeric: street: left as text: 2 of 3 values are not numbers",
        "clean_numeric: zip: left as text: it holds codes (leading zeros or very many digits)",
        "clean_numeric: ean: left as text: it holds codes (leading zeros or very many digits)",
        "clean_numeric: v: 2 numbers; NaN for 1 missing: 'NA'",
        "clean_numeric: year: 3 numbers",
    ]
    found = value(kernel, "", "[same, kinds_, df.equals(kept)]")
    assert found == [["street", "zip", "ean", "when", "ok"], {"v": "f", "year": "i"}, True]


def test_columns_by_name_are_cleaned_whatever_they_hold(kernel: KernelProcess) -> None:
    code = "df = pd.DataFrame({'a': ['007', 'x', 'y', '5%'], 'b': ['1', '2', '3', '4']})"
    result = kernel.run(code + "\nclean_numeric(df, ['a']).dtypes.b == df.dtypes.b")
    assert result.text == "True"
    assert result.stdout == (
        "clean_numeric: a: 2 numbers; NaN for what is no number: 'x', 'y'; percent signs dropped\n"
    )


# ---- pictures ----


@pytest.mark.parametrize("name", list(PYTHONS))
def test_charts_look_as_they_did(name: str, tmp_path: Path) -> None:
    """Half of these limits is what the kept pictures' fewer colours cost."""
    python = require_python(name)
    script = Path(__file__).with_name("chart_pictures.py")
    run = subprocess.run(
        [python, script, "compare"],
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    apart = json.loads(run.stdout.splitlines()[-1])
    assert len(apart) == 12
    far = {
        chart: found
        for chart, found in apart.items()
        if found["stretch"] > 0.02 or found["mean"] > 0.3 or found["most"] > 20
    }
    assert not far


# ---- in the daemon ----


def test_a_chart_is_shown_once(live: Daemon) -> None:
    client = live.client()
    result = client.run("from vivarium_charts import line_chart\nline_chart([1, 2], title='A b')")
    assert result.text.startswith("Out[1]: 'a-b.png'")
    assert result.data["images"] == ["a-b.png"]
    assert len(result.images) == 1
    assert result.footer_line("wrote:").startswith("a-b.png (")
    result = client.run("import os; os.mkdir('.h'); os.chdir('.h'); line_chart([3, 2])")
    assert len(result.images) == 1, "a place that is not looked at"
    result = client.run("os.chdir('/tmp'); name = line_chart([1, 4]); os.unlink(name)")
    assert len(result.images) == 1
    result = client.run("os.chdir('..'); os.kill(os.getpid(), 9)")
    assert client.run("line_chart([1, 2, 3])").data["exit_code"] == 0


# ---- the list of fonts ----


@pytest.fixture
def homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A list that set-up made, and where a kernel's own belongs."""
    shared, home = tmp_path / "shared", tmp_path / "home"
    shared.mkdir()
    home.mkdir()
    (shared / "fontlist-v1.json").write_text("made")
    monkeypatch.setattr(fontlist, "SHARED", shared)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("MPLCONFIGDIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    return shared / "fontlist-v1.json", home / ".cache/matplotlib/fontlist-v1.json"


def test_a_home_without_a_list_of_fonts_gets_one(homes: tuple[Path, Path]) -> None:
    _, own = homes
    fontlist.provide()
    assert own.read_text() == "made"
    own.write_text("newer")
    fontlist.provide()
    assert own.read_text() == "newer"


def test_an_old_list_is_replaced_unless_the_home_has_fonts(homes: tuple[Path, Path]) -> None:
    _, own = homes
    own.parent.mkdir(parents=True)
    own.write_text("old")
    os.utime(own, (1, 1))
    (Path(os.environ["HOME"]) / ".fonts").mkdir()
    fontlist.provide()
    assert own.read_text() == "old"
    (Path(os.environ["HOME"]) / ".fonts").rmdir()
    fontlist.provide()
    assert own.read_text() == "made"


def test_a_home_that_cannot_be_written_is_no_error(homes: tuple[Path, Path]) -> None:
    _, own = homes
    own.parent.parent.write_text("a file where the directory should be")
    fontlist.provide()
    assert not own.exists()


@pytest.mark.parametrize("name", list(PYTHONS))
def test_matplotlib_takes_the_list_that_was_made(name: str, tmp_path: Path) -> None:
    python, home = require_python(name), tmp_path / "home"
    home.mkdir()
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": str(REPO / "pyside")}
    make = [str(python), "-m", "vivarium_charts.fontlist", str(tmp_path / "shared")]
    subprocess.run(make, env=env, check=True)
    assert list(home.iterdir()) == []
    code = f"""
import logging, pathlib
from vivarium_charts import fontlist
fontlist.SHARED = pathlib.Path({str(tmp_path / "shared")!r})
fontlist.provide_at_import()
logging.basicConfig(level=logging.DEBUG)
assert not list(pathlib.Path.home().iterdir()), "before anybody wanted it"
import matplotlib.font_manager
"""
    run = subprocess.run([python, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert "Using fontManager instance from" in run.stderr
    assert "generated new fontManager" not in run.stderr

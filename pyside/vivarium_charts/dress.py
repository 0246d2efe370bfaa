# SPDX-License-Identifier: MIT
"""What all charts share: size, colours, title, legend.  The user's own settings are not touched."""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib
from matplotlib import style
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from .lettering import drawn, families, width, wrapped

WIDTH_IN, HEIGHT_IN = 8.0, 4.5
ACROSS_IN = 0.88 * WIDTH_IN  # the axes themselves
DPI = 110
COLOURS = ["#1667a8", "#e4642c", "#2b9a66", "#8d5ab5", "#d9a400"]
COLOURS += ["#16a2b8", "#c43d77", "#7b5b45", "#5d6b75", "#8fae1b"]
UNNAMED = "(no name)"
GREY = "#c9ced3"
TOLD_APART = 2 * len(COLOURS)  # lines; dashed ones from the second round on
PICKED = 9  # of more lines than that: the others are grey
ABOVE_MOST, ABOVE_LETTERS = 6, 78  # a legend above the chart
BESIDE_ROWS, BESIDE_LETTERS = 18, 36  # one column of a legend beside it
LOOK = {
    "figure.dpi": DPI,
    "savefig.dpi": DPI,
    "text.parse_math": False,  # a dollar is a dollar
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#8a949c",
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": "#e3e6e8",
    "axes.labelcolor": "#39434b",
    "axes.labelsize": 10,
    "axes.titlelocation": "left",
    "axes.titlesize": 13,
    "axes.titleweight": "bold",
    "xtick.color": "#8a949c",
    "xtick.labelcolor": "#39434b",
    "xtick.labelsize": 9.5,
    "ytick.color": "#8a949c",
    "ytick.labelcolor": "#39434b",
    "ytick.labelsize": 9.5,
    "legend.frameon": False,
    "legend.fontsize": 9.5,
    "lines.linewidth": 1.8,
}


@dataclass
class Words:
    title: str = ""
    xlabel: str = ""
    ylabel: str = ""


@contextmanager
def dressed(texts: Iterable[str]) -> Iterator[None]:
    """Matplotlib as our charts need it, from its defaults; afterwards as the user had it."""
    log = logging.getLogger("matplotlib.font_manager")  # it tells that a font has no bold
    level = log.level
    try:
        log.setLevel(logging.ERROR)
        family = families(texts)
        with (
            matplotlib.rc_context(),
            style.context(LOOK, after_reset=True),
            warnings.catch_warnings(),
        ):
            warnings.filterwarnings("ignore", "Glyph .* missing")  # it has been said
            matplotlib.rcParams["font.family"] = family
            yield
    finally:
        log.setLevel(level)


def new_axes(height_in: float = HEIGHT_IN) -> tuple[Any, Any]:
    """A figure that pyplot does not know of: nobody has to close it."""
    figure = Figure(figsize=(WIDTH_IN, height_in))
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.1, 0.12, ACROSS_IN / WIDTH_IN, 0.74))
    return figure, axes


def look_of(at: int) -> dict[str, Any]:
    """Colour and line of the series at this place."""
    return {
        "color": COLOURS[at % len(COLOURS)],
        "linestyle": "-" if at // len(COLOURS) % 2 == 0 else (0, (4, 2)),
    }


def shades(count: int) -> list[Any]:
    """As many colours as there are series of bars."""
    if count <= 2 * len(COLOURS):
        paler = [tuple(1 - (1 - part) * 0.5 for part in to_rgb(name)) for name in COLOURS]
        return [*COLOURS, *paler][:count]
    colours = matplotlib.colormaps["turbo"]
    return [colours(0.04 + 0.92 * at / (count - 1)) for at in range(count)]


def name_all(axes: Any, words: Words, legend_lines: int) -> None:
    """legend_lines: of a legend above the chart."""
    if words.title:
        axes.set_title(drawn(wrapped(words.title, 66, 3)), pad=10 + 17 * legend_lines)
    axes.set_xlabel(drawn(wrapped(words.xlabel, 90, 2)))
    axes.set_ylabel(drawn(wrapped(words.ylabel, 44, 2)))


def add_legend(axes: Any, handles: Sequence[Any], labels: Sequence[str]) -> int:
    """Outside of the axes, where it hides nothing; returns its lines above the chart."""
    if len(labels) < 2:
        return 0
    above = len(labels) <= ABOVE_MOST and sum(width(t) + 5 for t in labels) <= ABOVE_LETTERS
    if above:
        place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (-0.01, 1.0)}
        place |= {"ncol": len(labels), "borderaxespad": 0.2, "columnspacing": 1.6}
    else:
        place = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.02)}
        place |= {"ncol": math.ceil(len(labels) / BESIDE_ROWS), "borderaxespad": 0.0}
    # Given as labels, those that start with an underscore would be left out.
    legend = axes.legend(handles, [str(at) for at in range(len(labels))], handlelength=1.5, **place)
    for handle in getattr(legend, "legend_handles", None) or legend.legendHandles:
        if hasattr(handle, "set_sizes"):  # points of a scatter chart, however small there
            handle.set_sizes([34])
            handle.set_alpha(1)
    for text, label in zip(legend.get_texts(), labels, strict=True):
        flat = " ".join(label.split()) or UNNAMED
        text.set_text(drawn(wrapped(flat, ABOVE_LETTERS if above else BESIDE_LETTERS, 2)))
    return 1 if above else 0


def say_empty(axes: Any) -> None:
    axes.set(xticks=[], yticks=[])
    axes.grid(False)
    axes.text(
        0.5,
        0.5,
        "no data",
        transform=axes.transAxes,
        ha="center",
        va="center",
        color="#8a949c",
        fontsize=14,
    )

# SPDX-License-Identifier: MIT
# mypy: disallow-untyped-calls=False
"""Ticks and their labels, for numbers, dates and names; scales by name."""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.dates import AutoDateLocator, num2date
from matplotlib.ticker import FixedFormatter, FixedLocator, Formatter, LogLocator, MaxNLocator

from .errors import ChartError, note
from .lettering import drawn, in_one_line, width, wrapped
from .plan import Line, Numbers, X

SCALES = ("linear", "log", "symlog")
LETTER_IN = 0.078  # inches of an average letter of a tick label
LINE_IN = 0.165  # height of a line of them
MOST_DECIMALS = 9
VAST, MINUTE = 1e12, 1e-4  # beyond them as powers of ten
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
POINTS_AS_TICKS = 8
TILT, STEEP = 30, 45
TURNED_IN = 0.22  # of the axis that a turned name takes
TURNED_LETTERS = 34  # of a name that is turned


# ---- numbers ----


class Thousands(Formatter):
    """1,234,567 with as many decimals as the ticks need."""

    def __call__(self, value: float, pos: int | None = None) -> str:
        return numbers([value])[0]

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        return numbers(list(values))


def numbers(values: list[float]) -> list[str]:
    largest = max(map(abs, values), default=0)
    gaps = np.diff(np.unique(values))
    step = float(gaps.min()) if len(gaps) else largest
    decimals = next((d for d in range(MOST_DECIMALS) if are_whole(values, step, d)), None)
    if largest >= VAST or 0 < largest < MINUTE or decimals is None:
        return [as_power(value) for value in values]
    return [signed(f"{value:,.{decimals}f}") for value in values]


def as_power(value: float) -> str:
    """1.2 times ten to the -9th, in small raised digits."""
    digits, _, power = f"{value:.5e}".partition("e")
    if not float(digits):
        return "0"
    raised = str(int(power)).translate(RAISED)
    return signed(f"{float(digits):.6g}") + (
        f"\N{MULTIPLICATION SIGN}10{raised}" if int(power) else ""
    )


def are_whole(values: list[float], step: float, decimals: int) -> bool:
    """Whether so many decimals tell all that there is to tell."""
    return all(abs(round(value, decimals) - value) <= step * 1e-3 for value in values)


def signed(text: str) -> str:
    if float(text.replace(",", "")) == 0:
        text = text.lstrip("-")
    return text.replace("-", "\N{MINUS SIGN}")


class Digits(Formatter):
    """Years: 2024, not 2,024."""

    def __call__(self, value: float, pos: int | None = None) -> str:
        return f"{value:.0f}" if float(value).is_integer() else ""


def are_years(at: Numbers) -> bool:
    there = at[~np.isnan(at)]
    return bool(len(there)) and bool(np.all((there % 1 == 0) & (there >= 1000) & (there < 3000)))


def number_axis(axis: Any, at: Numbers) -> None:
    there = at[~np.isnan(at)]
    whole = bool(len(there)) and bool(np.all(there % 1 == 0))
    axis.set_major_formatter(Digits() if are_years(at) else Thousands())
    if whole and np.ptp(there) >= 1:
        axis.set_major_locator(MaxNLocator(nbins=9, steps=[1, 2, 5, 10], integer=True))
    elif len(np.unique(there)) == 1 and whole:
        axis.set_major_locator(FixedLocator([float(there[0])]))


# ---- scales ----


def scale_named(name: str | None, log: bool, which: str) -> str:
    scale = name or ("log" if log else "linear")
    if scale not in SCALES:
        raise ChartError(f"no {which} {scale!r}; there are: {', '.join(SCALES)}")
    return scale


def set_scale(axis: Any, scale: str, values: Numbers, what: str) -> None:
    """The axis as asked for; what a log scale has no place for is said."""
    if scale == "linear":
        axis.set_major_formatter(Thousands())
        return
    there = values[np.isfinite(values)]
    if scale == "log":
        below = int(np.sum(there <= 0))
        if below == len(there):
            raise ChartError(f"a log scale needs values above zero; {what} has none")
        if below:
            note(f"not on the log scale: {below} of {len(there)} values of {what}, not above zero")
    setter = axis.axes.set_xscale if axis.axis_name == "x" else axis.axes.set_yscale
    setter(scale)
    axis.set_major_formatter(LogThousands())
    if scale == "log":
        above = there[there > 0]
        few = math.log10(above.max() / above.min()) < 2
        axis.set_major_locator(LogLocator(subs=(1, 2, 3, 5) if few else (1,), numticks=12))
        axis.set_minor_formatter(FixedFormatter([]))


def placeable(values: Numbers, scale: str) -> Numbers:
    """Without what a log scale has no place for: a line ends there, it does not fall down."""
    return np.where(values > 0, values, np.nan) if scale == "log" else values


class LogThousands(Formatter):
    """Each tick with its own decimals: 0.01, 1, 1,000."""

    def __call__(self, value: float, pos: int | None = None) -> str:
        return numbers([value])[0] if abs(value) >= 1e-5 or value == 0 else as_power(value)


# ---- dates ----


class DateLabels(Formatter):
    """2024, 2024-05, 2024-05-31 or 14:30: as much as all ticks together need."""

    def __init__(self, quarters: bool) -> None:
        self.quarters = quarters

    def __call__(self, value: float, pos: int | None = None) -> str:
        return date_texts([value], self.quarters)[0]

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        return date_texts(list(values), self.quarters)


def date_texts(days: list[float], quarters: bool = False) -> list[str]:
    moments = [num2date(day) for day in days]
    if quarters and all(m.day == 1 and m.month % 3 == 1 for m in moments):
        return [f"{m.year} Q{(m.month + 2) // 3}" for m in moments]
    form = date_form(moments)
    return [m.strftime(form) if m.year >= 1000 else str(m.year) for m in moments]


def date_form(moments: list[datetime.datetime]) -> str:
    if any((m.hour, m.minute, m.second, m.microsecond) != (0, 0, 0, 0) for m in moments):
        clock = "%H:%M:%S" if any(m.second for m in moments) else "%H:%M"
        return clock if len({m.date() for m in moments}) == 1 else f"%m-%d {clock}"
    if any(m.day != 1 for m in moments) or len(moments) == 1:
        return "%Y-%m-%d"
    return "%Y-%m" if any(m.month != 1 for m in moments) else "%Y"


def date_axis(axis: Any, x: X) -> None:
    there = np.unique(x.at[~np.isnan(x.at)])
    even = len(there) < 2 or np.diff(there).min() * 12 >= there[-1] - there[0]
    if 0 < len(there) <= POINTS_AS_TICKS and even:
        axis.set_major_locator(FixedLocator(there.tolist()))
    else:
        locator = AutoDateLocator(minticks=4, maxticks=9)
        if x.quarters:
            locator.intervald[1] = [3, 6]  # in months
        axis.set_major_locator(locator)
    axis.set_major_formatter(DateLabels(x.quarters))


def tilt_if_crowded(figure: Any, axis: Any) -> None:
    """Labels of an x axis that would run into each other are turned."""
    renderer = figure.canvas.get_renderer()
    labels = visible_labels(axis)
    boxes = sorted((label.get_window_extent(renderer) for label in labels), key=lambda box: box.x0)
    gap = figure.dpi * LETTER_IN * 1.5
    if any(a.x1 + gap > b.x0 for a, b in itertools.pairwise(boxes)):
        turn(axis, TILT)


def visible_labels(axis: Any) -> list[Any]:
    axis.get_ticklabels()  # sets them; to draw all would take as long as the chart itself
    low, high = sorted(axis.get_view_interval())
    return [
        tick.label1
        for tick in axis.get_major_ticks()
        if tick.label1.get_text() and low <= tick.get_loc() <= high
    ]


def turn(axis: Any, degrees: int) -> None:
    for label in axis.get_ticklabels():
        label.set(rotation=degrees, ha="right", va="top", rotation_mode="anchor")


# ---- names ----


def fits_flat(names: Sequence[str], room_in: float) -> bool:
    """Whether names fit below an axis of this length without being turned."""
    each = room_in / max(len(names), 1) / LETTER_IN - 1
    return all(
        width(wrapped(name, max(each, 1), 99)) <= each
        and len(lines(name, each)) <= 3
        and longest_word(name) <= each
        for name in names
    )


def lines(name: str, each: float) -> list[str]:
    return wrapped(name, max(each, 1), 99).split("\n")


def longest_word(name: str) -> float:
    return max((width(word) for word in name.replace("\n", " ").split()), default=0)


def name_axis(axis: Any, places: Numbers, names: Sequence[str], room_in: float) -> None:
    """Names below an axis: in lines, turned, or only some of them, as there is room."""
    if fits_flat(names, room_in):
        each = room_in / max(len(names), 1) / LETTER_IN - 1
        texts = [wrapped(name, max(each, 1), 3) for name in names]
        turned = 0
    else:
        texts, turned = in_one_line(names, TURNED_LETTERS), STEEP
    every = max(1, math.ceil(len(names) * TURNED_IN / room_in)) if turned else 1
    axis.set_major_locator(FixedLocator(places[::every].tolist()))
    axis.set_major_formatter(FixedFormatter([drawn(text) for text in texts[::every]]))
    if turned:
        turn(axis, turned)


def beside_axis(axis: Any, places: Numbers, texts: Sequence[str], room_in: float) -> None:
    """Names at the left of horizontal bars."""
    tall = sum(text.count("\n") + 1 for text in texts)
    every = max(1, math.ceil(tall * LINE_IN / (room_in + LINE_IN)))
    axis.set_major_locator(FixedLocator(places[::every].tolist()))
    axis.set_major_formatter(FixedFormatter([drawn(text) for text in texts[::every]]))


def x_axis(axes: Any, x: X, room_in: float) -> None:
    if x.kind == "dates":
        date_axis(axes.xaxis, x)
    elif x.kind == "names":
        name_axis(axes.xaxis, np.arange(len(x.names), dtype=float), x.names, room_in)
    else:
        number_axis(axes.xaxis, x.at)


def all_values(drawn_lines: list[Line]) -> Numbers:
    return np.concatenate([line.values for line in drawn_lines]) if drawn_lines else np.array([])

# SPDX-License-Identifier: MIT
"""Bars: side by side in groups, standing or lying."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.collections import PolyCollection

from . import axes as ticks
from . import dress
from .dress import Words
from .errors import ChartError
from .lettering import in_one_line, wrapped
from .plan import Line, Numbers, Plan, X, labels, what_of

GROUP = 0.8  # of the room of a row
MANY_DATES = 40  # from here on dates are an axis, not names
MANY = 100  # bars so thin that whole pixels would make them uneven
PIECES = 1000  # bars that matplotlib draws one by one; each takes it half a millisecond
MOST_SERIES = 200  # side by side
FEW = 3  # rows
EDGES_IN = 1.2  # above and below lying bars
BAR_IN, HIGHEST_IN = 0.16, 11.0  # least height of a lying bar, most of a chart
NAME_LETTERS, ONE_LINE = 38, 50  # letters of a name beside a bar


def draw_bars(plan: Plan, words: Words, horizontal: bool | None, scale: str) -> Any:
    if plan.empty:
        figure, axes = dress.new_axes()
        dress.say_empty(axes)
        dress.name_all(axes, words, 0)
        return figure
    if len(plan.lines) > MOST_SERIES:
        count = f"{len(plan.lines):,} columns"
        raise ChartError(f"{count} cannot stand side by side; name some as y, or turn the table")
    continuous = plan.x.kind == "dates" and len(plan.x.at) > MANY_DATES and not horizontal
    names = () if continuous else row_names(plan.x)
    if horizontal is None:
        horizontal = plan.x.kind == "names" and not ticks.fits_flat(
            names, room_of_names(len(names))
        )
    if horizontal:
        return lying(plan, words, names, scale)
    return standing(plan, words, names, scale)


def row_names(x: X) -> tuple[str, ...]:
    if x.names:
        return x.names
    there = ~np.isnan(x.at)
    if x.kind == "dates":
        texts = iter(ticks.date_texts(x.at[there].tolist(), x.quarters))
    elif ticks.are_years(x.at):
        texts = iter([f"{value:.0f}" for value in x.at[there]])
    else:
        texts = iter(ticks.numbers(x.at[there].tolist()))
    return tuple(next(texts) if known else "(none)" for known in there)


def standing(plan: Plan, words: Words, names: tuple[str, ...], scale: str) -> Any:
    figure, axes = dress.new_axes()
    places = np.arange(len(names), dtype=float) if names else plan.x.at
    each = 1.0 if names else date_step(plan.x.at)
    handles = draw_groups(axes, plan.lines, places, each, upright=True)
    if names:
        axes.set_xlim(*limits(len(names)))
        ticks.name_axis(axes.xaxis, places, names, room_of_names(len(names)))
    else:
        ticks.date_axis(axes.xaxis, plan.x)
    finish(axes, plan.lines, scale, axes.yaxis)
    dress.name_all(axes, words, dress.add_legend(axes, handles, labels(plan.lines)))
    if not names:
        ticks.tilt_if_crowded(figure, axes.xaxis)
    return figure


def lying(plan: Plan, words: Words, names: tuple[str, ...], scale: str) -> Any:
    texts = [wrapped(name, NAME_LETTERS, 2) for name in names]
    if height_of(texts, plan.lines) > HIGHEST_IN:
        texts = in_one_line(names, ONE_LINE)
    height = min(max(height_of(texts, plan.lines), dress.HEIGHT_IN * 0.6), HIGHEST_IN)
    figure, axes = dress.new_axes(height)
    axes.set_position(
        (0.1, EDGES_IN / 2 / height, dress.ACROSS_IN / dress.WIDTH_IN, 1 - EDGES_IN / height)
    )
    places = np.arange(len(texts), dtype=float)
    handles = draw_groups(axes, plan.lines, places, 1.0, upright=False)
    axes.set_ylim(*reversed(limits(len(texts))))  # the first row on top
    ticks.beside_axis(axes.yaxis, places, texts, height - EDGES_IN)
    finish(axes, plan.lines, scale, axes.xaxis)
    turned = Words(words.title, words.ylabel, words.xlabel)
    dress.name_all(axes, turned, dress.add_legend(axes, handles, labels(plan.lines)))
    ticks.tilt_if_crowded(figure, axes.xaxis)
    return figure


def draw_groups(
    axes: Any, lines: list[Line], places: Numbers, each: float, upright: bool
) -> list[Any]:
    """What the legend shows of each series."""
    drawn = []
    for line, offset, width, colour in groups(lines, each):
        at = places + offset
        if len(lines) * len(places) > PIECES:
            bars = corners(at, line.values, width, upright)
            drawn.append(PolyCollection(bars, facecolors=[colour], linewidths=0))
            axes.add_collection(drawn[-1])
            axes.autoscale_view()
        elif upright:
            snap = len(places) < MANY
            drawn.append(axes.bar(at, line.values, width, color=colour, snap=snap))
        else:
            drawn.append(axes.barh(at, line.values, width, color=colour))
    return drawn


def corners(at: Numbers, values: Numbers, width: float, upright: bool) -> Any:
    """Of all bars that there are."""
    there = np.isfinite(at) & np.isfinite(values)
    at, values = at[there], values[there]
    low, high, none = at - width / 2, at + width / 2, np.zeros(len(at))
    points = [(low, none), (low, values), (high, values), (high, none)]
    if not upright:
        points = [(value, place) for place, value in points]
    return np.stack([np.column_stack(point) for point in points], axis=1)


def height_of(texts: list[str], lines: list[Line]) -> float:
    """Inches that let every bar and every name be seen."""
    bars = BAR_IN * (len(lines) + 0.6)
    return EDGES_IN + sum(max(bars, ticks.LINE_IN * (text.count("\n") + 1.2)) for text in texts)


def limits(rows: int) -> tuple[float, float]:
    """Of the axis of the rows; few bars do not grow into boards."""
    spare = max(0.0, (FEW - rows) / 2)
    return -0.6 - spare, rows - 0.4 + spare


def room_of_names(rows: int) -> float:
    """Inches below standing bars, without those beside the first and the last."""
    low, high = limits(rows)
    return dress.ACROSS_IN * rows / (high - low)


def groups(lines: list[Line], each: float) -> list[tuple[Line, float, float, Any]]:
    """With each series its distance from the row's middle, width and colour."""
    width = each * GROUP / len(lines)
    offsets = [(at - (len(lines) - 1) / 2) * width for at in range(len(lines))]
    thick = width * (0.94 if 1 < len(lines) <= 8 else 1)
    colours = dress.shades(len(lines))
    return [(*part, thick, colour) for *part, colour in zip(lines, offsets, colours, strict=True)]


def date_step(at: Numbers) -> float:
    gaps = np.diff(np.unique(at[~np.isnan(at)]))
    return float(np.median(gaps)) if len(gaps) else 1.0


def finish(axes: Any, lines: list[Line], scale: str, axis: Any) -> None:
    """The axis of the values, with a line at zero."""
    upright = axis.axis_name == "y"
    axes.grid(False)
    axes.grid(visible=True, axis=axis.axis_name)
    values = ticks.all_values(lines)
    if scale == "linear" and np.nanmin(values) < 0:
        (axes.axhline if upright else axes.axvline)(0, color="#8a949c", linewidth=0.8)
    ticks.set_scale(axis, scale, values, what_of(lines))
    (axes.yaxis if not upright else axes.xaxis).set_tick_params(length=0)
    if not values[np.isfinite(values)].any():
        (axes.set_ylim if upright else axes.set_xlim)(0, 1)  # all zero: no bars, but an axis
    if scale == "log":
        lowest = values[values > 0].min()
        low = 10 ** math.floor(math.log10(lowest / 1.5))
        (axes.set_ylim if upright else axes.set_xlim)(low, None)

# SPDX-License-Identifier: MIT
"""line_chart, bar_chart and scatter_chart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.collections import LineCollection

from . import axes as ticks
from . import dress
from .bars import draw_bars
from .dress import Words
from .errors import ChartError, in_a_sentence
from .plan import Line, Numbers, Plan, X, labels, make_plan, shared_places, sorted_by_x, what_of
from .saving import save

GREY_LOOK = {"color": dress.GREY, "linestyle": "-", "linewidth": 0.8, "zorder": 1.5}
MARKED = 26  # points of a line that each get a dot
HOST = 200  # lines, of which the grey ones are drawn in one piece, not one by one
THIN = 500  # points of a line that is drawn finer


Draw = Callable[[Any, X, list[Line]], list[Any]]


def over_x(name: str, doc: str, draw: Draw, arrange: Callable[[Plan], Plan]) -> Callable[..., str]:
    """The charts whose rows have a place on an axis take the same, and are told apart by how
    they draw it.
    """

    def draw_chart(
        data: Any,
        x: Any = None,
        y: Any = None,
        *,
        title: str | None = None,
        xlabel: str | None = None,
        ylabel: str | None = None,
        xscale: str | None = None,
        yscale: str | None = None,
        logx: bool = False,
        logy: bool = False,
        filename: str | None = None,
    ) -> str:
        plan = arrange(placed(make_plan(data, x, y)))
        scales = scale_pair(xscale, yscale, logx, logy)
        return chart(plan, words(plan, title, xlabel, ylabel), scales, draw, filename)

    draw_chart.__name__ = draw_chart.__qualname__ = name
    draw_chart.__doc__ = doc
    return in_a_sentence(draw_chart)


@in_a_sentence
def bar_chart(
    data: Any,
    x: Any = None,
    y: Any = None,
    *,
    horizontal: bool | None = None,
    title: str | None = None,
    xlabel: str | None = None,
    ylabel: str | None = None,
    yscale: str | None = None,
    logy: bool = False,
    filename: str | None = None,
) -> str:
    """Draw a bar for each row, side by side when y is more than one column; see line_chart.

    horizontal: by default only where long names need it.  xlabel is always that of the rows
    and ylabel, yscale of the values, wherever they stand.
    """
    plan = make_plan(data, x, y, exact_x=True)
    scale = ticks.scale_named(yscale, logy, "yscale")
    named = words(plan, title, xlabel, ylabel)
    with dress.dressed(texts_of(plan, named)):
        figure = draw_bars(plan, named, horizontal, scale)
        return save(figure, named.title, filename)


def scale_pair(xscale: str | None, yscale: str | None, logx: bool, logy: bool) -> tuple[str, str]:
    return (
        ticks.scale_named(xscale, logx, "xscale"),
        ticks.scale_named(yscale, logy, "yscale"),
    )


def placed(plan: Plan) -> Plan:
    return Plan(shared_places(plan.x), plan.lines) if plan.x.kind == "names" else plan


def words(plan: Plan, title: str | None, xlabel: str | None, ylabel: str | None) -> Words:
    """What the caller did not say is taken from the columns' names."""
    only = plan.lines[0].label if len(plan.lines) == 1 else ""
    return Words(
        "" if title is None else str(title),
        plan.x.label if xlabel is None else str(xlabel),
        only if ylabel is None else str(ylabel),
    )


def texts_of(plan: Plan, named: Words) -> list[str]:
    return [named.title, named.xlabel, named.ylabel, *plan.x.names, *labels(plan.lines)]


def chart(
    plan: Plan,
    named: Words,
    scales: tuple[str, str],
    draw: Draw,
    filename: str | None,
) -> str:
    with dress.dressed(texts_of(plan, named)):
        figure, axes = dress.new_axes()
        if plan.empty:
            dress.say_empty(axes)
            dress.name_all(axes, named, 0)
        else:
            draw_over_x(axes, plan, named, scales, draw)
        return save(figure, named.title, filename)


def draw_over_x(
    axes: Any,
    plan: Plan,
    named: Words,
    scales: tuple[str, str],
    draw: Draw,
) -> None:
    what = what_of(plan.lines)
    ticks.set_scale(axes.yaxis, scales[1], ticks.all_values(plan.lines), what)
    if scales[0] != "linear" and plan.x.kind in ("dates", "names"):
        raise ChartError(f"x has {plan.x.kind}, which a {scales[0]} scale cannot place")
    ticks.set_scale(axes.xaxis, scales[0], plan.x.at, repr(plan.x.label or "x"))
    lines = [Line(line.label, ticks.placeable(line.values, scales[1])) for line in plan.lines]
    handles = draw(axes, plan.x, lines)
    axes.grid(axis="x", visible=draw is draw_points and plan.x.kind != "names")
    if scales[0] == "linear":
        ticks.x_axis(axes, plan.x, dress.ACROSS_IN)
    shown = legend_entries(plan.lines, handles)
    dress.name_all(axes, named, dress.add_legend(axes, *shown))
    if plan.x.kind != "names":
        ticks.tilt_if_crowded(axes.figure, axes.xaxis)


def picked(lines: list[Line]) -> set[int]:
    """The lines that get a colour: of more than one can tell apart, those that end highest."""
    if len(lines) <= dress.TOLD_APART:
        return set(range(len(lines)))
    order = sorted(range(len(lines)), key=lambda at: last_value(lines[at].values), reverse=True)
    return set(order[: dress.PICKED])


def last_value(values: Numbers) -> float:
    there = values[~np.isnan(values)]
    return float(there[-1]) if len(there) else -np.inf


def legend_entries(lines: list[Line], handles: list[Any]) -> tuple[list[Any], list[str]]:
    chosen = picked(lines)
    grey = [at for at in range(len(lines)) if at not in chosen]
    shown = [at for at in range(len(lines)) if at in chosen]
    if grey:
        shown.sort(key=lambda at: last_value(lines[at].values), reverse=True)
    entries = [handles[at] for at in shown], [lines[at].label for at in shown]
    if grey:
        entries[0].append(handles[grey[0]])
        entries[1].append(f"{len(grey)} others")
    return entries


def looks(lines: list[Line]) -> list[dict[str, Any]]:
    chosen = sorted(picked(lines))
    if len(chosen) == len(lines):
        return [dress.look_of(at) for at in chosen]
    return [
        dress.look_of(chosen.index(at)) if at in chosen else GREY_LOOK for at in range(len(lines))
    ]


def draw_lines(axes: Any, x: X, lines: list[Line]) -> list[Any]:
    host = draw_host(axes, x, lines) if len(lines) > HOST else None
    return [
        host
        if host is not None and look["color"] == dress.GREY
        else draw_line(axes, x.at, line.values, look)
        for line, look in zip(lines, looks(lines), strict=True)
    ]


def grey_values(lines: list[Line]) -> Numbers:
    chosen = picked(lines)
    return np.array([line.values for at, line in enumerate(lines) if at not in chosen])


def draw_host(axes: Any, x: X, lines: list[Line]) -> Any:
    """All grey lines; one that has gaps is joined over them."""
    pieces = []
    for values in grey_values(lines):
        there = ~np.isnan(values)
        pieces.append(np.column_stack([x.at[there], values[there]]))
    host = LineCollection(pieces, colors=dress.GREY, linewidths=0.8, zorder=1.5)
    axes.add_collection(host)
    axes.autoscale_view()
    return host


def draw_line(axes: Any, at: Numbers, values: Numbers, look: dict[str, Any]) -> Any:
    """A gap in the data is a gap in the line, unless nearly every point would stand alone."""
    there = ~np.isnan(values)
    beside = np.zeros(len(values) + 2, dtype=bool)
    beside[1:-1] = there
    alone = there & ~beside[:-2] & ~beside[2:]
    if alone.sum() * 2 > there.sum():
        at, values = at[there], values[there]
        alone = np.zeros(len(values), dtype=bool) if len(values) > 1 else alone[there]
    dots = np.flatnonzero(alone) if there.sum() > MARKED else None
    look = {"linewidth": 1.8 if len(values) < THIN else 1.1, **look}
    [line] = axes.plot(
        at,
        values,
        marker="o" if dots is None or len(dots) else None,
        markersize=3.5 if len(values) > 1 else 7,
        markevery=None if dots is None else dots.tolist(),
        **look,
    )
    return line


def draw_points(axes: Any, x: X, lines: list[Line]) -> list[Any]:
    count = len(x.at) * len(lines)
    size, alpha = (34, 0.8) if count <= 200 else (16, 0.6) if count <= 2000 else (6, 0.4)

    def points(at: Numbers, values: Numbers, look: dict[str, Any]) -> Any:
        order = look.get("zorder", 2)
        return axes.scatter(
            at, values, s=size, alpha=alpha, color=look["color"], linewidths=0, zorder=order
        )

    host = None
    if len(lines) > HOST:
        grey = grey_values(lines)
        host = points(np.tile(x.at, len(grey)), grey.ravel(), GREY_LOOK)
    return [
        host
        if host is not None and look["color"] == dress.GREY
        else points(x.at, line.values, look)
        for line, look in zip(lines, looks(lines), strict=True)
    ]


def as_it_is(plan: Plan) -> Plan:
    return plan


line_chart = over_x(
    "line_chart",
    """Draw lines over x; returns the name of the PNG file, which is shown with the result.

    x: a column, by default the index.  y: one column or a list, by default all with numbers.
    Scales: "linear", "log", "symlog".
    """,
    draw_lines,
    sorted_by_x,
)
scatter_chart = over_x("scatter_chart", "Draw points; see line_chart.", draw_points, as_it_is)

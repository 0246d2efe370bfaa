# SPDX-License-Identifier: MIT
"""What is to be drawn: x as positions or names, and y as named rows of numbers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from .cleaning import clean_column, is_nothing
from .dates import as_dates, at_starts
from .errors import ChartError, label_of, listed, note, quoted
from .numerals import numeral
from .tables import Column, Table, as_table, pick_x, pick_y

Numbers = np.ndarray[Any, Any]
GONE = "(none)"  # the name of a row without one
LARGEST = 1e300  # what matplotlib can still reckon with


@dataclass
class X:
    kind: str  # dates, numbers, names, or rows: they are only counted
    at: Numbers
    label: str = ""
    names: tuple[str, ...] = ()
    quarters: bool = False


@dataclass
class Line:
    """One y column."""

    label: str
    values: Numbers


@dataclass
class Plan:
    x: X
    lines: list[Line]

    @property
    def empty(self) -> bool:
        return not any(np.isfinite(line.values[~np.isnan(self.x.at)]).any() for line in self.lines)


def make_plan(data: Any, x: Any, y: Any, exact_x: bool = False) -> Plan:
    """exact_x: a column that is not all numbers is one of names."""
    table = as_table(data)
    column, at = pick_x(table, x)
    if column is None and x is None:
        column, at = telling_column(table, y)
    places = default_y(table, at) if y is None else pick_y(table, y, at)
    lines = [named_line(table, place) for place in places]
    return Plan(as_x(column, len(table.columns[0].values), exact_x), lines)


def telling_column(table: Table, y: Any) -> tuple[Column | None, int | None]:
    """An index that only counts rows says nothing: the first column of dates or names says more."""
    named = set(pick_y(table, y, None)) if y is not None else set()
    for at, column in enumerate(table.columns):
        kind = column.values.dtype
        if (
            at in named
            or pd.api.types.is_numeric_dtype(kind)
            or as_numbers(column, False)[0] is not None
        ):
            continue
        if len(table.columns) > 1:
            return column, at
    return None, None


def as_numbers(column: Column, asked: bool) -> tuple[Numbers | None, list[str]]:
    """The values as floats, None if it is not a column of numbers; and the texts that are none."""
    if asked not in column.read:
        column.read[asked] = read_numbers(column, asked)
    return column.read[asked]


def read_numbers(column: Column, asked: bool) -> tuple[Numbers | None, list[str]]:
    values, lost = column.values, []
    kind = values.dtype
    if pd.api.types.is_bool_dtype(kind) and not asked:
        return None, []
    if not pd.api.types.is_numeric_dtype(kind):
        texts = values.astype(object).tolist()
        made, _ = clean_column(values, asked)
        if made is None:
            nothing = asked and all(is_nothing(v) or is_missing(v) for v in texts)
            return (np.full(len(values), np.nan) if nothing else None), []
        bad = {v for v in set(filter(is_text, texts)) if numeral(v) is None}
        lost = [v for v in texts if is_text(v) and v in bad]
        values = made
    if pd.api.types.is_complex_dtype(values.dtype):
        return None, []
    found = values.to_numpy(dtype=float, na_value=np.nan)
    far = np.abs(found) > LARGEST
    lost += [f"{value:g} (too large)" for value in found[far]]
    return np.where(far, np.nan, found), lost


def is_text(value: object) -> bool:
    return isinstance(value, str)


def is_missing(value: object) -> bool:
    found = numeral(value) if isinstance(value, str) else None
    return found is not None and found.missing


def default_y(table: Table, x_at: int | None) -> list[int]:
    found = [
        at
        for at, column in enumerate(table.columns)
        if at != x_at and as_numbers(column, asked=False)[0] is not None
    ]
    if not found and any(len(column.values) for column in table.columns):
        every = [at for at in range(len(table.columns)) if at != x_at]
        found = [at for at in every if as_numbers(table.columns[at], True)[0] is not None]
    if not found and len(table.columns[0].values) == 0:
        found = [at for at in range(len(table.columns)) if at != x_at]
    if not found:
        raise ChartError(f"no column of numbers to draw; there are: {listed(table.labels)}")
    return found


def named_line(table: Table, at: int) -> Line:
    column = table.columns[at]
    values, lost = as_numbers(column, asked=True)
    if values is None:
        good = [c.label for c in table.columns if as_numbers(c, asked=False)[0] is not None]
        there = f"those with numbers: {listed(good)}" if good else "no column has any"
        raise ChartError(f"column {column.label!r} has no numbers in it; {there}")
    say_lost(column, lost)
    return Line(column.label, values)


def say_lost(column: Column, lost: list[str]) -> None:
    if lost:
        what = "1 value" if len(lost) == 1 else f"{len(lost)} values"
        whose = repr(column.label) if column.label else "y"
        note(f"left out {what} of {whose}, no numbers: {quoted(dict.fromkeys(lost))}")


def as_x(column: Column | None, rows: int, exact: bool) -> X:
    if column is None:
        return X("rows", np.arange(rows, dtype=float))
    dates = as_dates(column.values)
    if dates is not None:
        return X("dates", at_starts(dates.days), column.label, quarters=dates.quarters)
    values, lost = as_numbers(column, asked=False)
    if values is not None and not (lost and exact):
        say_lost(column, lost)
        return X("numbers", values, column.label)
    names = tuple(GONE if is_nothing(v) else label_of(v) for v in column.values.astype(object))
    return X("names", np.arange(rows, dtype=float), column.label, names)


def shared_places(x: X) -> X:
    """One place for each name, however often it comes."""
    order = {name: at for at, name in enumerate(dict.fromkeys(x.names))}
    at = np.array([order[name] for name in x.names], dtype=float)
    return X(x.kind, at, x.label, tuple(order))


def sorted_by_x(plan: Plan) -> Plan:
    """Without rows that have no x."""
    there = np.flatnonzero(~np.isnan(plan.x.at))
    order = there[np.argsort(plan.x.at[there], kind="stable")]
    x = X(plan.x.kind, plan.x.at[order], plan.x.label, plan.x.names, plan.x.quarters)
    return Plan(x, [Line(line.label, line.values[order]) for line in plan.lines])


def what_of(lines: list[Line]) -> str:
    """What the values are, in a sentence."""
    return repr(lines[0].label) if len(lines) == 1 and lines[0].label else "y"


def labels(lines: Iterable[Line]) -> list[str]:
    return [line.label for line in lines]

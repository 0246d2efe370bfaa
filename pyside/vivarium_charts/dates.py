# SPDX-License-Identifier: MIT
# mypy: disallow-untyped-calls=False
"""Values and texts that mean dates, as matplotlib counts them: days, NaN where there is none."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.dates import date2num

from .cleaning import is_nothing
from .numerals import MISSING

Moment = datetime.datetime
MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
NAME = rf"(?P<name>{'|'.join(MONTHS)})[a-z]*\.?"
DAY, YEAR = r"(?P<d>\d{1,2})(?:st|nd|rd|th)?", r"(?P<y>\d{4}|\d{2})"
FORMS = [
    re.compile(f"^{form}$", re.IGNORECASE)
    for form in (
        r"(?P<y>\d{4})[-_ /]?Q(?P<q>[1-4])",
        r"Q(?P<q>[1-4])[-_ /]?(?P<y>\d{4})",
        r"(?P<y>\d{4})[-/.](?P<m>\d{1,2})",
        r"(?P<y>\d{4})[-_ ]?M(?P<m>\d{1,2})",
        r"(?P<y>\d{4})[/.](?P<m>\d{1,2})[/.](?P<d>\d{1,2})",
        r"(?P<d>\d{1,2})\.(?P<m>\d{1,2})\.(?P<y>\d{4}|\d{2})",
        r"(?P<a>\d{1,2})[/-](?P<b>\d{1,2})[/-](?P<y>\d{4})",
        rf"{NAME}[ -](?P<y>\d{{4}}|'?\d{{2}})",
        rf"(?P<y>\d{{4}})[ -]{NAME}",
        rf"{DAY}[ -]{NAME}[ ,-]+{YEAR}",
        rf"{NAME}[ -]{DAY},? {YEAR}",
    )
]
CLOCK = re.compile(r"[ T](\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?$")
COMPACT = range(19000101, 21991232)  # 20240131, as a number


@dataclass
class Dates:
    days: np.ndarray[Any, Any]
    quarters: bool = False  # written as quarters


def as_dates(values: pd.Series) -> Dates | None:
    """None: not dates, or not all of them."""
    kind = values.dtype
    if isinstance(kind, pd.DatetimeTZDtype):
        return Dates(date2num(values.dt.tz_localize(None).to_numpy()))  # as its clocks show it
    if pd.api.types.is_datetime64_any_dtype(kind):
        return Dates(date2num(values.to_numpy()))
    if isinstance(kind, pd.PeriodDtype):
        stamps = values.dt.to_timestamp()
        return Dates(date2num(stamps.to_numpy()), str(kind).startswith("period[Q"))
    if pd.api.types.is_bool_dtype(kind):
        return None
    if pd.api.types.is_numeric_dtype(kind):
        return compact_dates(values)
    return from_texts(values.astype(object).tolist())


def compact_dates(values: pd.Series) -> Dates | None:
    if not pd.api.types.is_integer_dtype(values.dtype) or not len(values):
        return None
    if not values.between(COMPACT[0], COMPACT[-1]).fillna(False).all():
        return None
    return from_texts([str(value) for value in values])


def from_texts(values: list[Any]) -> Dates | None:
    there = [value for value in values if not is_missing(value)]
    parts = [moment_or_parts(value) for value in there]
    if not there or None in parts:
        return None
    found = [part for part in parts if isinstance(part, dict)]
    day_first = any(int(part["a"]) > 12 for part in found if "a" in part)
    try:
        moments = [build(p, day_first) if isinstance(p, dict) else p for p in parts]
    except ValueError:  # a 13th month, a 31st of April
        return None
    days = np.full(len(values), np.nan)
    known = [not is_missing(value) for value in values]
    days[known] = date2num(np.array(moments, dtype="datetime64[us]"))
    return Dates(days, bool(found) and all("q" in part for part in found))


def is_missing(value: Any) -> bool:
    if isinstance(value, str):
        return MISSING.fullmatch(value.strip()) is not None
    return is_nothing(value)


def moment_or_parts(value: Any) -> Moment | dict[str, str] | None:
    if isinstance(value, Moment):  # a Timestamp is one
        return value.replace(tzinfo=None)
    if isinstance(value, datetime.date):
        return Moment(value.year, value.month, value.day)
    if isinstance(value, pd.Period):
        return Moment.fromisoformat(value.start_time.isoformat())
    return text_parts(value.strip()) if isinstance(value, str) else None


def text_parts(text: str) -> Moment | dict[str, str] | None:
    if len(text) > 40 or not any(map(str.isdigit, text)):
        return None
    if text.isdigit() and (len(text) != 8 or int(text) not in COMPACT):
        return None  # a year is a number
    try:
        return Moment.fromisoformat(text).replace(tzinfo=None)
    except ValueError:
        pass
    clock = CLOCK.search(text)
    text = text[: clock.start()] if clock else text
    for form in FORMS:
        match = form.match(text)
        if match:
            parts = {name: part for name, part in match.groupdict().items() if part}
            return parts | ({"clock": clock[0]} if clock else {})
    return None


def build(parts: dict[str, str], day_first: bool) -> Moment:
    year = int(parts["y"].lstrip("'"))
    if year < 100:
        year += 2000 if year < 69 else 1900
    month, day = int(parts.get("m", 1)), int(parts.get("d", 1))
    if "q" in parts:
        month = int(parts["q"]) * 3 - 2
    if "name" in parts:
        month = MONTHS.index(parts["name"].casefold()) + 1
    if "a" in parts:
        first, second = int(parts["a"]), int(parts["b"])
        day, month = (first, second) if day_first else (second, first)
    clock = CLOCK.search(parts.get("clock", ""))
    hours, minutes, seconds = (int(part or 0) for part in clock.groups()) if clock else (0, 0, 0)
    return Moment(year, month, day, hours, minutes, seconds)


def at_starts(days: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A year's or month's value that is dated at its end is drawn where the axis says that year
    or month: 2020-12-31 at 2020, not at 2021.
    """
    there = days[~np.isnan(days)]
    if len(there) < 2 or np.any(there % 1):
        return days
    stamps = there.astype("int64").astype("datetime64[D]")
    gap = np.median(np.diff(np.unique(stamps)).astype(float)) if len(np.unique(stamps)) > 1 else 0
    for unit, least, most in (("Y", 360, 370), ("M", 27, 32), ("M", 88, 94)):
        starts = stamps.astype(f"datetime64[{unit}]")
        one_each = len(np.unique(starts)) == len(np.unique(stamps))
        if least <= gap <= most and one_each:
            moved = days.copy()
            moved[~np.isnan(days)] = starts.astype("datetime64[D]").astype(float)
            return moved
    return days

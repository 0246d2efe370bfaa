# SPDX-License-Identifier: MIT
"""clean_numeric: columns whose texts mean numbers become numbers; text stays text."""

from __future__ import annotations

import math
import numbers
from collections import Counter
from decimal import Decimal
from typing import Any

import pandas as pd

from .errors import in_a_sentence, label_of, note, quoted
from .numerals import Numeral, comma_is_decimal, numeral, value_of
from .tables import as_pandas, find, is_polars

ENOUGH = 0.5  # of the values of a column must mean numbers, if it was not asked for by name
EXACT = 2**53


@in_a_sentence
def clean_numeric(data: Any, columns: Any = None) -> Any:
    """A copy of data in which texts that mean numbers are numbers, and "NA", ":" and such NaN.

    columns: only these, by name.  Without it every column is tried, and one that is mostly
    text, or holds codes such as 007, is left as it is.  It prints what it changed.  Percent
    signs go, the number stays: "12%" is 12.0.
    """
    if is_polars(data):
        return clean_polars(data, columns)
    data = as_pandas(data)
    if isinstance(data, pd.Series):
        cleaned, words = clean_column(data, asked=True)
        tell([(label_of(data.name) or "values", words)])
        return data if cleaned is None else cleaned
    made, told = data.copy(), []
    for at in positions(list(data.columns), columns):
        cleaned, words = clean_column(data.iloc[:, at], asked=columns is not None)
        if cleaned is not None:
            made.isetitem(at, cleaned)
        told.append((label_of(data.columns[at]), words))
    tell(told)
    return made


def clean_polars(data: Any, columns: Any) -> Any:
    if not hasattr(data, "columns"):  # a Series
        cleaned, words = clean_column(pd.Series(data.to_list(), dtype=object), asked=True)
        tell([(data.name or "values", words)])
        return data if cleaned is None else type(data)(data.name, cleaned.tolist())
    told, made = [], []
    for at in positions(data.columns, columns):
        column = data[:, at]
        if column.dtype.is_numeric():
            continue
        text = pd.Series(column.to_list(), dtype=object)
        cleaned, words = clean_column(text, asked=columns is not None)
        told.append((column.name, words))
        if cleaned is not None:
            made.append(type(column)(column.name, cleaned.tolist()))
    tell(told)
    return data.with_columns(made)


def positions(there_are: list[Any], columns: Any) -> list[int]:
    if columns is None:
        return list(range(len(there_are)))
    wanted = [columns] if isinstance(columns, (str, tuple, int)) else list(columns)
    return sorted({at for name in wanted for at in find(there_are, name)})


def clean_column(column: pd.Series, asked: bool) -> tuple[pd.Series | None, str]:
    """The column as numbers, or None where it stays as it is; and what there is to say."""
    kind = column.dtype
    if pd.api.types.is_numeric_dtype(kind) or not may_be_text(kind):
        return None, ""
    values = column.astype(object).tolist()
    kinds = {text: numeral(text) for text in {v for v in values if isinstance(v, str)}}
    counts = Counter(v for v in values if isinstance(v, str))
    good = sum(counts[text] for text, found in kinds.items() if found and not found.missing)
    good += sum(is_plain_number(value) for value in values)
    missing = sum(counts[text] for text, found in kinds.items() if found and found.missing)
    missing += sum(is_nothing(value) for value in values)
    bad = len(values) - good - missing
    if not good:
        return None, ""
    if not asked and good < ENOUGH * (good + bad):
        return None, f"left as text: {bad} of {len(values)} values are not numbers"
    if not asked and any(found and found.is_code for found in kinds.values()):
        return None, "left as text: it holds codes (leading zeros or very many digits)"
    numbers_of = read(kinds)
    numeric = [numbers_of.get(v, math.nan) if isinstance(v, str) else as_float(v) for v in values]
    made = pd.Series(whole_if_whole(numeric), index=column.index, name=column.name)
    return made, describe(kinds, counts, values, good)


def may_be_text(kind: Any) -> bool:
    return (
        pd.api.types.is_object_dtype(kind)
        or pd.api.types.is_string_dtype(kind)
        or isinstance(kind, pd.CategoricalDtype)
    )


def read(kinds: dict[str, Numeral | None]) -> dict[str, float]:
    comma = comma_is_decimal(found.body for found in kinds.values() if found and found.body)
    return {text: value_of(found, comma) if found else math.nan for text, found in kinds.items()}


def is_plain_number(value: object) -> bool:
    real = isinstance(value, (numbers.Real, Decimal)) and not isinstance(value, bool)
    return real and not is_nothing(value)


def is_nothing(value: object) -> bool:
    if isinstance(value, (str, bool)):
        return False
    if value is None or value is pd.NA or value is pd.NaT:
        return True
    if isinstance(value, Decimal):
        return value.is_nan()
    return isinstance(value, numbers.Real) and bool(value != value)  # noqa: PLR0124


def as_float(value: Any) -> float:
    try:
        return float(value) if is_plain_number(value) else math.nan
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def whole_if_whole(values: list[float]) -> list[int] | list[float]:
    """Years stay whole."""
    if all(value.is_integer() and abs(value) < EXACT for value in values):
        return [int(value) for value in values]
    return values


def describe(
    kinds: dict[str, Numeral | None], counts: Counter[str], values: list[Any], good: int
) -> str:
    """What became of the texts, most important first."""
    words = ["1 number" if good == 1 else f"{good} numbers"]
    lost = [text for text, found in kinds.items() if found is None]
    lost += sorted({str(v) for v in values if is_strange(v)})
    gone = [text for text, found in kinds.items() if found and found.missing]
    if lost:
        words.append(f"NaN for what is no number: {quoted(sorted(lost))}")
    if gone:
        count = sum(counts[text] for text in gone)
        words.append(f"NaN for {count} missing: {quoted(sorted(gone))}")
    read_ones = [found for found in kinds.values() if found and not found.missing]
    if comma_is_decimal(found.body for found in read_ones):
        words.append("decimal commas")
    if any(found.percent for found in read_ones):
        words.append("percent signs dropped")
    if any(found.currency for found in read_ones):
        words.append("currencies dropped")
    marks = sorted({found.footnote for found in read_ones if found.footnote})
    if marks:
        words.append(f"footnotes dropped: {quoted(marks)}")
    return "; ".join(words)


def is_strange(value: object) -> bool:
    return not isinstance(value, str) and not is_plain_number(value) and not is_nothing(value)


def tell(told: list[tuple[str, str]]) -> None:
    for name, words in told:
        if words:
            note(f"clean_numeric: {name}: {words}")

# SPDX-License-Identifier: MIT
"""What a chart is given, as columns; and which of them are x and y."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from .errors import ChartError, label_of, listed, no_such_column

KINDS = "a DataFrame, a Series, a dict or a list"


@dataclass
class Column:
    """Found by place, never by name: names may come twice."""

    name: Hashable
    values: pd.Series
    read: dict[bool, tuple[Any, list[str]]] = field(
        default_factory=dict, repr=False
    )  # by plan.as_numbers

    @property
    def label(self) -> str:
        return label_of(self.name)


@dataclass
class Table:
    columns: list[Column]
    index: list[Column]  # its levels
    bare: bool  # the index only counts the rows

    @property
    def labels(self) -> list[str]:
        return [column.label for column in self.columns]


def is_polars(data: object) -> bool:
    return type(data).__module__.partition(".")[0] == "polars"


def as_pandas(data: Any) -> pd.DataFrame | pd.Series:
    if isinstance(data, (pd.DataFrame, pd.Series)):
        return data
    if is_polars(data):
        return from_polars(data)
    if isinstance(data, Mapping):
        return from_mapping(data)
    if isinstance(data, (pd.Index, set, frozenset, range)) or hasattr(data, "__array__"):
        data = list(data) if isinstance(data, (set, frozenset)) else data
        return from_array(data)
    for method in ("to_pandas", "df"):  # pyarrow, DuckDB and others
        if callable(getattr(data, method, None)):
            return as_pandas(getattr(data, method)())
    if isinstance(data, (str, bytes)) or not isinstance(data, Iterable):
        raise ChartError(f"a chart is drawn from {KINDS}, not from {type(data).__name__}")
    return from_list(list(data))


def from_array(data: Any) -> pd.DataFrame | pd.Series:
    dimensions = getattr(data, "ndim", 1)
    if dimensions > 2:
        raise ChartError(
            f"a chart is drawn from rows and columns, not from {dimensions} dimensions"
        )
    return pd.DataFrame(data) if dimensions == 2 else pd.Series(data)


def from_polars(data: Any) -> pd.DataFrame | pd.Series:
    """Without pyarrow, which polars' own way would need."""
    if hasattr(data, "collect"):
        data = data.collect()
    if not hasattr(data, "columns"):
        return pd.Series(data.to_list(), name=data.name or None)
    return pd.DataFrame(data.to_dict(as_series=False), columns=data.columns)


def from_mapping(data: Mapping[Any, Any]) -> pd.DataFrame | pd.Series:
    if not any(is_list(value) or isinstance(value, Mapping) for value in data.values()):
        return as_column(dict(data))
    series = {
        name: value if isinstance(value, pd.Series) else as_column(as_cells(value))
        for name, value in data.items()
    }
    return pd.DataFrame(series)


def as_cells(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if is_polars(value):
        return value.to_list()
    return value if hasattr(value, "__array__") else list(value) if is_list(value) else [value]


def is_list(value: object) -> bool:
    listlike = isinstance(value, Iterable) and not isinstance(value, (str, bytes))
    return listlike or (hasattr(value, "__array__") and getattr(value, "ndim", 1) > 0)


def from_list(data: list[Any]) -> pd.DataFrame | pd.Series:
    if data and all(isinstance(row, (Mapping, list, tuple)) for row in data):
        return pd.DataFrame(data)
    if data and all(isinstance(part, pd.Series) for part in data):
        return pd.concat(data, axis=1)
    return as_column(data)


def as_column(cells: Any) -> pd.Series:
    try:
        return pd.Series(cells, dtype=None if len(cells) else float)
    except OverflowError:  # pandas before 2, of an int that no float can hold
        return pd.Series(cells, dtype=object)


def as_table(data: Any) -> Table:
    frame = as_pandas(data)
    if isinstance(frame, pd.Series):
        frame = frame.to_frame(frame.name if frame.name is not None else "")
    index = frame.index
    bare = isinstance(index, pd.RangeIndex) and index.name is None
    if isinstance(index, pd.MultiIndex):
        levels = [Column(n, level(index.get_level_values(i))) for i, n in enumerate(index.names)]
    else:
        levels = [Column(index.name, level(index))]
    columns = [
        Column(name, frame.iloc[:, at].reset_index(drop=True))
        for at, name in enumerate(frame.columns)
    ]
    if not columns:
        raise ChartError("there is nothing to draw: the data has no columns")
    return Table(columns, levels, bare)


def level(values: pd.Index) -> pd.Series:
    return pd.Series(values).reset_index(drop=True)


def find(names: Sequence[Hashable], wanted: Hashable) -> list[int]:
    """Where the columns of this name are; 2020 and "2020" are the same if nothing fits better."""
    found = [at for at, name in enumerate(names) if same(name, wanted)]
    found = found or [at for at, name in enumerate(names) if label_of(name) == label_of(wanted)]
    if not found:
        raise no_such_column(wanted, [label_of(name) for name in names])
    return found


def same(name: Hashable, wanted: Hashable) -> bool:
    return type(name) is type(wanted) and name == wanted


def pick_x(table: Table, x: Any) -> tuple[Column | None, int | None]:
    """The x column and its place among the columns; (None, None): rows are counted."""
    rows = len(table.columns[0].values)
    if x is None:
        return (None if table.bare else whole_index(table)), None
    if is_list(x) and not isinstance(x, tuple):
        values = level(as_pandas(x)) if isinstance(x, pd.Series) else as_pandas(x)
        if not isinstance(values, pd.Series) or len(values) != rows:
            raise ChartError(f"x has {len(list(x))} values for {rows} rows; name a column instead")
        return Column(values.name, values.reset_index(drop=True)), None
    for part in table.index:
        if part.name is not None and same(part.name, x) and x not in table.labels:
            return part, None
    at = find([column.name for column in table.columns], x)[0]
    return table.columns[at], at


def whole_index(table: Table) -> Column:
    if len(table.index) == 1:
        return table.index[0]
    rows = zip(*(part.values for part in table.index), strict=True)
    name = tuple(part.label for part in table.index if part.label)
    return Column(name or None, pd.Series([label_of(row) for row in rows], dtype=object))


def pick_y(table: Table, y: Any, x_at: int | None) -> list[int]:
    """Places of the columns that were named."""
    names = [column.name for column in table.columns]
    wanted = [y] if isinstance(y, (str, tuple, int)) or not is_list(y) else list(y)
    found: list[int] = []
    for name in wanted:
        places = find(names, name)
        # Where a name comes twice, x is the first of them and y the other.
        found += [at for at in places if at != x_at or len(places) == 1]
    if not found:
        raise ChartError(f"y names no column; there are: {listed(table.labels)}")
    return list(dict.fromkeys(found))

# SPDX-License-Identifier: MIT
"""Tables that only a library can read, as text: one line of CSV a row.

Runs in a kernel that shows one file and goes.
"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any

ROWS_AT_ONCE = 1000


def library(name: str, what: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise ImportError(
            f"{what} are read by {name}, which is not installed here: "
            f"%pip install {name.partition('.')[0]} in run_python brings it"
        ) from None


def lines(rows: Iterable[Iterable[object]]) -> Iterator[str]:
    for row in rows:
        line = io.StringIO()
        csv.writer(line, lineterminator="\n").writerow(row)
        # A screen goes back to the start of the line there.
        yield line.getvalue().replace("\r\n", "\n").replace("\r", "\n")


def excel(path: str) -> Iterator[str]:
    """Values, not formulas; row by row, since the sheets of a small file may be vast."""
    book = library("openpyxl", "Excel workbooks").load_workbook(
        path, read_only=True, data_only=True
    )
    for sheet in book.worksheets:
        size = f": {sheet.max_row} x {sheet.max_column}" if sheet.max_row else ""
        yield f"--- sheet {sheet.title}{size} ---\n"
        yield from lines(sheet.iter_rows(values_only=True))


def parquet(path: str) -> Iterator[str]:
    table = library("pyarrow.parquet", "Parquet tables").ParquetFile(path)
    names = table.schema_arrow.names
    yield f"--- {table.metadata.num_rows} x {len(names)} ---\n"
    yield "".join(f"# {field.name}: {field.type}\n" for field in table.schema_arrow)
    yield from lines([names])
    for batch in table.iter_batches(batch_size=ROWS_AT_ONCE):
        yield from lines(zip(*(column.to_pylist() for column in batch.columns), strict=True))


VIEWS = {"excel": excel, "parquet": parquet}


def show(path: str, view: str, chars: int) -> None:
    """Prints the view's beginning: that many characters, and one more if there are more."""
    left = chars + 1
    for text in VIEWS[view](path):
        sys.stdout.write(text[:left])
        left -= len(text)
        if left <= 0:
            return

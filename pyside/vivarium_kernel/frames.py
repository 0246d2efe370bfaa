# SPDX-License-Identifier: MIT
# mypy: disallow-untyped-calls=False
"""Tables as aligned text: every column's name, the shape, head and tail of long ones."""

import sys
from typing import Any

LINE = 120  # characters before columns go on in another block
COLUMNS = 40  # shown with their values; of a wider table the others are only named
TEXT = 12_000  # characters of one table, as long as few enough rows can be shown
NAMES = 8_000  # characters of names
ROWS = (20, 10, 4)  # shown when all that the user's options allow are too many
POLARS_COLUMNS = 8  # in one block


def set_pandas(pandas: Any) -> None:
    """After its import: for print(frame) too, and before any option that the user sets."""
    pandas.set_option("display.width", LINE)
    pandas.set_option("display.max_columns", COLUMNS)


def register(formatter: Any) -> None:
    """With IPython's formatter of text/plain."""
    for module in ("pandas", "pandas.core.frame"):
        formatter.for_type_by_name(module, "DataFrame", show(pandas_text))
    for module in ("polars", "polars.dataframe.frame"):
        formatter.for_type_by_name(module, "DataFrame", show(polars_text))
    formatter.for_type_by_name("pandas.io.formats.style", "Styler", show(styled_text))


def show(text_of: Any) -> Any:
    def pretty(frame: Any, printer: Any, cycle: bool) -> None:
        try:
            text = text_of(frame)
        except Exception:  # a subclass that is no real frame, or a version not known
            text = repr(frame)
        printer.text(text)

    return pretty


def pandas_text(frame: Any) -> str:
    pandas: Any = sys.modules["pandas"]
    shape = pandas.get_option("display.show_dimensions")
    with pandas.option_context("display.show_dimensions", True if shape == "truncate" else shape):
        return with_all_columns(frame, pandas)


def with_all_columns(frame: Any, pandas: Any) -> str:
    text = repr(frame)
    most = pandas.get_option("display.max_rows")
    for rows in ROWS if most else ():  # None: the user wants all
        if len(text) <= TEXT:
            break
        if rows < most:
            with pandas.option_context("display.max_rows", rows, "display.min_rows", rows):
                text = repr(frame)
    columns = pandas.get_option("display.max_columns")
    if columns and frame.shape[1] > columns:
        text += "\n" + all_names(frame.columns)
    return text


def styled_text(styler: Any) -> str:
    """A short one says nothing here: its HTML is read, which has the values as they were
    formatted.  That of a long one has every row."""
    pandas: Any = sys.modules["pandas"]
    frame = styler.data
    limits = pandas.get_option("display.max_rows"), pandas.get_option("display.max_columns")
    if all(not most or size <= most for size, most in zip(frame.shape, limits, strict=True)):
        return repr(styler)
    return pandas_text(frame)


def all_names(labels: Any) -> str:
    names: list[str] = []
    room = NAMES
    for label in labels:
        name = "/".join(map(str, label)) if isinstance(label, tuple) else str(label)
        room -= len(name) + 2
        if room < 0:
            break
        names.append(name)
    left = len(labels) - len(names)
    more = f" and {left} more (.columns has them)" if left else ""
    return f"All {len(labels)} columns: {', '.join(names)}{more}"


def polars_text(frame: Any) -> str:
    rows, width = frame.shape
    if width <= POLARS_COLUMNS:
        return str(frame)
    blocks = [f"shape: ({rows:_}, {width:_})"]
    for start in range(0, min(width, COLUMNS), POLARS_COLUMNS):
        block = str(frame[:, start : start + POLARS_COLUMNS])
        blocks.append(block.partition("\n")[2] if block.startswith("shape") else block)
    if width > COLUMNS:
        blocks.append(all_names(frame.columns))
    return "\n".join(blocks)

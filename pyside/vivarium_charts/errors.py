# SPDX-License-Identifier: MIT
"""What a caller is told: errors of one sentence, and notes."""

import difflib
import functools
from collections.abc import Callable, Hashable, Iterable
from typing import ParamSpec, TypeVar

Given = ParamSpec("Given")
Made = TypeVar("Made")
LISTED = 30  # names in one message


class ChartError(ValueError):
    """The chart that was asked for cannot be drawn; the text says why, in a sentence."""


def in_a_sentence(function: Callable[Given, Made]) -> Callable[Given, Made]:
    """A ChartError of this function has a short traceback: what it says is all there is to know."""

    @functools.wraps(function)
    def call(*args: Given.args, **kwargs: Given.kwargs) -> Made:
        try:
            return function(*args, **kwargs)
        except ChartError as error:
            raise error.with_traceback(None) from None

    return call


def no_such_column(name: object, there_are: list[str]) -> ChartError:
    text = f"no column {name!r}; there are: {listed(there_are) or 'none'}"
    folded = {known.casefold(): known for known in there_are}
    close = difflib.get_close_matches(str(name).casefold(), folded, n=1)
    return ChartError(f"{text}; did you mean {folded[close[0]]!r}?" if close else text)


def listed(names: list[str]) -> str:
    more = len(names) - LISTED
    return ", ".join(name or "(no name)" for name in names[:LISTED]) + (
        f" and {more} more" if more > 0 else ""
    )


def label_of(name: Hashable) -> str:
    """A column's name as people write it."""
    if isinstance(name, tuple):
        return " / ".join(label_of(part) for part in name if part not in ("", None))
    return "" if name is None else str(name)


def note(text: str) -> None:
    print(text)


def quoted(texts: Iterable[str], most: int = 3) -> str:
    shown = list(texts)
    more = len(shown) - most
    return ", ".join(repr(text) for text in shown[:most]) + (
        f" and {more} more" if more > 0 else ""
    )

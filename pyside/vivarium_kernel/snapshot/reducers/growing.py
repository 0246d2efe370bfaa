# SPDX-License-Identifier: MIT
"""IPython's lists of inputs, which get one string longer with each cell.

The text of what was in such a list before is kept, so that a save costs no more after thousands
of cells than after one; in pieces of 64 KB it lies outside of the stream, and is written once.
"""

import pickle
from typing import Any, NamedTuple

from ..records import APART
from . import exactly

LISTS = ("input_hist_parsed", "input_hist_raw")
END = "\0"  # of each string
SURROGATES = "surrogatepass"


class Known(NamedTuple):
    """A list as it was, and its text."""

    items: list[str]
    blocks: list[tuple[int, bytearray]]  # how many strings, and their text
    text: str  # of the strings that follow
    following: int  # how many those are

    def extended(self, items: list[str]) -> "Known":
        """Cut by what is in the list alone: after a restore the blocks are the same."""
        blocks, parts, size, following = [*self.blocks], [self.text], len(self.text), self.following
        for each in items[len(self.items) :]:
            parts.append(each + END)
            size += len(each) + 1
            following += 1
            if size >= APART:
                # Were it bytes, loading would fail where a block is gone, before rejoin() sees it.
                text = bytearray("".join(parts), "utf-8", SURROGATES)
                blocks.append((following, text))
                parts, size, following = [], 0, 0
        return Known([*items], blocks, "".join(parts), following)


NOTHING = Known([], [], "", 0)


class Growing:
    """Stands for one list in the stream."""

    def __init__(self) -> None:
        self.known = NOTHING

    def follow(self, items: Any) -> bool:
        """Take what is new in the list.  False: it has not only what IPython puts there."""
        if type(items) is not list:
            return False
        known = self.known if begins_with(items, self.known.items) else NOTHING
        new = items[len(known.items) :]
        if not all(type(each) is str and END not in each for each in new):
            return False
        self.known = known.extended(items)  # in one step, for an interrupt may strike anywhere
        return True


def begins_with(items: list[Any], known: list[str]) -> bool:
    try:
        return items[: len(known)] == known
    except Exception:  # an object that somebody put there, and that refuses to be compared
        return False


class Histories:
    """Of the one shell that a process has."""

    def __init__(self) -> None:
        self._growing = {name: Growing() for name in LISTS}

    def of(self, shell: Any) -> list[tuple[Growing, Any]]:
        """Each list that can be written this way, and what stands for it."""
        history = getattr(shell, "history_manager", None)
        lists = [(growing, getattr(history, name, None)) for name, growing in self._growing.items()]
        return [(growing, items) for growing, items in lists if growing.follow(items)]

    def bytes_apart(self) -> int:
        """Outside of the stream."""
        known = [growing.known for growing in self._growing.values()]
        return sum(len(text) for each in known for _, text in each.blocks)


@exactly(Growing)
def reduce_growing(_: Any, growing: Growing) -> Any:
    blocks = [
        each for count, text in growing.known.blocks for each in (count, pickle.PickleBuffer(text))
    ]
    return rejoin, (growing.known.text, *blocks)


def rejoin(text: str, *blocks: Any) -> list[str]:
    """Where a block is not there any more, its inputs are empty: the numbers stay right."""
    found: list[str] = []
    for count, block in zip(blocks[::2], blocks[1::2], strict=True):
        try:
            found += split(str(block, "utf-8", SURROGATES))
        except (TypeError, UnicodeDecodeError):
            found += [""] * count
    return found + split(text)


def split(text: str) -> list[str]:
    return text.split(END)[:-1]

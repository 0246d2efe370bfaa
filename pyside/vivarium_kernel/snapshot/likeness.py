# SPDX-License-Identifier: MIT
"""Is a name's value the same as in the parent generation?

All entries share one memo, whose indices are absolute: an entry's bytes change when an earlier
entry took more or less of it.  Where bytes differ, what is compared is the entry with each
reference into the memo written as (name of the entry it leads to, index within that one).
"""

import io
import pickletools
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .collector import Mark

REFERENCES = frozenset({"GET", "BINGET", "LONG_BINGET"})
OPCODES_MAX = 100_000  # looked at in one comparison of generations: 0.2 s


class Known(NamedTuple):
    """One entry of the parent generation."""

    mark: Mark
    memo: int  # where it starts in the memo
    hash: str  # stands for this value, in whatever generation


class Memo:
    """Which entry an index of the memo belongs to."""

    def __init__(self, starts: Sequence[tuple[int, str]]) -> None:
        self._starts = [start for start, _ in starts]  # ascending
        self._names = [name for _, name in starts]

    def place(self, index: int) -> str:
        at = bisect_right(self._starts, index) - 1
        return f"{index - self._starts[at]} of {self._names[at]}"


class Generation:
    """The entries of one generation, for comparing the next with them."""

    def __init__(self) -> None:
        self.entries: dict[str, Known] = {}
        self.memo = Memo([(0, "")])

    def add(self, name: str, mark: Mark, memo: int, value_hash: str) -> None:
        self.entries[name] = Known(mark, memo, value_hash)

    def seal(self) -> None:
        """Every entry was added, in their order."""
        self.memo = Memo([(0, ""), *((known.memo, name) for name, known in self.entries.items())])


class Comparison:
    """Of a new generation with its parent."""

    def __init__(self, old: Generation, starts: Sequence[tuple[int, str]], opcodes: int) -> None:
        self._old = old
        self._memo = Memo([(0, ""), *starts])
        self._shifted = [(known.memo, name) for name, known in old.entries.items()] != [*starts]
        self._left = opcodes

    def hash_of(self, name: str, mark: Mark) -> str:
        """The parent's hash where the value is the same, else one of this content."""
        known = self._old.entries.get(name)
        if known is None:
            return mark.raw
        if known.mark.raw == mark.raw or (self._shifted and self._alike(known.mark, mark)):
            return known.hash
        return mark.raw

    def _alike(self, old: Mark, new: Mark) -> bool:
        if old.body is None or new.body is None or old.apart != new.apart:
            return False
        try:
            ours, theirs = self._steps(new.body, self._memo), self._steps(old.body, self._old.memo)
            return all(a == b for a, b in zip(ours, theirs, strict=True))
        except ValueError:  # of different length, or not worth the time
            return False

    def _steps(self, body: bytes, memo: Memo) -> Iterator[object]:
        file = io.BytesIO(body)
        while file.tell() < len(body):  # an entry may be several pickles
            for opcode, argument, at in pickletools.genops(file):
                self._left -= 1
                if self._left < 0:
                    raise ValueError("too many opcodes")
                if opcode.name in REFERENCES and isinstance(argument, int):
                    yield memo.place(argument)
                elif opcode.name != "FRAME":
                    yield body[at or 0 : file.tell()]

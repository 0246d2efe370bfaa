# SPDX-License-Identifier: MIT
"""Names that are left out of generations until they are bound to something else."""

from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from typing import Any

from .manifest import LeftOut

# The length of these says whether they changed, without running code of theirs.
COUNTABLE = (str, bytes, bytearray, list, dict, set, tuple)
Sign = tuple[int, int]  # identity and length


class Omissions:
    def __init__(self) -> None:
        self._kept_back: dict[str, tuple[Sign, LeftOut]] = {}  # not to be dumped
        self._carried: dict[str, tuple[Sign, LeftOut]] = {}  # dumped as they are, with tombstones

    def keep_back(self, name: str, value: object, why: str, size: int = 0) -> None:
        row = LeftOut(name, type(value).__name__, why, size)
        self._kept_back[name] = (sign(value), row)

    def carry(self, name: str, tombstone: object, row: LeftOut) -> None:
        """Its value could not be restored and is still in generation row.carried."""
        self._carried[name] = (sign(tombstone), row)

    def carried(self, name: str) -> LeftOut | None:
        return self._carried[name][1] if name in self._carried else None

    def apply(self, namespace: MutableMapping[str, Any]) -> list[LeftOut]:
        """Take what is kept back out of the namespace; returns the rows that hold now."""
        prune(self._carried, namespace)
        prune(self._kept_back, namespace)
        for name in self._kept_back:
            del namespace[name]
        return [row for _, row in (*self._kept_back.values(), *self._carried.values())]


def prune(known: dict[str, tuple[Sign, LeftOut]], namespace: Mapping[str, Any]) -> None:
    for name, (before, _) in list(known.items()):
        if name not in namespace or sign(namespace[name]) != before:
            del known[name]


def sign(value: object) -> Sign:
    return id(value), len(value) if type(value) in COUNTABLE else 0  # type: ignore[arg-type]


def heaviest(sizes: Iterable[tuple[int, str]], limit: int) -> Iterator[tuple[int, str]]:
    """The largest of them, until the rest is within the limit."""
    ordered = sorted(sizes, reverse=True)
    total = sum(size for size, _ in ordered)
    for size, name in ordered:
        if total <= limit:
            return
        total -= size
        yield size, name

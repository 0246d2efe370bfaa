# SPDX-License-Identifier: MIT
"""What a restore could not make, and which values lack it."""

import gc
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

from . import live
from .kinds import KERNELS, is_own, module_of, top
from .tombstone import Tombstone

PLAIN = (tuple, list, dict, set, frozenset)


class Graves:
    """The tombstones of one restore; not those that the stream itself brings."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Tombstone, str]] = {}  # by id; why, from the first cause on
        self._whole: set[int] = set()  # ids of what was looked through and lacks nothing

    def add(self, tombstone: Tombstone, cause: Tombstone | None = None) -> None:
        """The cause: one that was needed to make this."""
        why = f"{tombstone._what}: {tombstone._why}"
        self._known[id(tombstone)] = tombstone, self.why(cause) if cause is not None else why

    def why(self, tombstone: Tombstone) -> str:
        known = self._known.get(id(tombstone))
        return known[1] if known else tombstone._why

    def has(self, value: object) -> bool:
        return type(value) is Tombstone and id(value) in self._known

    def packages(self) -> set[str]:
        """Which the values are of that could not be made."""
        return {tombstone._what.partition(".")[0] for tombstone, _ in self._known.values()}

    def within(self, *parts: object) -> Tombstone | None:
        """The first in these or in plain containers of them."""
        return search(list(parts), self.has, lambda each: type(each) in PLAIN, set())

    def behind(self, value: object) -> Tombstone | None:
        """The first that the value leads to, not by way of modules or of libraries' code."""
        if not self._known:
            return None
        seen = {id(live.namespace())}
        found = search([value], self.has, self._is_open, seen)
        if found is None:
            self._whole |= seen
        return found

    def _is_open(self, value: Any) -> bool:
        return id(value) not in self._whole and is_data(value)


def has_hole(value: object) -> bool:
    """It is a tombstone, or leads to one."""
    seen = {id(live.namespace())}
    return search([value], lambda each: type(each) is Tombstone, is_data, seen) is not None


def search(
    waiting: list[Any], is_it: Callable[[Any], bool], is_open: Callable[[Any], bool], seen: set[int]
) -> Tombstone | None:
    while waiting:
        each = waiting.pop()
        if is_it(each):
            found: Tombstone = each
            return found
        if id(each) not in seen and is_open(each):
            seen.add(id(each))
            waiting += gc.get_referents(each)
    return None


def is_data(value: Any) -> bool:
    kind = type(value)
    if kind is FunctionType:
        return value.__globals__ is live.namespace()
    if issubclass(kind, type):
        return is_own(value)
    if issubclass(kind, ModuleType) or top(module_of(kind)) in KERNELS:  # the shell has all names
        return False
    return gc.is_tracked(value)

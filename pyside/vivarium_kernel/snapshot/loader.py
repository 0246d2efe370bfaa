# SPDX-License-Identifier: MIT
"""load(): a stream as names of the live namespace again, one by one.

Where a name fails, the memo goes on as if it had not: later names that refer into it get a
tombstone there, or what could be saved of it, but never something else.
"""

import pickle
import struct
import sys
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from typing import Any

from ..streams import muted
from . import live
from .kinds import describe
from .process import FIRST, LAST, Part, restore
from .records import Dumped, Entry, Loaded, Lost
from .reducers import load_all
from .salvage import salvage
from .tombstone import Tombstone, bury

__all__ = ["Loaded", "load"]

PLACE = struct.Struct("<i")

load_all()


class Reader:
    """The stream as a file, without a copy of it."""

    def __init__(self, stream: Any) -> None:
        self._bytes = memoryview(stream).cast("B")
        self.at = 0

    def read(self, size: int = -1) -> bytes:
        start = self.at
        self.at = len(self._bytes) if size < 0 else min(start + size, len(self._bytes))
        return bytes(self._bytes[start : self.at])

    def play(self, stream: bytes, load: Callable[[], Any]) -> None:
        """Read from another stream for one load."""
        kept = self._bytes, self.at
        self._bytes, self.at = memoryview(stream), 0
        load()
        self._bytes, self.at = kept

    def readline(self) -> bytes:
        line = bytearray()
        while not line.endswith(b"\n") and self.at < len(self._bytes):
            line += self.read(1)
        return bytes(line)

    def readinto(self, target: Any) -> int:
        into = memoryview(target).cast("B")
        data = self._bytes[self.at : self.at + len(into)]
        into[: len(data)] = data
        self.at += len(data)
        return len(data)


class Buffers:
    """What the stream refers to, from any place on."""

    def __init__(self, buffers: Sequence[Any]) -> None:
        self._buffers = buffers
        self.at = 0

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self.at >= len(self._buffers):
            raise StopIteration
        self.at += 1
        return self._buffers[self.at - 1]


class Unpickler(pickle.Unpickler):
    """Its memo can be filled from outside, as that of C's cannot: by a stream made for it."""

    def __init__(self, reader: Reader, buffers: Buffers, memo: dict[int, Any]) -> None:
        super().__init__(reader, buffers=buffers)
        self._memo = memo
        if memo:
            steps = (b"J%sQr%s0" % (place, place) for place in map(PLACE.pack, sorted(memo)))
            reader.play(b"".join((*steps, b"N.")), self.load)
        del self._memo

    def persistent_load(self, place: int) -> Any:
        return self._memo[place]

    def known(self) -> dict[int, Any]:
        found: dict[int, Any] = self.memo.copy()
        return found


class Loading:
    def __init__(self, stream: Any, buffers: Sequence[Any], dumped: Dumped) -> None:
        self._reader, self._buffers = Reader(stream), Buffers(buffers)
        self._dumped = dumped
        self._unpickler = Unpickler(self._reader, self._buffers, {})
        self._gaps: list[tuple[Tombstone, int]] = []  # what stands in the memo; references to it
        self.result = Loaded([], [])

    def load_process(self) -> dict[str, Any]:
        entry = self._dumped.process
        self._seek(entry)
        self._unpickler.load()  # the anchors
        inside = replace(
            entry,
            at=self._reader.at,
            first_buffer=self._buffers.at,
            memo=len(self._unpickler.known()),
        )
        following = self._dumped.entries[0].memo if self._dumped.entries else 0
        state = self._load(inside, following, False)
        return state if type(state) is dict else {}

    def load_names(self, skip: Set[str], begin: Callable[[int, str], None]) -> None:
        entries = self._dumped.entries
        ends = [entry.memo for entry in entries[1:]] + [0]
        for place, (entry, end) in enumerate(zip(entries, ends, strict=True)):
            begin(place, entry.name)
            value = self._load(entry, end, entry.name in skip)
            live.namespace()[entry.name] = value
            self.result.names.append(entry.name)

    def set(self, parts: dict[str, Part], state: dict[str, Any]) -> None:
        for name, why in restore(parts, state):
            if name == "directory":
                self.result.cwd_gone = state[name]
            else:
                self.result.failed.append(Lost("", name, why))

    def _seek(self, entry: Entry) -> None:
        self._reader.at, self._buffers.at = entry.at, entry.first_buffer

    def _load(self, entry: Entry, end: int, skip: bool) -> Any:
        self._seek(entry)
        if not skip:
            with suppress(BaseException):  # what is wrong is found out, and told, the slow way
                value, _ = self._unpickler.load()
                self._tell_gaps(entry)
                return value
        return self._salvage(entry, end, run=not skip)

    def _salvage(self, entry: Entry, end: int, run: bool) -> Any:
        known = self._unpickler.known()
        memo = {at: value for at, value in known.items() if at < entry.memo}
        gap = bury("a part of another name", f"{entry.name} could not be restored")
        self._seek(entry)
        try:
            (value, _), lost = salvage(self._reader, self._buffers, memo, run)
        except BaseException as error:  # the stream itself
            value = bury(entry.type, describe(error))
            lost = [value]
        for at in range(entry.memo, end):
            memo.setdefault(at, gap)
        memo = {at: each for at, each in memo.items() if at < end}
        self._unpickler = Unpickler(self._reader, self._buffers, memo)
        del known, memo
        self._gaps.append((gap, sys.getrefcount(gap)))
        for each in lost:
            each._name = each._name or entry.name
            self.result.failed.append(Lost(entry.name, each._what, each._why))
        return value

    def _tell_gaps(self, entry: Entry) -> None:
        """A name that loaded, but with something missing that an earlier name had brought."""
        for place, (gap, before) in enumerate(self._gaps):
            now = sys.getrefcount(gap)
            if now > before:
                self.result.failed.append(Lost(entry.name, gap._what, gap._why))
                self._gaps[place] = (gap, now)


def load(
    shell: Any,
    stream: Any,
    buffers: Sequence[Any],
    dumped: Dumped,
    *,
    skip: Set[str],
    begin: Callable[[int, str], None],
) -> Loaded:
    """Bind the names again.  `begin` is called before each, so that a crash has a name."""
    live.enter(shell)
    loading = Loading(stream, buffers, dumped)
    with muted():
        state = loading.load_process()
        loading.set(FIRST, state)
        loading.load_names(skip, begin)
        loading.set(LAST, state)
    return loading.result

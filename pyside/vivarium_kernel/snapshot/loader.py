# SPDX-License-Identifier: MIT
"""load(): a stream as names of the live namespace again, one by one.

Where a name fails, the memo goes on as if it had not: later names that refer into it get a
tombstone there, or what could be saved of it, but never something else.
"""

import pickle
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from typing import Any

from ..streams import muted
from . import live
from .kinds import describe, name_of
from .missing import Graves
from .process import CALLED, FIRST, LAST, Part, restore
from .records import Dumped, Entry, Loaded, Lost
from .reducers import load_all
from .salvage import salvage
from .tombstone import Tombstone, bury

__all__ = ["Loaded", "load", "load_some"]

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
        self._graves = Graves()
        self._replaced: list[tuple[Any, Any]] = []  # a value, and what is known in its place
        self.result = Loaded([], [], self._graves)

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
        state, lost = self._load(inside, following, False)
        if type(state) is dict:
            return state
        self._miss_part("directory, environment, options", lost.why if lost else "")
        return {}

    def load_names(self, skip: Set[str], begin: Callable[[int, str], None]) -> None:
        for entry, end in self._each(begin):
            value, lost = self._load(entry, end, entry.name in skip)
            live.namespace()[entry.name] = value
            self.result.names.append(entry.name)
            if lost is not None:
                self.result.failed.append(lost)

    def load_some(
        self,
        names: Set[str],
        skip: Set[str],
        known: Mapping[str, Any],
        begin: Callable[[int, str], None],
    ) -> dict[str, Any]:
        """Those of the names that lack nothing; nothing is bound.  The rest is made only for what
        they refer to, and what is known already takes the place of the like."""
        found: dict[str, Any] = {}
        for entry, end in self._each(begin):
            if entry.name in names:
                self._replace()
            value, lost = self._load(entry, end, entry.name in skip)
            if entry.name in known:
                self._replaced.append((value, known[entry.name]))
            elif entry.name in names and lost is None:
                found[entry.name] = value
        return found

    def set(self, parts: dict[str, Part], state: dict[str, Any]) -> None:
        whole = {name: self._without_holes(name, state[name]) for name in parts if name in state}
        whole = {name: value for name, value in whole.items() if value is not None}
        for name, why in restore(parts, whole):
            if name == "directory":
                self.result.cwd_gone = state[name]
            else:
                self._miss_part(name, why)

    def _without_holes(self, name: str, part: Any) -> Any:
        """A list or dict of the session's without the rows that lack something; else None."""
        hole = self._graves.behind(part)
        if hole is None:
            return part
        self._miss_part(name, self._graves.why(hole))
        if type(part) is list:
            return [row for row in part if self._graves.behind(row) is None]
        if type(part) is dict:
            return {key: row for key, row in part.items() if self._graves.behind(row) is None}
        return None

    def _miss_part(self, name: str, why: str) -> None:
        called = CALLED.get(name, name)
        if all(lost.name != called for lost in self.result.failed):
            self.result.failed.append(Lost(called, "", why))

    def _each(self, begin: Callable[[int, str], None]) -> Iterator[tuple[Entry, int]]:
        """Each name, and how long the memo is after it."""
        entries = self._dumped.entries
        ends = [entry.memo for entry in entries[1:]] + [0]
        for place, (entry, end) in enumerate(zip(entries, ends, strict=True)):
            begin(place, entry.name)
            yield entry, end

    def _seek(self, entry: Entry) -> None:
        self._reader.at, self._buffers.at = entry.at, entry.first_buffer

    def _load(self, entry: Entry, end: int, skip: bool) -> tuple[Any, Lost | None]:
        self._seek(entry)
        if not skip:
            with suppress(BaseException):  # what is wrong is found out, and told, the slow way
                value, _ = self._unpickler.load()
                if self._graves.behind(value) is None:  # of an earlier name
                    return value, None
        return self._salvage(entry, end, run=not skip)

    def _salvage(self, entry: Entry, end: int, run: bool) -> tuple[Any, Lost | None]:
        known = self._unpickler.known()
        memo = {at: value for at, value in known.items() if at < entry.memo}
        gap = bury("a part of another name", f"{entry.name} could not be restored")
        self._graves.add(gap)
        self._seek(entry)
        try:
            (value, _), lost = salvage(self._reader, self._buffers, memo, run, self._graves)
        except BaseException as error:  # the stream itself
            value = bury(entry.type, describe(error))
            self._graves.add(value)
            lost = [value]
        for at in range(entry.memo, end):
            memo.setdefault(at, gap)
        memo = {at: each for at, each in memo.items() if at < end}
        self._unpickler = Unpickler(self._reader, self._buffers, memo)
        for each in lost:
            each._name = each._name or entry.name
        return value, self._lost(entry, value, lost)

    def _lost(self, entry: Entry, value: Any, lost: Sequence[Tombstone]) -> Lost | None:
        """One row, however much of the value is not there."""
        if self._graves.has(value):
            return Lost(entry.name, entry.type, self._graves.why(value))
        hole = self._graves.behind(value)
        if hole is None and not lost:
            return None
        hole = lost[0] if hole is None else hole
        why = f"without a {hole._what.rpartition('.')[2]} in it: {self._graves.why(hole)}"
        return Lost(entry.name, name_of(type(value)), why)

    def _replace(self) -> None:
        """What follows refers to what is known already.  The pairs are kept: the graves know what
        they looked at by its id."""
        known = {id(value): other for value, other in self._replaced if value is not other}
        memo = self._unpickler.known()
        places = {at: known[id(value)] for at, value in memo.items() if id(value) in known}
        if places:
            self._unpickler = Unpickler(self._reader, self._buffers, memo | places)


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


def load_some(
    stream: Any,
    buffers: Sequence[Any],
    dumped: Dumped,
    *,
    names: Set[str],
    skip: Set[str],
    known: Mapping[str, Any],
    begin: Callable[[int, str], None],
) -> dict[str, Any]:
    """These names' values, as far as they are whole, into the session that load() began."""
    loading = Loading(stream, buffers, dumped)
    with muted():
        loading.load_process()
        return loading.load_some(names, skip, known, begin)

# SPDX-License-Identifier: MIT
"""dump(): a namespace as one stream, one pickle to a name, one memo for all of them.

So two names of one object stay names of one object.  What cannot be kept becomes a tombstone
where it stands; a name is lost as a whole only when that cannot be told apart.
"""

import _thread
import functools
import linecache
import pickle
import sys
import threading
from collections import Counter as Counts
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import CodeType
from typing import Any

from ..streams import muted
from . import live
from .kinds import (
    STANDARD,
    describe,
    dict_of,
    full_name,
    is_own,
    key_of,
    module_of,
    mro_of,
    name_of,
    top,
)
from .process import capture
from .quiet import quiet
from .records import Dumped, Entry, Lost, Preempted, Sink
from .reducers import EXACT, FAMILIES, NAMED, Reducer, Unkeepable, as_it_is, load_all
from .reducers.anchors import ANCHORS, Anchor, hold
from .reducers.buffers import BigBytes
from .reducers.functions import find
from .reducers.instances import is_plain, learn_lost, reduce_instance
from .singletons import Singletons
from .tombstone import bury

__all__ = ["Dumped", "Entry", "Lost", "Preempted", "Sink", "dump", "module_versions"]

TRIES = 40  # of one dump, and two more a name; each knows one fault more than the one before
STACK_BYTES = 1 << 30  # of addresses; only what is used becomes memory
DEPTH = 200_000
BIG = 65536  # bytes: kept outside of the stream
PATIENCE = 3  # tries of a value that changes while it is written
PROCESS = ""  # the name of what is no name: the process's state
NO_NAME = "its name is no string"
SLOT_NAMES = "__slotnames__"
IPYTHON_OWN = ("get_ipython", "exit", "quit", "open")

load_all()


class Again(Exception):
    """Something was learnt that changes what was written already: start anew."""


class SinkFailedError(BaseException):
    """Carries an error of the sink's through code that would take it for a user's."""

    def __init__(self, reason: BaseException) -> None:
        self.reason = reason


class Memory:
    """What one dump leaves for the next: which types are lost, which names go wrong."""

    def __init__(self) -> None:
        self.native_lost: dict[int, type] = {}
        self.deep: dict[str, int] = {}  # name -> id of a value nested too deep for the stack
        self.singletons = Singletons()


memory = Memory()


class Counter:
    """Between the pickler and the sink: counts, and can read the memo's length."""

    def __init__(self, sink: Sink) -> None:
        self.at = 0
        self.buffers = 0
        self._sink = sink
        self._aside: list[bytes] | None = None

    def write(self, data: bytes) -> int:
        if self._aside is not None:
            self._aside.append(bytes(data))
            return len(data)
        self.at += len(data)
        try:
            return self._sink.write(data)
        except Exception as error:
            raise SinkFailedError(error) from None

    def buffer(self, buffer: pickle.PickleBuffer) -> bool:
        try:
            keep = self._sink.buffer(buffer)
        except Exception as error:
            raise SinkFailedError(error) from None
        self.buffers += not keep
        return keep

    def place_of(self, pickler: pickle.Pickler, known: object) -> int:
        """The memo's index of an object that was written already: the pickler says "get it"."""
        self._aside = []
        try:
            pickler.dump(known)
            wrote = b"".join(self._aside)
        finally:
            self._aside = None
        at = wrote.index(b"\x80\x05") + 2
        if wrote[at : at + 1] == b"\x95":
            at += 9  # a frame's head
        width = {b"h": 1, b"j": 4}[wrote[at : at + 1]]
        return int.from_bytes(wrote[at + 1 : at + 1 + width], "little")


class NamespacePickler(pickle.Pickler):
    def __init__(self, sink: Sink, faults: dict[int, str]) -> None:
        self.counter = Counter(sink)
        super().__init__(self.counter, 5, buffer_callback=self.counter.buffer)
        self.modules: set[str] = set()
        self.lost: list[Lost] = []
        self.name, self.cell = "", 0
        self.deep = False  # this name runs on the big stack
        self.last: object = None  # what was reduced last: the first suspect
        self.native_lost = memory.native_lost
        self.tombs: dict[int, Lost] = {}
        self.values: list[tuple[str, Any]] = []  # names and what they name
        self.facts: dict[int, Any] = {}  # for reducers: what is known of a type
        self.owners: set[int] = set()  # ids of arrays whose memory was written
        self.sharing: dict[Any, Any] = {}  # for reducers: what stands for what
        self._faults = faults
        self._give_way = sink.give_way
        self._reducers: dict[int, Reducer | None] = {}
        self._kept_alive: list[Any] = []  # ids are keys here
        self._sources: dict[str, Any] = {}
        self._unmarked: list[type] = []
        self.memo_length = 0

    def reducer_override(self, value: Any) -> Any:
        self._give_way()
        kind = type(value)
        try:
            try:
                reducer = self._reducers[id(kind)]
            except KeyError:
                reducer = self._meet(kind, value)
            if reducer is None:
                return NotImplemented
            self.last = value
            if self._faults and id(value) in self._faults:
                raise Unkeepable(self._faults[id(value)])
            return reducer(self, value)
        except (Preempted, Again, SinkFailedError):
            raise
        except Unkeepable as error:
            return self.bury(value, str(error))
        except RecursionError as error:
            if not self.deep:
                raise  # perhaps only this stack is too small
            return self.bury(value, describe(error))
        except BaseException as error:
            if learn_lost(self, value):
                raise Again from None
            return self.bury(value, describe(error))

    def bury(self, value: Any, why: str) -> Any:
        lost = Lost(self.name, full_name(type(value)), why)
        self.lost.append(lost)
        self.tombs[id(value)] = lost
        return bury, (lost.what, why, self.name, self.cell)

    def _meet(self, kind: type, value: Any) -> Reducer | None:
        self.keep_alive(kind)
        if SLOT_NAMES not in dict_of(kind):
            self._unmarked.append(kind)
        reducer: Reducer | None = choose(kind)
        if reducer is reduce_instance:
            if self.is_library(kind):
                self.modules.add(top(module_of(kind)))
            elif is_plain(kind, value):
                reducer = None
            if memory.singletons.has(kind):
                reducer = unless_single(reducer)
        if reducer is as_it_is:
            reducer = None
        self._reducers[id(kind)] = reducer
        return reducer

    def clean(self) -> None:
        """copyreg leaves a mark on classes that it has seen; the user's had none."""
        for kind in self._unmarked:
            if SLOT_NAMES in dict_of(kind) and is_own(kind):
                type.__delattr__(kind, SLOT_NAMES)

    def is_library(self, kind: type) -> bool:
        """Neither Python's own nor made in a cell."""
        return top(module_of(kind)) not in STANDARD and not is_own(kind)

    def abandon(self) -> None:
        """Another thread is at work with it, and shall stop."""

        def stop() -> None:
            raise Preempted

        self._give_way = stop

    def keep_alive(self, value: Any) -> Any:
        self._kept_alive.append(value)
        return value

    def source_of(self, code: CodeType) -> Any:
        """File name, number and text of the cell, one tuple for all code of that cell."""
        name = code.co_filename
        if name not in self._sources:
            lines = linecache.cache.get(name)
            numbers = getattr(getattr(live.shell(), "compile", None), "_filename_map", {})
            text = "".join(lines[2]) if lines is not None and len(lines) == 4 else None
            known = None if text is None else (name, numbers.get(name, 0), text)
            self._sources[name] = known
        return self._sources[name]

    # One name.

    def write_name(self, name: str, value: Any, cell: int, memo: int) -> Entry:
        counter, self.name, self.cell, self.lost = self.counter, name, cell, []
        at, buffers = counter.at, counter.buffers
        end: list[Any] = []  # its place in the memo tells how long that is by now
        self.dump((value, end))
        if id(value) in self.tombs and not self.lost:  # a second name of something lost
            self.lost.append(replace(self.tombs[id(value)], name=name))
        entry = Entry(
            name=name,
            at=at,
            size=counter.at - at,
            first_buffer=buffers,
            buffer_count=counter.buffers - buffers,
            memo=memo,
            type=name_of(type(value)),
            lost=self.lost,
        )
        self.memo_length = counter.place_of(self, end) + 2  # after it comes the pair
        return entry

    def write_anchors(self) -> None:
        """What every process has: from now on the real ones pass for written."""
        anchors = [Anchor(name) for name in ANCHORS]
        self.dump((anchors, None))
        real = {id(anchor): hold(anchor.name) for anchor in anchors}
        places = {}
        for place, written in self.memo.copy().values():
            value = self.keep_alive(real.get(id(written), written))
            places[id(value)] = (place, value)
        self.memo = places
        self.memo_length = len(places)


def choose(kind: type) -> Reducer:
    if id(kind) in BY_ID:
        return BY_ID[id(kind)]
    found = NAMED.get(key_of(kind))
    for base in mro_of(kind):
        if found is None:
            found = FAMILIES.get(key_of(base))
    return found or reduce_instance


BY_ID = {id(kind): reducer for kind, reducer in EXACT.items()}  # a metaclass may refuse hash()


def unless_single(otherwise: Reducer | None) -> Reducer:
    def reduce(pickler: Any, value: Any) -> Any:
        place = memory.singletons.find(value)
        if place is not None:
            return find, place
        return NotImplemented if otherwise is None else otherwise(pickler, value)

    return reduce


class Attempts:
    """One dump, from the beginning each time something is found that cannot be written."""

    def __init__(
        self, values: list[tuple[str, Any]], left_out: list[Lost], cell_of: Callable[[str], int]
    ) -> None:
        self._values = values
        self._left_out = left_out
        self._cell_of = cell_of
        self._faults: dict[int, str] = {}  # id of an object -> why it becomes a tombstone
        self._suspects: dict[str, Any] = {}
        self._whole: dict[str, str] = {}  # names that are lost altogether
        self._changing: Counts[str] = Counts()

    def run(self, sink_factory: Callable[[], Sink]) -> Dumped:
        for _ in range(TRIES + 2 * len(self._values)):
            try:
                return self._run(sink_factory())
            except Again:
                continue
            except SinkFailedError as failed:
                raise failed.reason from None
        raise RuntimeError("the namespace could not be written, however often it was tried")

    def _run(self, sink: Sink) -> Dumped:
        pickler = NamespacePickler(sink, self._faults)
        pickler.values = self._values
        try:
            return self._write_all(pickler)
        finally:
            pickler.clean()

    def _write_all(self, pickler: NamespacePickler) -> Dumped:
        pickler.write_anchors()
        process = self._write(pickler, PROCESS, capture(live.shell()))
        process = replace(process, at=0, size=process.at + process.size, memo=0)
        entries = [self._write(pickler, name, value) for name, value in self._values]
        return Dumped(entries, self._left_out, process, pickler.modules)

    def _write(self, pickler: NamespacePickler, name: str, value: Any) -> Entry:
        cell = self._cell_of(name) if name else 0
        why = self._whole.get(name)
        if why is not None:
            lost = Lost(name, full_name(type(value)), why)
            tombstone = bury(lost.what, why, name, cell)
            entry = pickler.write_name(name, tombstone, cell, pickler.memo_length)
            return replace(entry, type=name_of(type(value)), lost=[lost])
        if type(value) is bytes and len(value) > BIG:
            big = pickler.sharing.setdefault(id(value), BigBytes(value))
            return replace(self._try(pickler, name, big, cell), type="bytes")
        return self._try(pickler, name, value, cell)

    def _try(self, pickler: NamespacePickler, name: str, value: Any, cell: int) -> Entry:
        pickler.deep = memory.deep.get(name) == id(value)
        memo = pickler.memo_length
        try:
            if pickler.deep:
                return on_big_stack(pickler, lambda: pickler.write_name(name, value, cell, memo))
            return pickler.write_name(name, value, cell, memo)
        except (Again, SinkFailedError):
            raise
        except Preempted as error:
            error.name = name
            raise
        except BaseException as error:
            self._blame(pickler, name, value, error)
            raise Again from None

    def _blame(
        self, pickler: NamespacePickler, name: str, value: Any, error: BaseException
    ) -> None:
        """C code failed.  Try the whole on a larger stack, then without the last object."""
        if isinstance(error, RecursionError):
            if pickler.deep:
                self._whole[name] = describe(error)
            memory.deep[name] = id(value)
        elif is_change(error) and self._changing[name] < PATIENCE:
            self._changing[name] += 1  # a thread of the user's changes it meanwhile
        elif name not in self._suspects and pickler.last is not None:
            self._suspects[name] = pickler.last
            self._faults[id(pickler.last)] = describe(error)
        else:
            self._faults.pop(id(self._suspects.get(name)), None)
            self._whole[name] = describe(error)


def is_change(error: BaseException) -> bool:
    """A dict or set that grew while the pickler went through it."""
    return isinstance(error, RuntimeError) and "changed size" in describe(error)


def on_big_stack(pickler: NamespacePickler, work: Callable[[], Entry]) -> Entry:
    """For values nested deeper than this thread's stack.  The caller waits."""
    results: list[Any] = []
    done = _thread.allocate_lock()
    done.acquire()

    def run() -> None:
        try:
            with muted():
                results.append(work())
        except BaseException as error:
            results.append(error)
        finally:
            done.release()

    limit, size = sys.getrecursionlimit(), threading.stack_size(STACK_BYTES)
    try:
        sys.setrecursionlimit(DEPTH)
        # Not threading.Thread: the user's trace hooks and lists of threads shall not see it.
        _thread.start_new_thread(run, ())
        try:
            done.acquire()
        except BaseException:
            pickler.abandon()
            done.acquire()
            raise
    finally:
        threading.stack_size(size)
        sys.setrecursionlimit(limit)
    if isinstance(results[0], BaseException):
        raise results[0]
    entry: Entry = results[0]
    return entry


def dump(
    shell: Any,
    names: Mapping[str, object],
    sink_factory: Callable[[], Sink],
    cell_of: Callable[[str], int],
) -> Dumped:
    """Write these names; the sink that was made last has the stream.  Changes nothing."""
    live.enter(shell)
    values, left_out = chosen(shell, names)
    with quiet():
        return Attempts(values, left_out, cell_of).run(sink_factory)


def chosen(shell: Any, names: Mapping[str, object]) -> tuple[list[tuple[str, Any]], list[Lost]]:
    """A copy, since threads may go on to bind names; without what is not the user's."""
    hidden = getattr(shell, "user_ns_hidden", {})
    values, left_out = [], []
    for name, value in list(names.items()):
        if type(name) is not str:
            left_out.append(Lost(f"{type(name).__name__}", full_name(type(value)), NO_NAME))
        elif not is_internal(name) and not (name in IPYTHON_OWN and hidden.get(name) is value):
            values.append((name, value))
    return values, left_out


def is_internal(name: str) -> bool:
    return name.startswith("_vivarium") or (name.startswith("__") and name.endswith("__"))


def module_versions(dumped: Dumped) -> dict[str, str]:
    """The versions of the libraries that loading will import."""
    found = {}
    for name in sorted(dumped.modules):
        package = top(name)
        if package not in STANDARD and package not in found:
            version = version_of(package)
            if version:
                found[package] = version
    return found


@functools.cache
def version_of(package: str) -> str:
    version = getattr(sys.modules.get(package), "__version__", None)
    if type(version) is str:
        return version
    from importlib import metadata

    try:
        return metadata.version(package)
    except (metadata.PackageNotFoundError, ValueError):
        return ""

# SPDX-License-Identifier: MIT
"""dump(): a namespace as one stream, one pickle to a name, one memo for all of them.

So two names of one object stay names of one object.  What cannot be kept becomes a tombstone
where it stands; a name is lost as a whole only when that cannot be told apart.
"""

import _thread
import functools
import sys
import threading
from collections import Counter as Counts
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ..streams import muted
from . import live
from .dissect import Again, NamespacePickler, memory
from .kinds import STANDARD, describe, full_name, name_of, top
from .process import capture
from .quiet import quiet
from .records import APART, Dumped, Entry, Lost, Preempted, Sink
from .reducers.buffers import BigBytes
from .stream import SinkFailedError
from .tombstone import bury

__all__ = ["Dumped", "Entry", "Lost", "Preempted", "Sink", "dump", "module_versions"]

TRIES = 40  # of one dump, and two more a name; each knows one fault more than the one before
STACK_BYTES = 1 << 30  # of addresses; only what is used becomes memory
DEPTH = 200_000
PATIENCE = 3  # tries of a value that changes while it is written
PROCESS = ""  # the name of what is no name: the process's state
NO_NAME = "its name is no string"
IPYTHON_OWN = ("get_ipython", "exit", "quit", "open")


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
        before = process.first_buffer  # the anchors' are the process's, too
        process = replace(
            process,
            at=0,
            size=process.at + process.size,
            first_buffer=0,
            buffer_count=before + process.buffer_count,
            memo=0,
        )
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
        if type(value) is bytes and len(value) >= APART:
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

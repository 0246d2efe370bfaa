# SPDX-License-Identifier: MIT
"""The pickler itself: it finds a reducer for each object, and a tombstone where that fails."""

import linecache
import pickle
from dataclasses import replace
from types import CodeType
from typing import Any

from ..summary import where_from
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
from .records import Entry, Lost, Preempted, Sink
from .reducers import EXACT, FAMILIES, NAMED, Reducer, Unkeepable, as_it_is, load_all
from .reducers.anchors import ANCHORS, Anchor, hold
from .reducers.functions import find
from .reducers.growing import Histories
from .reducers.instances import is_plain, learn_lost, reduce_instance
from .singletons import Singletons
from .stream import Counter, SinkFailedError
from .tombstone import bury

SLOT_NAMES = "__slotnames__"

load_all()


class Again(Exception):
    """Something was learnt that changes what was written already: start anew."""


class Memory:
    """What one dump leaves for the next: which types are lost, which names go wrong."""

    def __init__(self) -> None:
        self.native_lost: dict[int, type] = {}
        self.deep: dict[str, int] = {}  # name -> id of a value nested too deep for the stack
        self.singletons = Singletons()
        self.histories = Histories()


memory = Memory()


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
            imported=where_from(value) != "",
        )
        self.memo_length = counter.place_of(self, end) + 2  # after it comes the pair
        return entry

    def write_anchors(self) -> None:
        """What every process has: from now on the real ones pass for written."""
        anchors = [(Anchor(name), hold(name)) for name in ANCHORS]
        pairs = [*anchors, *memory.histories.of(live.shell())]
        self.dump(([stands_in for stands_in, _ in pairs], None))
        real = {id(stands_in): value for stands_in, value in pairs}
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

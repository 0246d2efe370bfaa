# SPDX-License-Identifier: MIT
"""Names that could not be loaded once, from the generation that still has them whole.

That one is loaded again up to the last of them, since all its names share one memo; only what
was wanted is kept, bound to the classes and objects that are here already.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from ..connection import Restore
from . import manifest
from .history import is_history
from .loader import load_some
from .manifest import LeftOut, Read
from .mapping import Store
from .records import Entry
from .salvage import NOT_RUN
from .tombstone import Tombstone

Begin = Callable[[int, str], None]


@dataclass
class Older:
    """Where they lie, and the session as the newest one has it."""

    launch: Restore
    store: Store
    namespace: Mapping[str, Any]
    newest: Read

    def find(self, begin: Begin) -> dict[str, Any]:
        values: dict[str, Any] = {}
        rows = [row for row in self.rows() if row.carried in self.launch.older]
        place = os.path.dirname(self.launch.manifest)
        for number in sorted({row.carried for row in rows}):
            with suppress(Exception):  # it stays where it is
                older = manifest.read(os.path.join(place, f"{number}.json"))
                values |= self._from(older, [r for r in rows if r.carried == number], begin)
        return values

    def rows(self) -> Iterator[LeftOut]:
        """What older ones have.  One that ended a kernel which looked into it is given up."""
        rows = [row for row in self.newest.left_out if row.carried]
        deadly = {row.carried for row in rows if row.name in self.launch.skip}
        for row in rows:
            yield replace(row, why=NOT_RUN) if row.carried in deadly else row

    def _from(self, older: Read, rows: Sequence[LeftOut], begin: Begin) -> dict[str, Any]:
        skip = {row.name for row in rows if NOT_RUN in row.why}
        names = {row.name for row in rows if row.name not in skip and self._is_due(row, older)}
        entries = older.dumped.entries
        wanted = [at for at, entry in enumerate(entries) if entry.name in names]
        if not wanted:
            return {}
        first = entries[wanted[0]].name
        del entries[wanted[-1] + 1 :]
        stream = self.store.read(older.stream.size, older.stream.chunks)
        buffers, _ = self.store.every(older.buffers, buffers_of(entries, names))
        return load_some(
            stream,
            buffers,
            older.dumped,
            names=names,
            skip=skip,
            known=self._known(older),
            begin=lambda place, _: begin(place, first),  # the others load in the newest one
        )

    def _is_due(self, row: LeftOut, older: Read) -> bool:
        """What stands for it is as it was made: no cell has worked on it since."""
        if type(self.namespace.get(row.name)) is Tombstone:
            return True
        known = self.newest.hashes.get(row.name)
        return known is not None and known == older.hashes.get(row.name)

    def _known(self, older: Read) -> dict[str, Any]:
        """Names that have not changed since, and whose values are whole."""
        torn = {row.name for row in self.newest.left_out}
        return {
            name: self.namespace[name]
            for name, value_hash in older.hashes.items()
            if self.newest.hashes.get(name) == value_hash
            and name in self.namespace
            and name not in torn
            and not is_history(name)
        }


def buffers_of(entries: Sequence[Entry], names: Set[str]) -> set[int]:
    own = [entry for entry in entries if entry.name in names]
    return {each.first_buffer + number for each in own for number in range(each.buffer_count)}

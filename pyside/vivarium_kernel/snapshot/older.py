# SPDX-License-Identifier: MIT
"""Names that could not be loaded once, from the generation that still has them whole.

That one is loaded again up to the last of them, since all its names share one memo; only what
was wanted is kept, bound to the classes and objects that are here already.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ..connection import Restore
from . import manifest
from .history import is_history
from .loader import load_some
from .manifest import LeftOut, Read
from .mapping import Store
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
        rows = [row for row in self.newest.left_out if self._is_due(row)]
        place = os.path.dirname(self.launch.manifest)
        for number in sorted({row.carried for row in rows}):
            with suppress(Exception):  # it stays where it is
                older = manifest.read(os.path.join(place, f"{number}.json"))
                values |= self._from(older, [r for r in rows if r.carried == number], begin)
        return values

    def _is_due(self, row: LeftOut) -> bool:
        """One that killed a kernel is not tried again."""
        here = row.name in self.namespace and row.carried in self.launch.older
        return here and row.name not in self.launch.skip and NOT_RUN not in row.why

    def _from(self, older: Read, rows: Sequence[LeftOut], begin: Begin) -> dict[str, Any]:
        names = {row.name for row in rows if self._is_untouched(row.name, older)}
        if not names.intersection(older.hashes):
            return {}
        entries = older.dumped.entries
        last = max(at for at, entry in enumerate(entries) if entry.name in names)
        del entries[last + 1 :]
        stream = self.store.read(older.stream.size, older.stream.chunks)
        own = {
            entry.first_buffer + number
            for entry in entries
            if entry.name in names
            for number in range(entry.buffer_count)
        }
        buffers, _ = self.store.every(older.buffers, own)
        known = self._known(older)
        return load_some(stream, buffers, older.dumped, names=names, known=known, begin=begin)

    def _is_untouched(self, name: str, older: Read) -> bool:
        """What stands for it is as it was made: no cell has worked on it since."""
        if type(self.namespace[name]) is Tombstone:
            return True
        return self.newest.hashes.get(name, "") == older.hashes.get(name)

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

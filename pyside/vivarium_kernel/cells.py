# SPDX-License-Identifier: MIT
"""Which cell bound each name last, by the identity of its value before and after the cell."""

from collections.abc import Mapping

Seen = tuple[int, int, int]  # id of the value; when it was bound, as a count; the cell's number
NEVER: Seen = (0, 0, 0)


class Cells:
    def __init__(self) -> None:
        self._seen: dict[str, Seen] = {}
        self._count = 0

    def note(self, namespace: Mapping[str, object], cell: int) -> None:
        """A cell has ended.  No reference to a value is kept."""
        self._count += 1
        before, now = self._seen, (self._count, cell)
        seen: dict[str, Seen] = {}
        for name, value in list(namespace.items()):
            if type(name) is str:
                known = before.get(name, NEVER)
                seen[name] = known if known[0] == id(value) else (id(value), *now)
        self._seen = seen

    def recall(self, namespace: Mapping[str, object], cells: Mapping[str, int]) -> None:
        """The namespace came back from a snapshot, which says who bound what."""
        self.note(namespace, 0)
        for name, cell in cells.items():
            if name in self._seen:
                self._seen[name] = (self._seen[name][0], cell, cell)
        self._count = max((self._count, *cells.values()))

    def of(self, name: str) -> int:
        """The cell's number; 0 if no cell bound it."""
        return self._seen.get(name, NEVER)[2]

    @property
    def now(self) -> int:
        """What when() says of a name that this cell bound."""
        return self._count

    def when(self, name: str) -> int:
        """Larger for what was bound later."""
        return self._seen.get(name, NEVER)[1]

# SPDX-License-Identifier: MIT
"""One save: the namespace as it is now becomes the next generation in the spool."""

from dataclasses import dataclass, field
from types import FunctionType, ModuleType
from typing import Any

from ..cells import Cells
from .baseline import UNKNOWN, Baseline, Mapped
from .chunks import Chunks, Spool
from .collector import Collector, reason
from .dissect import memory
from .history import is_history, leave_out
from .likeness import Comparison, Generation
from .manifest import Cell, Contents, LeftOut, Read, bytes_of, changes
from .omissions import Omissions, heaviest
from .patience import GivenUp, Patience
from .pickler import dump, module_versions
from .records import Dumped, Lost, Preempted
from .versions import Version, Versions

SHRINK_MAX = 5  # attempts to get below the limit of bytes


@dataclass
class Saved:
    """The newest complete generation, and what it does not have."""

    generation: int = 0
    bytes: int = 0
    lost: list[Lost] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)


class Writer:
    def __init__(self, shell: Any, cells: Cells, spool: Spool, size_max: int, last: int) -> None:
        self.saved = Saved()
        self.omissions = Omissions()
        self.versions = Versions()
        self.chunks = Chunks(spool)
        self._shell = shell
        self._cells = cells
        self._spool = spool
        self._size_max = size_max
        self._number = last  # of a generation, used by whomever
        self._since: dict[str, int] = {}  # in which generation a name's value last changed

    def save(self, cell: Cell, patience: Patience, opcodes: int) -> int:
        """Returns the generation's number.  Raises Preempted, and nothing is changed."""
        for _ in range(SHRINK_MAX):
            namespace = self._namespace()
            left_out = self.omissions.apply(namespace)
            collector, dumped = self._dump(namespace, patience)
            if not collector.over():
                with patience.own_work():
                    return self._complete(cell, collector, dumped, left_out, opcodes)
            self._shrink(namespace, collector, dumped)
        raise GivenUp(f"the namespace is larger than {self._size_max} bytes")

    def bytes_of_before(self) -> int:
        """In the next save, and written already: they cost it next to nothing."""
        return memory.histories.bytes_apart()

    def resume(self, found: Read, mapped: Mapped, patience: Patience) -> None:
        """The namespace came back from this generation."""
        entries = self._as_restored(found, mapped, patience)
        self.versions.restored(Version(found.generation, found.chunk_names(), entries))
        self.chunks.settle(found.chunk_names())
        self.saved = Saved(found.generation, found.size(), all_lost(found.dumped))

    def _as_restored(self, found: Read, mapped: Mapped, patience: Patience) -> Generation:
        """What the values look like now, for they need not be pickled as they were before."""
        generation = Generation()
        try:
            sink = Baseline(self.chunks, patience, mapped)
            dumped = dump(self._shell, self._namespace(), sink.renewed, self._cells.of)
            for entry, mark in zip(dumped.entries, sink.marks(dumped.entries), strict=True):
                value_hash = found.hashes.get(entry.name, mark.raw)
                generation.add(entry.name, mark, entry.memo, value_hash)
        except (Exception, Preempted):  # then every name counts as changed next time
            generation = Generation()
            for name, value_hash in found.hashes.items():
                generation.add(name, UNKNOWN, 0, value_hash)
        generation.seal()
        return generation

    def _namespace(self) -> dict[str, Any]:
        """Names in the order of the stream.

        Modules and definitions come first: code of theirs may run when a value is loaded.  Then
        what changed last comes last, so that most entries stay as they were.
        """
        names = dict(self._shell.user_ns)
        leave_out(self._shell, names)
        usable = [name for name in names if type(name) is str and is_text(name)]
        new = self._number + 1
        usable.sort(key=lambda name: (rank(name, names[name]), self._since.get(name, new)))
        return {name: names[name] for name in usable}

    def _dump(self, namespace: dict[str, Any], patience: Patience) -> tuple[Collector, Dumped]:
        made: list[Collector] = []

        def sink() -> Collector:
            made.append(Collector(self.chunks, patience, self._size_max))
            return made[-1]

        dumped = dump(self._shell, namespace, sink, self._cells.of)
        made[-1].finish()
        return made[-1], dumped

    def _shrink(self, namespace: dict[str, Any], collector: Collector, dumped: Dumped) -> None:
        sizes = [(bytes_of(entry, collector.buffers), entry.name) for entry in dumped.entries]
        limit = self._size_max - bytes_of(dumped.process, collector.buffers)
        for size, name in heaviest(sizes, limit):
            why = f"too large: a snapshot holds {self._size_max} bytes"
            self.omissions.keep_back(name, namespace[name], why, size)

    def _complete(
        self,
        cell: Cell,
        collector: Collector,
        dumped: Dumped,
        left_out: list[LeftOut],
        opcodes: int,
    ) -> int:
        parent, number = self.versions.newest, self._number + 1
        table = self._compare(parent.entries, collector, dumped, opcodes)
        hashes = {name: known.hash for name, known in table.entries.items()}
        before = {name: known.hash for name, known in parent.entries.entries.items()}
        rows = left_out + [LeftOut(lost.name, lost.what, lost.why) for lost in dumped.left_out]
        contents = Contents(
            generation=number,
            parent=parent.number,
            cell=cell,
            collector=collector,
            dumped=dumped,
            hashes=hashes,
            cells={name: self._cells.of(name) for name in hashes},
            left_out=rows,
            changes=changes(before, hashes),
            packages=module_versions(dumped),
        )
        chunks = collector.chunk_names()
        self._put(f"{number}.json", contents.encode())
        self._number = number
        self.chunks.settle(chunks)
        self.versions.add(Version(number, chunks, table))
        changed = {name for name, value in hashes.items() if before.get(name) != value}
        self._since = {n: number if n in changed else self._since.get(n, 0) for n in hashes}
        self.saved = Saved(number, collector.total, all_lost(dumped), rows)
        return number

    def _compare(
        self, parent: Generation, collector: Collector, dumped: Dumped, opcodes: int
    ) -> Generation:
        starts = [(entry.memo, entry.name) for entry in dumped.entries]
        comparison = Comparison(parent, starts, opcodes)
        table = Generation()
        marks = collector.marks(dumped.entries)
        for entry, mark in zip(dumped.entries, marks, strict=True):
            history = is_history(entry.name)  # changes with each cell, and no list has it
            value_hash = mark.raw if history else comparison.hash_of(entry.name, mark)
            table.add(entry.name, mark, entry.memo, value_hash)
        table.seal()
        return table

    def _put(self, name: str, data: bytes) -> None:
        try:
            self._spool.sync()  # the chunks' names before the manifest's
            self._spool.write(name, data)
            self._spool.sync()
        except OSError as error:
            raise GivenUp(reason(error)) from error


def all_lost(dumped: Dumped) -> list[Lost]:
    return [lost for entry in (dumped.process, *dumped.entries) for lost in entry.lost]


def rank(name: str, value: object) -> int:
    if is_history(name):
        return 3
    kind = type(value)
    if issubclass(kind, ModuleType):
        return 0
    return 1 if kind is FunctionType or issubclass(kind, type) else 2


def is_text(name: str) -> bool:
    """Fit for JSON."""
    return name.isascii() or name.encode("utf-8", "ignore").decode() == name

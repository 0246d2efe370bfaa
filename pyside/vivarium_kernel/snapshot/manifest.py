# SPDX-License-Identifier: MIT
"""What one generation consists of: N.json, from what the pickler and the collector found."""

import json
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ..streams import clean
from .chunks import CHUNK
from .collector import Collector, Piece
from .history import is_history
from .records import Dumped, Entry, Lost

VERSION = 1
SOURCE_MAX = 200  # characters


class Unreadable(Exception):
    """Not a manifest that this version can restore; the text says why."""


@dataclass(frozen=True)
class Cell:
    """After which cell it is."""

    number: int = 0
    source: str = ""
    outcome: str = "ok"
    duration_ms: int = 0


@dataclass
class Changes:
    """Against the parent; only names that a person gave."""

    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)


@dataclass
class LeftOut:
    name: str
    what: str
    why: str
    bytes: int = 0
    carried: int = 0  # the generation that still has it

    def row(self) -> dict[str, Any]:
        row = asdict(self)
        if not self.carried:
            del row["carried"]
        return row


@dataclass
class Contents:
    """Everything of a manifest that the keeper must bring together."""

    generation: int
    parent: int  # 0: none
    cell: Cell
    collector: Collector
    dumped: Dumped
    hashes: Mapping[str, str]
    cells: Mapping[str, int]
    left_out: Sequence[LeftOut]
    changes: Changes
    packages: Mapping[str, str]

    def encode(self) -> bytes:
        stream = self.collector.stream
        text = json.dumps(
            {
                "v": VERSION,
                "generation": self.generation,
                "parent": self.parent or None,
                "cell": self.cell.number,
                "time": int(time.time()),
                "chunk_bytes": CHUNK,
                "bytes": self.collector.total,
                "python": platform.python_version(),
                "packages": dict(self.packages),
                "stream": vars(stream),
                "buffers": [vars(piece) for piece in self.collector.buffers],
                "process": entry_row(self.dumped.process),
                "entries": [self._row(entry) for entry in self.dumped.entries],
                "left_out": [left.row() for left in self.left_out],
                "changes": vars(self.changes),
                "outcome": self.cell.outcome,
                "duration_ms": self.cell.duration_ms,
                "source": self.cell.source[:SOURCE_MAX],
            },
            ensure_ascii=False,
        )
        return clean(text).encode()

    def _row(self, entry: Entry) -> dict[str, Any]:
        row = entry_row(entry)
        row["bytes"] = bytes_of(entry, self.collector.buffers)
        row["hash"] = self.hashes[entry.name]
        row["cell"] = self.cells.get(entry.name, 0)
        return row


def entry_row(entry: Entry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "at": entry.at,
        "size": entry.size,
        "first_buffer": entry.first_buffer,
        "buffer_count": entry.buffer_count,
        "memo": entry.memo,
        "type": entry.type,
        "lost": [{"what": lost.what, "why": lost.why} for lost in entry.lost],
        "imported": entry.imported,
    }


def bytes_of(entry: Entry, buffers: Sequence[Piece]) -> int:
    """What it takes of the stream and of buffers."""
    own = buffers[entry.first_buffer : entry.first_buffer + entry.buffer_count]
    return entry.size + sum(piece.size for piece in own)


def changes(old: Mapping[str, str], new: Mapping[str, str]) -> Changes:
    """From the hashes of two generations."""
    found = Changes()
    for name, value_hash in new.items():
        if not is_history(name) and old.get(name) != value_hash:
            (found.changed if name in old else found.added).append(name)
    found.removed = [name for name in old if name not in new and not is_history(name)]
    return found


@dataclass
class Read:
    """A manifest that was read."""

    generation: int
    cell: int
    python: str
    packages: dict[str, str]
    stream: Piece
    buffers: list[Piece]
    dumped: Dumped
    bytes_of: dict[str, int]
    hashes: dict[str, str]
    cells: dict[str, int]
    left_out: list[LeftOut]

    def size(self) -> int:
        return sum(piece.size for piece in (self.stream, *self.buffers))

    def chunk_names(self) -> list[str]:
        return [name for piece in (self.stream, *self.buffers) for name in piece.chunks]


def read(path: str) -> Read:
    try:
        with open(path, "rb") as file:
            found = json.load(file)
        if found["v"] != VERSION or found["chunk_bytes"] != CHUNK:
            raise Unreadable(f"a manifest of version {found['v']}")
        return parse(found)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Unreadable(f"manifest: {type(error).__name__}: {error}") from None


def parse(found: dict[str, Any]) -> Read:
    rows = found["entries"]
    entries = [read_entry(row) for row in rows]
    return Read(
        generation=int(found["generation"]),
        cell=int(found["cell"]),
        python=str(found["python"]),
        packages=dict(found["packages"]),
        stream=Piece(**found["stream"]),
        buffers=[Piece(**piece) for piece in found["buffers"]],
        dumped=Dumped(entries=entries, left_out=[], process=read_entry(found["process"])),
        bytes_of={row["name"]: int(row["bytes"]) for row in rows},
        hashes={row["name"]: str(row["hash"]) for row in rows},
        cells={row["name"]: int(row["cell"]) for row in rows},
        left_out=[LeftOut(**row) for row in found["left_out"]],
    )


def read_entry(row: dict[str, Any]) -> Entry:
    names = ("name", "at", "size", "first_buffer", "buffer_count", "memo", "type")
    lost = [Lost(row["name"], **lost) for lost in row["lost"]]
    imported = bool(row.get("imported"))  # older ones do not say
    return Entry(**{name: row[name] for name in names}, lost=lost, imported=imported)

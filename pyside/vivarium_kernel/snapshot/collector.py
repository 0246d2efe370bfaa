# SPDX-License-Identifier: MIT
"""Takes what the pickler makes: cuts it into chunks, hashes it, gives way in between."""

import pickle
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from xxhash import xxh3_128_digest

from .chunks import CHUNK, Chunks, digest
from .patience import GivenUp, OverBudget, Patience
from .records import Entry

APART = 64 * 1024  # bytes from which a buffer has chunks of its own
BODY_MAX = 256 * 1024  # bytes of an entry that are kept for a closer look
BODIES_MAX = 2 << 20  # of all entries


@dataclass
class Piece:
    """The stream, or one buffer, in chunks."""

    size: int = 0
    chunks: list[str] = field(default_factory=list)


@dataclass
class Mark:
    """What one name's value looked like."""

    body: bytes | None  # its part of the stream, if that is small
    apart: str  # its buffers' chunks
    raw: str  # hash of all


class Collector:
    """A Sink."""

    def __init__(self, chunks: Chunks, patience: Patience, size_max: int) -> None:
        self.stream = Piece()
        self.buffers: list[Piece] = []
        self.total = 0
        self._chunks = chunks
        self._patience = patience
        self._size_max = size_max  # bytes from which on they are only counted; 0: never
        self._pending = bytearray()
        # Each write: where in the stream, the hash, and the bytes if they are few.
        self._written: list[tuple[int, bytes, bytes | None]] = []
        self._room = BODIES_MAX

    # The pickler's side.

    def write(self, data: Any, /) -> int:
        view = memoryview(data)
        size = view.nbytes
        self._patience.check()
        self._count(size)
        body = bytes(view) if size <= min(BODY_MAX, self._room) else None
        self._room -= size if body else 0
        self._written.append((self.stream.size, xxh3_128_digest(view), body))
        self.stream.size += size
        while view:
            room = CHUNK - len(self._pending)
            self._pending += view[:room]
            view = view[room:]
            if len(self._pending) == CHUNK:
                self._flush()
        return size

    def buffer(self, buffer: pickle.PickleBuffer) -> bool:
        try:
            view = buffer.raw()
        except BufferError:  # not in one piece: the pickler says what becomes of it
            return True
        if view.nbytes < APART:
            return True
        self._count(view.nbytes)
        self._patience.check()
        self.buffers.append(self._cut(view))
        return False

    def give_way(self) -> None:
        self._patience.check()

    # The keeper's side.

    def finish(self) -> None:
        if self._pending:
            self._flush()

    def over(self) -> bool:
        """It is larger than it may be, and was not written."""
        return bool(self._size_max) and self.total > self._size_max

    def marks(self, entries: Sequence[Entry]) -> Iterator[Mark]:
        """Of entries in the order of the stream; no write() had bytes of two of them."""
        written = self._written
        at = bisect_left(written, (entries[0].at,)) if entries else 0
        for entry in entries:
            first, end = at, entry.at + entry.size
            while at < len(written) and written[at][0] < end:
                at += 1
            parts = written[first:at]
            bodies = [body for _, _, body in parts if body is not None]
            whole = len(bodies) == len(parts) and entry.size <= BODY_MAX
            buffers = self.buffers[entry.first_buffer : entry.first_buffer + entry.buffer_count]
            yield mark([part[1] for part in parts], b"".join(bodies) if whole else None, buffers)

    def chunk_names(self) -> list[str]:
        return [name for piece in (self.stream, *self.buffers) for name in piece.chunks]

    def _count(self, size: int) -> None:
        self.total += size
        if self._patience.size and self.total > self._patience.size:
            raise OverBudget

    def _cut(self, view: memoryview) -> Piece:
        piece = Piece(view.nbytes)
        for start in range(0, view.nbytes, CHUNK):
            piece.chunks.append(self._put(view[start : start + CHUNK]))
            self._patience.check()
        return piece

    def _flush(self) -> None:
        self.stream.chunks.append(self._put(bytes(self._pending)))
        self._pending.clear()
        self._patience.check()

    def _put(self, piece: memoryview | bytes) -> str:
        if self.over():
            return ""
        try:
            with self._patience.own_work():
                return self._chunks.put(piece)
        except OSError as error:  # to the pickler it would be the fault of a value
            raise GivenUp(reason(error)) from error


def mark(hashes: Sequence[bytes], body: bytes | None, buffers: Sequence[Piece]) -> Mark:
    apart = "".join(name for piece in buffers for name in piece.chunks)
    return Mark(body, apart, digest(b"".join(hashes) + apart.encode()))


def reason(error: OSError) -> str:
    return f"{(error.strerror or str(error)).lower()}: the snapshot could not be written"

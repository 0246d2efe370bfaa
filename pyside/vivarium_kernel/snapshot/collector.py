# SPDX-License-Identifier: MIT
"""Takes what the pickler makes: cuts it into chunks, hashes it, gives way in between."""

import pickle
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from xxhash import xxh3_128_digest

from .chunks import CHUNK, Chunks, digest
from .patience import GivenUp, OverBudget, Patience
from .records import APART, Entry

BODY_MAX = 256 * 1024  # bytes of an entry that are kept for a closer look
BODIES_MAX = 2 << 20  # of all entries


@dataclass
class Piece:
    """The stream, or one buffer, in chunks."""

    size: int = 0
    chunks: list[str] = field(default_factory=list)


class Hash(bytes):
    """Of a piece that is not kept."""


class Mark(NamedTuple):
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
        self._written: list[tuple[int, bytes]] = []  # where in the stream, and what
        self._room = BODIES_MAX

    # The pickler's side.

    def write(self, data: Any, /) -> int:
        self._patience.check()
        size = len(data) if type(data) is bytes else memoryview(data).nbytes
        self._count(size)
        self._written.append((self.stream.size, self._remember(data, size)))
        self.stream.size += size
        if size < APART:
            self._pending += data
            self._flush()
        else:
            self._fill(memoryview(data))
        return size

    def _remember(self, data: Any, size: int) -> bytes:
        if size > min(BODY_MAX, self._room):
            return Hash(xxh3_128_digest(data))
        self._room -= size
        return bytes(data)

    def _fill(self, view: memoryview) -> None:
        """No more than a chunk at a time is copied."""
        while view:
            room = CHUNK - len(self._pending)
            self._pending += view[:room]
            view = view[room:]
            self._flush()

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
            self._flush_piece(len(self._pending))

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
            buffers = self.buffers[entry.first_buffer : entry.first_buffer + entry.buffer_count]
            apart = "".join([name for piece in buffers for name in piece.chunks])
            yield mark([part for _, part in written[first:at]], apart)

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
        while len(self._pending) >= CHUNK:
            self._flush_piece(CHUNK)

    def _flush_piece(self, size: int) -> None:
        self.stream.chunks.append(self._put(bytes(self._pending[:size])))
        del self._pending[:size]
        self._patience.check()

    def _put(self, piece: memoryview | bytes) -> str:
        if self.over():
            return ""
        try:
            with self._patience.own_work():
                return self._chunks.put(piece)
        except OSError as error:  # to the pickler it would be the fault of a value
            raise GivenUp(reason(error)) from error


def mark(parts: Sequence[bytes], apart: str) -> Mark:
    """The hash does not depend on whether there was room for a body."""
    if len(parts) == 1 and type(parts[0]) is bytes and not apart:
        return Mark(parts[0], "", digest(parts[0]))
    hashes = [part if type(part) is Hash else xxh3_128_digest(part) for part in parts]
    if len(hashes) == 1 and not apart:
        return Mark(None, "", hashes[0].hex())
    body = None if any(type(part) is Hash for part in parts) else b"".join(parts)
    return Mark(body, apart, digest(b"".join(hashes) + apart.encode()))


def reason(error: OSError) -> str:
    return f"{(error.strerror or str(error)).lower()}: the snapshot could not be written"

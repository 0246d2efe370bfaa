# SPDX-License-Identifier: MIT
"""Chunks of a megabyte, named by the hash of what is in them, and the spool they are put into.

A file appears in the spool under its name only when it is whole.  Chunks come before the
manifest that names them, so a manifest in the spool is a complete generation.
"""

import contextlib
import os
from collections.abc import Iterable
from typing import Any

from xxhash import xxh3_128

CHUNK = 1 << 20
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
PARTIAL = ".partial"


def digest(data: Any) -> str:
    """The name of a chunk with this content.  Releases the GIL where xxhash can."""
    return xxh3_128(data).hexdigest()


class Spool:
    """The directory that the daemon takes generations from."""

    def __init__(self, place: str, durable: bool) -> None:
        self._place = place
        self._durable = durable  # on the disk, not only in the page cache

    def write(self, name: str, data: Any) -> None:
        """Put a whole file there.  OSError: it is not there, and no part of it is."""
        partial = self._path(name + PARTIAL)
        fd = self._create(partial)
        try:
            try:
                write_all(fd, data)
                if self._durable:
                    os.fdatasync(fd)
            finally:
                os.close(fd)
            os.rename(partial, self._path(name))
        except BaseException:
            self.remove(name + PARTIAL)
            raise

    def sync(self) -> None:
        """The names that were written are on the disk too, where that is wanted."""
        if not self._durable:
            return
        fd = os.open(self._place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def has(self, name: str) -> bool:
        return os.path.exists(self._path(name))

    def remove(self, name: str) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self._path(name))

    def _create(self, partial: str) -> int:
        try:
            return os.open(partial, NEW_FILE, 0o600)
        except FileExistsError:  # of a kernel that was killed meanwhile
            os.unlink(partial)
            return os.open(partial, NEW_FILE, 0o600)

    def _path(self, name: str) -> str:
        return os.path.join(self._place, name)


def write_all(fd: int, data: Any) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(fd, left) :]


class Chunks:
    """Knows which chunks need not be written again.

    Those of the newest complete generation: they are in the spool or were adopted, and stay
    until a newer generation is adopted.  And those written since, for a generation that is not
    complete yet, as long as their files are there.
    """

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._settled: frozenset[str] = frozenset()
        self._loose: set[str] = set()
        self.written = 0  # bytes, ever

    def put(self, piece: memoryview | bytes) -> str:
        """The name of a chunk with this content, which is now in the spool or the store."""
        name = digest(piece)
        if name in self._settled or self._is_loose(name):
            return name
        copy = bytes(piece)
        if copy is not piece:  # a thread may have changed it meanwhile: name what is written
            name = digest(copy)
        if name not in self._settled and not self._is_loose(name):
            self._spool.write(name, copy)
            self._loose.add(name)
            self.written += len(copy)
        return name

    def settle(self, names: Iterable[str]) -> None:
        """A generation of these chunks is complete; what others were written for is past."""
        self._settled = frozenset(names)
        for name in self._loose - self._settled:
            self._spool.remove(name)
        self._loose.clear()

    def drop_loose(self) -> None:
        """Give their room on the disk back."""
        for name in self._loose:
            self._spool.remove(name)
        self._loose.clear()

    def _is_loose(self, name: str) -> bool:
        return name in self._loose and self._spool.has(name)

# SPDX-License-Identifier: MIT
"""A buffer out of chunk files: mapped side by side, copy-on-write, so that nothing is read.

What is written into the memory stays in this process; the files are never written through.
"""

import ctypes
import mmap
import os
import pickle
from collections.abc import Container, Sequence
from typing import Any

from .chunks import CHUNK, digest
from .collector import Piece

MAPPINGS_MAX = 30_000  # a process has 65,530, and lives from the rest
MAP_FIXED = 0x10
MAP_NORESERVE = 0x4000
READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_long,
]


class Damaged(Exception):
    """A chunk is missing, short, or not what its name says."""


class Gone:
    """In the place of a buffer that cannot be had."""


class Memory(mmap.mmap):
    """Owns what is mapped into it.  No file to anybody, though files are what it shows."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        return bytearray, (pickle.PickleBuffer(self),)


class Store:
    """The directory of chunks that were adopted.  Not ours to write."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._mappings = 0

    def read(self, size: int, chunks: Sequence[str]) -> bytearray:
        """A buffer's content, with every hash checked."""
        data = bytearray(size)
        view = memoryview(data)
        for start, name in pieces(size, chunks):
            part = view[start : start + CHUNK]
            self._read_into(name, part)
            if digest(part) != name:
                raise Damaged(f"chunk {name} is cut or changed")
        return data

    def map(self, size: int, chunks: Sequence[str]) -> Memory | bytearray:
        """The same without a look at the content."""
        self._mappings += len(chunks)
        if CHUNK % mmap.PAGESIZE or self._mappings > MAPPINGS_MAX:
            return self.read(size, chunks)
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE
        whole = Memory(-1, size, flags=flags)  # frees what is mapped over it later, too
        address = ctypes.addressof(ctypes.c_char.from_buffer(whole))
        try:
            for start, name in pieces(size, chunks):
                self._map_at(address + start, min(CHUNK, size - start), name)
        except OSError:
            return self.read(size, chunks)
        return whole

    def every(
        self, buffers: Sequence[Piece], checked: Container[int] = ()
    ) -> tuple[list[Any], set[int]]:
        """These buffers, and the numbers of those that are not there; checked: which ones are
        read at once."""
        found: list[Any] = []
        damaged: set[int] = set()
        for number, piece in enumerate(buffers):
            get = self.read if number in checked else self.map
            try:
                found.append(memoryview(get(piece.size, piece.chunks)))
            except (OSError, Damaged):
                found.append(Gone())  # whatever is made of it fails, and nothing else
                damaged.add(number)
        return found, damaged

    def is_damaged(self, name: str, size: int) -> bool:
        """A chunk that is gone is not: a newer generation may have been adopted meanwhile."""
        part = bytearray(size)
        try:
            self._read_into(name, memoryview(part))
        except FileNotFoundError:
            return False
        except (OSError, Damaged):
            return True
        return digest(part) != name

    def _open(self, name: str, size: int) -> int:
        fd = os.open(os.path.join(self._place, name), READ)
        if os.fstat(fd).st_size != size:  # beyond the end of a file lies SIGBUS
            os.close(fd)
            raise Damaged(f"chunk {name} is cut or changed")
        return fd

    def _read_into(self, name: str, part: memoryview) -> None:
        fd = self._open(name, part.nbytes)
        with os.fdopen(fd, "rb", buffering=0) as file:
            while part:
                count = file.readinto(part)
                if not count:
                    raise Damaged(f"chunk {name} is cut or changed")
                part = part[count:]

    def _map_at(self, address: int, size: int, name: str) -> None:
        fd = self._open(name, size)
        try:
            flags = mmap.MAP_PRIVATE | MAP_FIXED
            found = libc.mmap(address, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, fd, 0)
        finally:
            os.close(fd)
        if found != address:
            raise OSError(ctypes.get_errno(), "mmap")


def pieces(size: int, chunks: Sequence[str]) -> list[tuple[int, str]]:
    """Where each chunk begins."""
    if len(chunks) != -(-size // CHUNK):
        raise Damaged(f"{len(chunks)} chunks for {size} bytes")
    return [(number * CHUNK, name) for number, name in enumerate(chunks)]

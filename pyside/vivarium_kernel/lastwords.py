# SPDX-License-Identifier: MIT
"""The end of each stream in memory that the daemon can read when this process is gone.

A message that was published may never leave a process that dies: it waits for other threads.
What is kept here before it is published needs none of them.
"""

import mmap
import os
import struct

RING = 256 * 1024  # bytes of each stream; the daemon trusts the newest half (see Ring.add)
END = struct.Struct("=Q")  # bytes written so far; the ring follows it


class Ring:
    """One stream's part of the memory."""

    def __init__(self, memory: mmap.mmap, start: int) -> None:
        self.end = 0
        self._memory = memory
        self._start = start

    def add(self, data: bytes) -> None:
        """At most half of the ring is written at once, and told after: what it said before
        stays true if this process is killed in between."""
        last = data[-RING // 2 :] if len(data) > RING // 2 else data
        end = self.end + len(data)
        at = (end - len(last)) % RING
        first = min(len(last), RING - at)
        base = self._start + END.size
        self._memory[base + at : base + at + first] = last[:first]
        if first < len(last):
            self._memory[base : base + len(last) - first] = last[first:]
        END.pack_into(self._memory, self._start, end)
        self.end = end


class LastWords:
    """A ring for each stream, in one memory file."""

    def __init__(self) -> None:
        part = END.size + RING
        self.fd = os.memfd_create("last words")
        os.ftruncate(self.fd, 2 * part)
        memory = mmap.mmap(self.fd, 2 * part)
        self.rings = Ring(memory, 0), Ring(memory, part)

# SPDX-License-Identifier: MIT
"""What dump() and load() hand over, and what they ask of the one who writes the bytes."""

import pickle
from dataclasses import dataclass, field
from typing import Protocol

from .missing import Graves

APART = 64 * 1024  # bytes from which a buffer has chunks of its own


class Preempted(BaseException):
    """Raised by a sink: give way now.  No `except Exception` of a user's __reduce__ stops it."""

    name = ""  # what was being saved; dump() fills it in


class Sink(Protocol):
    def write(self, data: bytes, /) -> int:
        """The next piece of the stream.  Bytes and strings above 64 KB come as pieces of their
        own."""

    def buffer(self, buffer: pickle.PickleBuffer, /) -> bool:
        """True: keep it in the stream, it is small.  False: taken."""

    def give_way(self) -> None:
        """Called for each object that is no plain container; cheap."""


@dataclass
class Lost:
    name: str
    what: str  # its type
    why: str


@dataclass
class Entry:
    name: str
    at: int  # byte of the stream where it starts
    size: int
    first_buffer: int
    buffer_count: int
    memo: int  # length of the memo where it starts
    type: str
    lost: list[Lost] = field(default_factory=list)
    imported: bool = False  # an import brought it


@dataclass
class Dumped:
    entries: list[Entry]
    left_out: list[Lost]
    process: Entry
    modules: set[str] = field(default_factory=set)  # top-level ones that loading will import


@dataclass
class Loaded:
    names: list[str]
    failed: list[Lost]  # these became tombstones, or have some in them; one row a name
    graves: Graves = field(default_factory=Graves)
    cwd_gone: str | None = None  # the working directory that is no longer there

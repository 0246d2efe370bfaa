# SPDX-License-Identifier: MIT
"""The generations that this kernel wrote, until the daemon has decided on each."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from .likeness import Generation
from .orders import Verdict

UNDECIDED_MAX = 4  # remembered; each may hold megabytes


@dataclass(frozen=True)
class Version:
    number: int = 0
    chunks: Sequence[str] = ()
    entries: Generation = field(default_factory=Generation)


class Versions:
    def __init__(self) -> None:
        self.newest = Version()
        self._kept = Version()
        self._undecided: dict[int, Version] = {}

    def restored(self, version: Version) -> None:
        self.newest = self._kept = version

    def add(self, version: Version) -> None:
        self.newest = version
        self._undecided[version.number] = version
        if len(self._undecided) > UNDECIDED_MAX:
            del self._undecided[min(self._undecided)]

    def decide(self, verdict: Verdict) -> bool:
        """True: the newest one was refused, and what the daemon kept last is it now."""
        version = self._undecided.pop(verdict.generation, Version(verdict.generation))
        if not verdict.refused:
            self._kept = version
        elif version.number == self.newest.number:
            self.newest = self._kept
            return True
        return False

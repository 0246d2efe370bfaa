# SPDX-License-Identifier: MIT
"""Descriptor 5: lines from the daemon.

yield             a request is about to be sent: give way
kept N            generation N was adopted; its chunks stay until a newer one is
refused N REASON  it was not
"""

import os
import threading
from dataclasses import dataclass

LONGEST = 4096  # bytes of a line


@dataclass(frozen=True)
class Verdict:
    generation: int
    refused: str  # why; "" if it was kept


class Orders:
    """Any thread may look; nobody waits."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._pipe = os.fstat(fd)
        os.set_blocking(fd, False)
        self._lock = threading.Lock()
        self._text = b""
        self._yield = False
        self._verdicts: list[Verdict] = []

    def waiting(self) -> bool:
        """A request waits for the main thread."""
        with self._lock:
            self._read()
            return self._yield

    def request_came(self) -> None:
        """The request that a `yield` announced is here: the daemon writes that line first."""
        with self._lock:
            self._read()
            self._yield = False

    def verdicts(self) -> list[Verdict]:
        """What became of generations, since the last call."""
        with self._lock:
            self._read()
            found, self._verdicts = self._verdicts, []
            return found

    def _read(self) -> None:
        try:  # the user's code may have closed the descriptor, or have put a file there
            while os.path.samestat(os.fstat(self._fd), self._pipe):
                data = os.read(self._fd, LONGEST)
                if not data:
                    return
                self._text += data
        except OSError:
            pass
        *lines, self._text = self._text.split(b"\n")
        self._text = self._text[-LONGEST:]
        for line in lines:
            self._take(line.decode("utf-8", "replace"))

    def _take(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        number, _, reason = rest.partition(" ")
        if word == "yield":
            self._yield = True
        elif number.isdigit() and word in ("kept", "refused"):
            refused = (reason or "no reason given") if word == "refused" else ""
            self._verdicts.append(Verdict(int(number), refused))

# SPDX-License-Identifier: MIT
"""Between the pickler and the sink."""

import pickle

from .records import Sink


class SinkFailedError(BaseException):
    """Carries an error of the sink's through code that would take it for a user's."""

    def __init__(self, reason: BaseException) -> None:
        self.reason = reason


class Counter:
    """Between the pickler and the sink: counts, and can read the memo's length."""

    def __init__(self, sink: Sink) -> None:
        self.at = 0
        self.buffers = 0
        self._sink = sink
        self._aside: list[bytes] | None = None

    def write(self, data: bytes) -> int:
        if self._aside is not None:
            self._aside.append(bytes(data))
            return len(data)
        self.at += len(data)
        try:
            return self._sink.write(data)
        except Exception as error:
            raise SinkFailedError(error) from None

    def buffer(self, buffer: pickle.PickleBuffer) -> bool:
        try:
            keep = self._sink.buffer(buffer)
        except Exception as error:
            raise SinkFailedError(error) from None
        self.buffers += not keep
        return keep

    def place_of(self, pickler: pickle.Pickler, known: object) -> int:
        """The memo's index of an object that was written already: the pickler says "get it"."""
        self._aside = []
        try:
            pickler.dump(known)
            wrote = b"".join(self._aside)
        finally:
            self._aside = None
        at = wrote.index(b"\x80\x05") + 2
        if wrote[at : at + 1] == b"\x95":
            at += 9  # a frame's head
        width = {b"h": 1, b"j": 4}[wrote[at : at + 1]]
        return int.from_bytes(wrote[at + 1 : at + 1 + width], "little")

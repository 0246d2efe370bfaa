# SPDX-License-Identifier: MIT
"""A look at the namespace right after it was restored, so that the next save can tell changes.

Nothing is written, and no buffer is read: one that was mapped and that no cell has had in its
hands yet is known by its address.
"""

import ctypes
from collections.abc import Mapping
from typing import Any

from .chunks import Chunks
from .collector import Collector, Mark, Piece
from .patience import Patience

Mapped = Mapping[tuple[int, int], Piece]  # by address and size
UNKNOWN = Mark(None, "?", "?")  # like nothing else


class Baseline(Collector):
    def __init__(self, chunks: Chunks, patience: Patience, mapped: Mapped) -> None:
        super().__init__(chunks, patience, 0)
        self._again = chunks, patience, mapped
        self._mapped = mapped

    def renewed(self) -> "Baseline":
        """dump() starts anew."""
        self.__init__(*self._again)  # type: ignore[misc]
        return self

    def _cut(self, view: memoryview) -> Piece:
        known = self._mapped.get((address_of(view), view.nbytes))
        return known or Piece(view.nbytes, ["?"])

    def _put(self, piece: memoryview | bytes) -> str:
        return "?"


class PyBuffer(ctypes.Structure):
    """C's Py_buffer.  The rest is of no interest and may change its size."""

    _fields_ = (
        ("address", ctypes.c_void_p),
        ("owner", ctypes.c_void_p),
        ("rest", ctypes.c_char * 128),
    )


def address_of(view: Any) -> int:
    found = PyBuffer()
    api = ctypes.pythonapi
    api.PyObject_GetBuffer(ctypes.py_object(view), ctypes.byref(found), 0)
    try:
        return found.address or 0
    finally:
        api.PyBuffer_Release(ctypes.byref(found))

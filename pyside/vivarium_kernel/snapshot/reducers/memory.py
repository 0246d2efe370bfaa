# SPDX-License-Identifier: MIT
"""Raw memory: memory views, memory maps, ctypes."""

import ctypes
import mmap
import pickle
from typing import Any

from ..kinds import mro_of
from . import Unkeepable, exactly, family, named
from .instances import holds_pointer

CTYPES = ("Structure", "Union", "Array", "_SimpleCData", "_Pointer", "_CFuncPtr")


class Buffer(ctypes.Structure):
    """Py_buffer, of which only the address is read."""

    _fields_ = (("address", ctypes.c_void_p), ("rest", ctypes.c_byte * 256))


def address_of(value: Any) -> int:
    found = Buffer()
    ctypes.pythonapi.PyObject_GetBuffer(
        ctypes.py_object(value), ctypes.byref(found), 0x118 if is_view(value) else 0
    )
    address = found.address or 0
    ctypes.pythonapi.PyBuffer_Release(ctypes.byref(found))
    return address


def is_view(value: Any) -> bool:
    return type(value) is memoryview and value.format != "B"


@exactly(memoryview)
def reduce_view(pickler: Any, view: memoryview) -> Any:
    owner = view.obj
    if owner is None or not view.c_contiguous:
        raise Unkeepable("it is no contiguous piece of an object")
    start = address_of(view) - address_of(owner)
    return make_view, (owner, start, view.nbytes, (view.format, view.shape, view.readonly))


def make_view(owner: Any, start: int, size: int, layout: Any) -> Any:
    kind, shape, fixed = layout
    view = memoryview(owner).cast("B")[start : start + size]
    if kind != "B" or len(shape) != 1:
        view = view.cast(kind, shape) if shape else view.cast(kind)
    return view.toreadonly() if fixed and not view.readonly else view


@exactly(mmap.mmap)
def reduce_map(pickler: Any, found: mmap.mmap) -> Any:
    path, offset = mapped_file(address_of(found))
    if path:
        fixed = memoryview(found).readonly
        return map_file, (path, len(found), offset, fixed, found.tell())
    return make_map, (pickle.PickleBuffer(found), found.tell())


def mapped_file(address: int) -> tuple[str, int]:
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        for line in maps:
            parts = line.split(None, 5)
            first, _, last = parts[0].partition("-")
            if int(first, 16) <= address < int(last, 16):
                path = parts[5].strip() if len(parts) == 6 else ""
                if path.endswith(" (deleted)") and not path.startswith("/dev/zero"):
                    raise Unkeepable("the file it showed was deleted")
                plain = path.startswith("/") and not path.startswith("/dev/zero")
                start = int(parts[2], 16) + address - int(first, 16)
                return (path, start) if plain else ("", 0)
    raise Unkeepable("it is closed")


def make_map(content: Any, position: int) -> mmap.mmap:
    made = mmap.mmap(-1, len(content))
    made[:] = bytes(content)
    made.seek(position)
    return made


def map_file(path: str, size: int, offset: int, fixed: bool, position: int) -> mmap.mmap:
    access = mmap.ACCESS_READ if fixed else mmap.ACCESS_WRITE
    with open(path, "rb" if fixed else "r+b") as file:
        made = mmap.mmap(file.fileno(), size, access=access, offset=offset)
    made.seek(position)
    return made


@family("ctypes.CDLL")
def reduce_library(pickler: Any, library: Any) -> Any:
    return type(library), (library._name,)


@family("_ctypes._CData")
def reduce_data(pickler: Any, data: Any) -> Any:
    kind = type(data)
    if holds_pointer(kind):
        raise Unkeepable("it holds an address")
    return make_data, (kind, ctypes.string_at(ctypes.addressof(data), ctypes.sizeof(data)))


def make_data(kind: Any, content: bytes) -> Any:
    return kind.from_buffer_copy(content)


def reduce_ctypes_class(kind: Any) -> Any:
    """Array and pointer types are made on demand; metaclasses have no name at all."""
    if ctypes.Array in mro_of(kind) and kind is not ctypes.Array:
        return make_array_type, (kind._type_, kind._length_)
    if ctypes._Pointer in mro_of(kind) and kind is not ctypes._Pointer:
        return ctypes.POINTER, (kind._type_,)
    for name in CTYPES:
        if type(getattr(ctypes, name)) is kind:
            return type, (getattr(ctypes, name),)
    return None


def make_array_type(element: Any, length: int) -> Any:
    return element * length


@named("_hashlib.HASH", "_hashlib.HMAC", "_sha256.sha256", "_md5.md5")
def reduce_hash(pickler: Any, found: Any) -> Any:
    raise Unkeepable("what it has hashed so far cannot be read")

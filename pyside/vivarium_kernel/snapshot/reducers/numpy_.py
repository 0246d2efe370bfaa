# SPDX-License-Identifier: MIT
"""numpy arrays: data as buffers without a copy; views go on sharing their memory."""

import array
import gc
import itertools
import mmap
import pickle
import sys
from typing import Any

from ..kinds import inherited, key_of
from . import Unkeepable, family, named
from .instances import reduce_instance
from .torch_ import reduce_array_of_tensor

SOLE = 3  # references to what only one array, a variable here and a call's argument hold
SHARED_OWNERS = (bytearray, array.array, mmap.mmap)


def numpy() -> Any:
    import numpy

    return numpy


@named("numpy.ndarray")
def reduce_array(pickler: Any, value: Any) -> Any:
    root = root_of(pickler, value)
    if root is not value:
        return reduce_view(value, root)
    owner = value.base
    if key_of(type(owner)) == "torch.Tensor":
        return reduce_array_of_tensor(pickler, value)
    if type(owner) is memoryview:
        owner = owner.obj
    if type(owner) in SHARED_OWNERS and sys.getrefcount(owner) > SOLE:
        return reduce_view(value, owner)
    return reduce_data(value)


def root_of(pickler: Any, value: Any) -> Any:
    """The array whose memory it is; of memory that nobody else sees, it is the owner itself."""
    kind = numpy().ndarray
    base = value.base
    while isinstance(base, kind) and id(value) not in pickler.owners:
        if sys.getrefcount(base) <= SOLE:
            break
        value, base = base, base.base
    pickler.owners.add(id(value))  # from now on: this dump refers to its memory
    return value


@family("numpy.ndarray")
def reduce_subclass(pickler: Any, value: Any) -> Any:
    kind, base = type(value), numpy().ndarray
    for name in ("__reduce__", "__reduce_ex__", "__setstate__", "__getstate__"):
        if inherited(kind, name) is not inherited(base, name):
            return reduce_instance(pickler, value)
    root = root_of(pickler, value)
    reduced = reduce_view(value, root) if root is not value else reduce_data(value)
    state = getattr(value, "__dict__", None)
    return (*reduced[:2], state, None, None, fill) if state else reduced


def fill(value: Any, state: dict[str, Any]) -> None:
    vars(value).update(state)


def reduce_data(value: Any) -> Any:
    if value.dtype.hasobject:
        state = numpy().ndarray.__reduce__(value)
        return make_empty, (type(value), state[1]), state[2], None, None, fill_objects
    flags = value.flags
    order = "F" if flags.f_contiguous and not flags.c_contiguous else "C"
    plain = value.view(numpy().ndarray)
    if not flags.forc:
        plain = plain.copy(order)
        plain.flags.writeable = flags.writeable
    if not plain.nbytes:
        data: Any = b"" if not flags.writeable else bytearray()
    else:
        data = pickle.PickleBuffer(plain.reshape(-1, order=order).view("u1"))
    return make_array, (type(value), data, value.dtype, value.shape, order)


def make_array(kind: Any, data: Any, dtype: Any, shape: Any, order: str) -> Any:
    np = numpy()
    if not len(data):
        made = np.empty(shape, dtype, order)
        made.flags.writeable = type(data) is bytearray
    else:
        made = np.ndarray(shape, dtype, data, order=order)
        if type(data) in (bytes, bytearray):  # small: let it own its memory, as it did
            made = made.copy(order)
            made.flags.writeable = type(data) is bytearray
    return made if kind is np.ndarray else made.view(kind)


def make_empty(kind: Any, args: Any) -> Any:
    return numpy().ndarray.__new__(kind, (0,), "b")


def fill_objects(value: Any, state: Any) -> None:
    numpy().ndarray.__setstate__(value, state)


def reduce_view(value: Any, root: Any) -> Any:
    start = address_of(value) - address_of(root)
    layout = (value.shape, value.strides, value.dtype, value.flags.writeable)
    return make_view, (type(value), root, start, layout)


def address_of(value: Any) -> int:
    if isinstance(value, numpy().ndarray):
        address: int = value.__array_interface__["data"][0]
        return address
    return address_of(numpy().frombuffer(value, "u1"))


def make_view(kind: Any, root: Any, start: int, layout: Any) -> Any:
    np = numpy()
    shape, strides, dtype, writeable = layout
    if dtype.hasobject:
        flat = np.lib.stride_tricks.as_strided(root, (1,), (dtype.itemsize,))
        first = np.lib.stride_tricks.as_strided(
            flat, (start // dtype.itemsize + 1,), (dtype.itemsize,)
        )[-1:]
        made = np.lib.stride_tricks.as_strided(first, shape, strides)
    else:
        if isinstance(root, np.ndarray):
            size = extent(root)
            root = np.lib.stride_tricks.as_strided(root.view(np.ndarray), (1,), (root.itemsize,))
            root = np.lib.stride_tricks.as_strided(root.view("u1"), (size,), (1,))
        made = np.ndarray(shape, dtype, root, start, strides)
    if not writeable:
        made.flags.writeable = False
    return made if kind is np.ndarray else made.view(kind)


def extent(root: Any) -> int:
    """Bytes from the first to behind the last."""
    steps = ((n - 1) * step for n, step in zip(root.shape, root.strides, strict=True) if n)
    return int(sum(step for step in steps if step > 0)) + int(root.itemsize)


@family("numpy.memmap")
def reduce_memmap(pickler: Any, value: Any) -> Any:
    root = root_of(pickler, value)
    if getattr(value, "_mmap", None) is None or getattr(root, "filename", None) is None:
        return reduce_subclass(pickler, value)
    if root is not value:
        names = ("filename", "offset", "mode", "_mmap")
        reduced = reduce_view(value, root)
        return like_root, (reduced[1], names)
    mode = "r+" if value.mode == "w+" else value.mode
    order = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
    made = (str(value.filename), value.dtype, mode, value.offset, value.shape, order)
    # Copy on write: what was written is in memory only.
    content = (numpy().array(value),) if mode == "c" else None
    return open_memmap, (type(value), made), content, None, None, fill_memmap


def open_memmap(kind: Any, made: tuple[Any, ...]) -> Any:
    return kind(*made)


def fill_memmap(value: Any, content: tuple[Any]) -> None:
    value[...] = content[0]


def like_root(parts: tuple[Any, ...], names: tuple[str, ...]) -> Any:
    made = make_view(*parts)
    for name in names:
        setattr(made, name, getattr(parts[1], name))
    return made


@named("numpy.flatiter")
def reduce_flat(pickler: Any, value: Any) -> Any:
    return make_flat, (value.base, value.index)


def make_flat(base: Any, index: int) -> Any:
    flat = base.flat
    next(itertools.islice(flat, index, index), None)
    return flat


@named("numpy.ufunc")
def reduce_ufunc(pickler: Any, value: Any) -> Any:
    from ..dissect import memory
    from .functions import find

    memory.singletons.has(type(value))
    place = memory.singletons.find(value)
    if place is not None:
        return find, place
    functions = [each for each in gc.get_referents(value) if callable(each)]
    if len(functions) == 1 and value.__name__.endswith(" (vectorized)"):
        return make_ufunc, (functions[0], value.nin, value.nout, value.identity)
    return value.__name__  # a library's: the pickler looks for the module


def make_ufunc(function: Any, inputs: int, outputs: int, identity: Any) -> Any:
    return numpy().frompyfunc(function, inputs, outputs, identity=identity)


@named("numpy.finfo")
def reduce_finfo(pickler: Any, value: Any) -> Any:
    return type(value), (value.dtype,)


@named("numpy.nditer")
def reduce_nditer(pickler: Any, value: Any) -> Any:
    raise Unkeepable("how far it had come cannot be set")

# SPDX-License-Identifier: MIT
"""torch tensors on the CPU: storages as buffers, shared where they were shared."""

import importlib
import pickle
from typing import Any

from . import Unkeepable, family, named
from .instances import reduce_instance
from .states import set_state

ARRAYS = "numpy arrays"


def torch() -> Any:
    return importlib.import_module("torch")


class Storage:
    """Stands for one storage, since torch wraps it anew each time it is asked for."""

    def __init__(self, tensor: Any) -> None:
        self.bytes = flat(tensor).numpy()


class Borrowed:
    """Stands for the memory of a numpy array."""

    def __init__(self, array: Any) -> None:
        self.array = array


def flat(tensor: Any) -> Any:
    """All of the memory behind a tensor, as bytes."""
    kind = torch()
    return kind.empty(0, dtype=kind.uint8).set_(untyped(tensor))


def untyped(tensor: Any) -> Any:
    if hasattr(tensor, "untyped_storage"):  # since torch 2
        return tensor.untyped_storage()
    return tensor.storage()._storage


@named("vivarium_kernel.snapshot.reducers.torch_.Storage")
def reduce_storage(pickler: Any, storage: Storage) -> Any:
    data = pickle.PickleBuffer(storage.bytes) if storage.bytes.nbytes else bytearray()
    return make_storage, (data,)


def make_storage(data: Any) -> Any:
    kind = torch()
    if not len(data):
        return kind.empty(0, dtype=kind.uint8)
    if type(data) is bytes:
        data = bytearray(data)
    return kind.frombuffer(data, dtype=kind.uint8)


@named("torch.Tensor", "torch.nn.parameter.Parameter")
def reduce_tensor(pickler: Any, tensor: Any) -> Any:
    kind = torch()
    usual = tensor.device.type == "cpu" and tensor.layout is kind.strided
    if not usual or tensor.is_quantized or tensor.is_conj() or tensor.is_neg():
        if not tensor.is_leaf:
            return detached, (tensor.detach(),)
        return reduce_instance(pickler, tensor)
    bare = tensor.detach()
    address = bare.data_ptr() - bare.storage_offset() * bare.element_size()
    layout = (tensor.dtype, tensor.storage_offset(), tuple(tensor.shape), tensor.stride())
    made = (type(tensor).__name__, storage_at(pickler, address, bare), layout)
    state = (tensor.requires_grad and tensor.is_leaf, tensor.grad if tensor.is_leaf else None)
    more = vars(tensor) if tensor.__dict__ else {}
    return make_tensor, made, (*state, more), None, None, fill_tensor


def storage_at(pickler: Any, address: int, tensor: Any) -> Any:
    """What stands for the memory at this address: one object for all who share it."""
    known = pickler.sharing
    if ARRAYS not in known:
        known[ARRAYS] = arrays(pickler.values)
    if address not in known:
        array = known[ARRAYS].get(address)
        known[address] = Storage(tensor) if array is None else Borrowed(array)
    return known[address]


def arrays(values: list[tuple[str, Any]]) -> dict[int, Any]:
    """numpy arrays with a name, by address: a tensor may have been made from one."""
    numpy = importlib.import_module("numpy")
    found = (value for _, value in values if type(value) is numpy.ndarray)
    return {each.__array_interface__["data"][0]: each for each in found if each.flags.c_contiguous}


@named("vivarium_kernel.snapshot.reducers.torch_.Borrowed")
def reduce_borrowed(pickler: Any, borrowed: Borrowed) -> Any:
    return borrow, (borrowed.array,)


def borrow(array: Any) -> Any:
    return torch().from_numpy(array.reshape(-1).view("u1"))


def reduce_array_of_tensor(pickler: Any, value: Any) -> Any:
    """A numpy array that shows a tensor's memory."""
    owner = value.base.detach()
    address = owner.data_ptr() - owner.storage_offset() * owner.element_size()
    start = value.__array_interface__["data"][0] - address
    layout = (value.shape, value.strides, value.dtype, value.flags.writeable)
    return show, (storage_at(pickler, address, owner), start, layout)


def show(storage: Any, start: int, layout: Any) -> Any:
    from .numpy_ import make_view

    memory = storage.numpy()
    return make_view(type(memory), memory, start, layout)


def detached(tensor: Any) -> Any:
    return tensor


def make_tensor(name: str, storage: Any, layout: Any) -> Any:
    kind = torch()
    dtype, start, shape, strides = layout
    made = kind.empty(0, dtype=dtype).set_(untyped(storage), start, shape, strides)
    return kind.nn.Parameter(made, requires_grad=False) if name == "Parameter" else made


def fill_tensor(tensor: Any, state: Any) -> None:
    needs, gradient, more = state
    if needs:
        tensor.requires_grad_(True)
    if gradient is not None:
        tensor.grad = gradient
    vars(tensor).update(more)


@family("torch.jit._script.ScriptModule")
def reduce_script(pickler: Any, module: Any) -> Any:
    import io

    file = io.BytesIO()
    torch().jit.save(module, file)
    return load_script, (file.getvalue(),)


def load_script(data: bytes) -> Any:
    import io

    return torch().jit.load(io.BytesIO(data))


@named("torch._C.Generator")
def reduce_generator(pickler: Any, generator: Any) -> Any:
    if generator is torch().default_generator:
        return default_generator, ()
    if generator.device.type != "cpu":
        raise Unkeepable("it lives on another device")
    return make_generator, (generator.get_state(),)


def default_generator() -> Any:
    return torch().default_generator


def make_generator(state: Any) -> Any:
    generator = torch().Generator()
    generator.set_state(state)
    return generator


@named("torch.utils.data.dataloader._SingleProcessDataLoaderIter")
def reduce_loader(pickler: Any, iterator: Any) -> Any:
    """It refuses to be pickled, for its sampler may be a generator: here that can be."""
    return make_loader, (type(iterator),), dict(vars(iterator)), None, None, set_state


def make_loader(kind: Any) -> Any:
    return kind.__new__(kind)

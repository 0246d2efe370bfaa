# SPDX-License-Identifier: MIT
"""torch tensors on the CPU: storages as buffers, shared where they were shared."""

import importlib
import pickle
from typing import Any

from . import Unkeepable, family, named
from .instances import reduce_instance


def torch() -> Any:
    return importlib.import_module("torch")


class Storage:
    """Stands for one storage, since torch wraps it anew each time it is asked for."""

    def __init__(self, tensor: Any) -> None:
        self.bytes = flat(tensor).numpy()


def flat(tensor: Any) -> Any:
    """All of the memory behind a tensor, as bytes."""
    kind = torch()
    if hasattr(tensor, "untyped_storage"):
        storage: Any = tensor.untyped_storage()
    else:
        storage = tensor.storage()._untyped()
    return kind.empty(0, dtype=kind.uint8).set_(storage)


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
    if address not in pickler.sharing:
        pickler.sharing[address] = Storage(bare)
    layout = (tensor.dtype, tensor.storage_offset(), tuple(tensor.shape), tensor.stride())
    made = (type(tensor).__name__, pickler.sharing[address], layout)
    state = (tensor.requires_grad and tensor.is_leaf, tensor.grad if tensor.is_leaf else None)
    more = vars(tensor) if tensor.__dict__ else {}
    return make_tensor, made, (*state, more), None, None, fill_tensor


def detached(tensor: Any) -> Any:
    return tensor


def make_tensor(name: str, storage: Any, layout: Any) -> Any:
    kind = torch()
    dtype, start, shape, strides = layout
    memory: Any = storage.untyped_storage() if hasattr(storage, "untyped_storage") else None
    if memory is None:
        memory = storage.storage()._untyped()
    made = kind.empty(0, dtype=dtype).set_(memory, start, shape, strides)
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

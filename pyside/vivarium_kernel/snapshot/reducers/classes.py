# SPDX-License-Identifier: MIT
"""Classes made in cells, by value: first an empty class, then what is in it.

No code of a metaclass runs on the way back, and no __init_subclass__ of a class that is itself
restored by value: what they did is in the attributes already.
"""

import _abc  # type: ignore[import-not-found]
import abc
import types
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import GetSetDescriptorType, MemberDescriptorType
from typing import Any

from ..kinds import (
    HEAP_TYPE,
    bases_of,
    dict_of,
    flags_of,
    full_name,
    has_native_methods,
    is_found_as,
    is_own,
    module_of,
    mro_of,
    name_of,
    qualname_of,
)
from . import Unkeepable, family
from .enums import reduce_enum
from .functions import find
from .memory import reduce_ctypes_class

# Made anew by type.__new__, or never of use elsewhere.
NOT_KEPT = frozenset({"__dict__", "__weakref__", "_abc_impl", "__slotnames__"})
AT_ONCE = (
    *("__module__", "__qualname__", "__slots__", "__orig_bases__"),
    *("_fields_", "_pack_", "_type_", "_length_", "_flags_", "_restype_"),  # ctypes
)
BUILTIN = (types.BuiltinFunctionType,)
UNNAMED = {  # types of the interpreter that have a place, but not under their own name
    kind: name for name, kind in vars(types).items() if isinstance(kind, type)
}


@family("builtins.type")
def reduce_class(pickler: Any, kind: type) -> Any:
    place = where(kind)
    if place is not None:
        pickler.modules.add(place[0])
        return NotImplemented if place[1] == qualname_of(kind) else (find, place)
    if kind in (type(None), type(...), type(NotImplemented)):
        return NotImplemented  # the pickler knows these
    if module_of(type(kind)) == "_ctypes" or module_of(kind) == "_ctypes":
        found = reduce_ctypes_class(kind)
        if found is not None:
            return found
    if not flags_of(kind) & HEAP_TYPE or has_native_methods(kind):
        raise Unkeepable(f"{full_name(kind)} has no name to import it by")
    if is_enum(kind):
        return reduce_enum(pickler, kind)
    return take_apart(kind)


def where(kind: type) -> tuple[str, str] | None:
    """Module and path of a class that can be imported."""
    module = module_of(kind)
    for path in (qualname_of(kind), name_of(kind)):
        if is_found_as(kind, module, path):
            return module, path
    return ("types", UNNAMED[kind]) if kind in UNNAMED else None


def is_enum(kind: type) -> bool:
    return any(full_name(base) == "enum.Enum" for base in mro_of(kind))


def take_apart(kind: type) -> Any:
    inside = dict_of(kind)
    seed = {name: inside[name] for name in AT_ONCE if name in inside}
    slots = seed.get("__slots__", ())
    hidden = {slots} if isinstance(slots, str) else set(slots)
    state = {
        name: value
        for name, value in inside.items()
        if name not in NOT_KEPT and name not in seed and not is_slot(value, kind)
    }
    state = {name: value for name, value in state.items() if name not in hidden}
    made = (type(kind), name_of(kind), bases_of(kind), seed)
    return make_class, made, (state, registered(kind)), None, None, fill_class


def is_slot(value: object, kind: type) -> bool:
    descriptor = type(value) in (MemberDescriptorType, GetSetDescriptorType)
    if full_name(type(value)) == "_ctypes.CField":
        return True
    return descriptor and value.__objclass__ is kind  # type: ignore[attr-defined]


def registered(kind: type) -> list[type]:
    """The virtual subclasses of an abstract class."""
    if "_abc_impl" not in dict_of(kind):
        return []
    found = [reference() for reference in _abc._get_dump(kind)[0]]
    return sorted((each for each in found if each is not None), key=full_name)


def make_class(meta: type, name: str, bases: tuple[type, ...], seed: dict[str, Any]) -> Any:
    maker = maker_of(meta)
    ours = [base for each in bases for base in mro_of(each) if is_own(base)]
    # The error: a library's __init_subclass__ wants arguments.
    with silenced(ours), suppress(Exception):
        return maker.__new__(meta, name, bases, dict(seed))
    with silenced([base for each in bases for base in mro_of(each)]):
        return maker.__new__(meta, name, bases, dict(seed))


def maker_of(meta: type) -> Any:
    """The class whose __new__ is what every metaclass's comes down to."""
    if abc.ABCMeta in mro_of(meta):
        return abc.ABCMeta
    makers = (base for base in mro_of(meta) if type(dict_of(base).get("__new__")) in BUILTIN)
    return next(makers)


@contextmanager
def silenced(kinds: list[type]) -> Iterator[None]:
    """No __init_subclass__ of these classes runs inside."""
    name = "__init_subclass__"
    kept = {kind: dict_of(kind)[name] for kind in kinds if name in dict_of(kind)}
    kept = {kind: value for kind, value in kept.items() if flags_of(kind) & HEAP_TYPE}
    nothing = classmethod(lambda cls, **_: None)
    for kind in kept:
        type.__setattr__(kind, name, nothing)
    try:
        yield
    finally:
        for kind, value in kept.items():
            type.__setattr__(kind, name, value)


def setter_of(kind: type) -> Any:
    """type.__setattr__, or what a native metaclass has in its place."""
    found = (dict_of(base).get("__setattr__") for base in mro_of(type(kind)))
    return next(each for each in found if type(each) is types.WrapperDescriptorType)


def fill_class(kind: type, parts: tuple[dict[str, Any], list[type]]) -> None:
    state, subclasses = parts
    put = setter_of(kind)
    for name, value in state.items():
        put(kind, name, value)
    for each in subclasses:
        abc.ABCMeta.register(kind, each)  # type: ignore[arg-type]

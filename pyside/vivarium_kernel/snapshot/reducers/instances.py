# SPDX-License-Identifier: MIT
"""Everything that has no reducer of its own: what its own __reduce_ex__ says, looked over."""

import copyreg
from collections.abc import Iterable
from contextlib import suppress
from types import BuiltinFunctionType, WrapperDescriptorType
from typing import Any, NamedTuple

from ..kinds import dict_of, full_name, inherited, is_found_as, is_native, is_own, mro_of
from . import Unkeepable
from .containers import needs_care, take_items
from .plain import is_named_tuple
from .states import set_state

NEW_OBJECT = vars(copyreg)["__newobj__"]
AS_OBJECTS = ("__reduce_ex__", "__reduce__", "__getstate__", "__class__")
BUILTIN = (BuiltinFunctionType,)
NOT_THERE = ("__getnewargs_ex__", "__getattr__")


def is_plain(kind: type, sample: object) -> bool:
    """Its instances are a __dict__ and slots: the C pickler needs no help, and cannot fail."""
    if kind in copyreg.dispatch_table or issubclass(kind, (list, dict)):
        return False
    if any(inherited(kind, name) is not dict_of(object).get(name) for name in AS_OBJECTS):
        return False
    if any(inherited(kind, name) is not None for name in NOT_THERE) or intercepts(kind):
        return False
    getter = inherited(kind, "__getnewargs__")
    if makes_itself(kind) if getter is None else not is_named_tuple(kind, getter):
        return False
    with suppress(BaseException):
        object.__reduce_ex__(sample, 5)
        return True
    return False


def reduce_instance(pickler: Any, value: Any) -> Any:
    kind = type(value)
    reduce: Any = copyreg.dispatch_table.get(kind)
    if reduce is not None:
        reduced = reduce(value)
    else:
        reduce = kind.__reduce_ex__
        reduced = reduce(value, 5)
    if type(reduced) is str:
        return by_name(value, reduced)
    check(reduced)
    parts = list(reduced) + [None] * (6 - len(reduced))
    facts = facts_of(pickler, kind)
    if reduced[0] is NEW_OBJECT and facts.makes_itself:
        parts[:2] = make_native, native_arguments(kind, value)
    elif reduced[0] is NEW_OBJECT and value.__class__ is not kind:
        parts[0] = make_object  # a proxy that passes for another class
    if facts.library:
        refuse_broken_handles(pickler, parts[2])
    if parts[5] is None and facts.care:
        take_items(value, parts)
        return tuple(parts)
    # What looks for __setstate__ on a half-made object may run a __getattr__ that recurses.
    if parts[2] is not None and parts[5] is None and facts.own_look_up:
        parts[5] = set_state
    for place in (3, 4):
        if parts[place] is not None:  # now: what iterates may fail
            parts[place] = iter(list(parts[place]))
    return tuple(parts)


def check(reduced: Any) -> None:
    """What C code would stumble over, with the whole name."""
    if type(reduced) is not tuple or not 2 <= len(reduced) <= 6:
        raise Unkeepable("its __reduce__ returns no tuple of 2 to 6")
    if not callable(reduced[0]) or type(reduced[1]) is not tuple:
        raise Unkeepable("its __reduce__ returns no function with arguments")
    if len(reduced) == 6 and reduced[5] is not None and not callable(reduced[5]):
        raise Unkeepable("its __reduce__ returns a setter that cannot be called")


def by_name(value: Any, name: str) -> str:
    module = getattr(value, "__module__", None)
    if type(module) is str and is_found_as(value, module, name):
        return name
    raise Unkeepable(f"it is no longer {name} of its module")


def intercepts(kind: type) -> bool:
    """Every look-up of an attribute runs code of its class."""
    return type(inherited(kind, "__getattribute__")) is not WrapperDescriptorType


def looks_up_by_itself(kind: type) -> bool:
    if inherited(kind, "__setstate__") is not None:
        return False
    return intercepts(kind) or inherited(kind, "__getattr__") is not None


class Facts(NamedTuple):
    library: bool
    care: bool
    own_look_up: bool
    makes_itself: bool


def facts_of(pickler: Any, kind: type) -> Facts:
    if id(kind) not in pickler.facts:
        library = pickler.is_library(pickler.keep_alive(kind))
        own_new = not library and makes_itself(kind)
        found = Facts(library, needs_care(kind), looks_up_by_itself(kind), own_new)
        pickler.facts[id(kind)] = found
    known: Facts = pickler.facts[id(kind)]
    return known


def refuse_broken_handles(pickler: Any, state: Any) -> None:
    """A library's wrapper round a tombstone may crash its native half: lose the wrapper."""
    for value in values_of(state):
        kind = type(value)
        if is_handle(kind) or id(kind) in pickler.native_lost:
            raise Unkeepable(f"it holds a {full_name(kind)}, which lives outside of Python")


def values_of(state: Any) -> Iterable[Any]:
    if type(state) is tuple and len(state) == 2:
        return [each for part in state for each in values_of(part)]
    return state.values() if type(state) is dict else ()


def is_handle(kind: type) -> bool:
    if kind.__name__ == "PyCapsule":
        return True
    return any(base.__module__ == "_ctypes" for base in mro_of(kind)) and holds_pointer(kind)


def holds_pointer(kind: Any) -> bool:
    """A ctypes type that has an address in it."""
    names = {base.__name__ for base in mro_of(kind)}
    if names & {"_Pointer", "CFuncPtr", "_CFuncPtr"}:
        return True
    if "Array" in names:
        return holds_pointer(kind._type_)
    if names & {"Structure", "Union"}:
        return any(holds_pointer(field[1]) for field in getattr(kind, "_fields_", ()))
    return getattr(kind, "_type_", "") in ("P", "z", "Z", "O")


def learn_lost(pickler: Any, value: Any) -> bool:
    """True: this native type cannot be kept, which was not known before."""
    kind = type(value)
    if not is_native(kind) or id(kind) in pickler.native_lost:
        return False
    pickler.native_lost[id(kind)] = kind
    return True


def makes_itself(kind: type) -> bool:
    """It has a __new__ of a cell: that would want arguments, or count, or give another."""
    maker = next(base for base in mro_of(kind) if "__new__" in dict_of(base))
    return type(dict_of(maker)["__new__"]) is staticmethod and is_own(maker)


def native_of(kind: type) -> Any:
    return next(base for base in mro_of(kind) if type(dict_of(base).get("__new__")) in BUILTIN)


def native_arguments(kind: type, value: Any) -> tuple[Any, ...]:
    native = native_of(kind)
    arguments = dict_of(native).get("__getnewargs__", lambda _: ())
    return (native, kind, *arguments(value))


def make_native(native: Any, kind: type, *args: Any) -> Any:
    return native.__new__(kind, *args)


def make_object(kind: type, *args: Any) -> Any:
    return kind.__new__(kind, *args)

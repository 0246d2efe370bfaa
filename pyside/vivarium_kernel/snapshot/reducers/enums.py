# SPDX-License-Identifier: MIT
"""Enums made in cells, and their members.

The members are made by the enum's own machinery from plain data; what a __new__ or __init__ of
the class did to them is in their state.
"""

import enum
from contextlib import suppress
from typing import Any

from ..kinds import bases_of, dict_of, module_of, mro_of, name_of, qualname_of
from . import family

MACHINERY = frozenset(
    {
        *("_generate_next_value_", "_member_names_", "_member_map_", "_value2member_map_"),
        *("_member_type_", "_unhashable_values_", "_hashable_values_", "_unhashable_values_map_"),
        *("_value_repr_", "_use_args_", "_new_member_", "_flag_mask_", "_all_bits_"),
        *("_singles_mask_", "_inverted_", "_boundary_", "__new__", "__new_member__", "__dict__"),
        *("__weakref__", "__module__", "__qualname__", "__slotnames__", "__doc__"),
    }
)


def reduce_enum(pickler: Any, kind: Any) -> Any:
    inside = dict_of(kind)
    members = kind.__members__
    data = [(name, plain(kind, member)) for name, member in members.items()]
    extra = {
        name: value
        for name, value in inside.items()
        if name not in MACHINERY and name not in members and not is_machinery(value)
    }
    extra["__doc__"] = inside.get("__doc__")
    for name in ("_missing_", "_generate_next_value_"):
        if name in inside:
            extra[name] = inside[name]
    states = [(name, dict(vars(member))) for name, member in members.items()]
    home = {"__module__": module_of(kind), "__qualname__": qualname_of(kind)}
    boundary = inside.get("_boundary_")
    made = ((type(kind), name_of(kind), bases_of(kind)), home, data, boundary)
    return make_enum, made, (extra, states), None, None, fill_enum


def plain(kind: Any, member: Any) -> Any:
    """The value that makes the same member when there is no __new__ of the class's own."""
    data = kind._member_type_
    if data in (int, str, float, bytes, complex, tuple):
        return data(member) if data is not str else str.__str__(member)
    return member._value_


def is_machinery(value: object) -> bool:
    return type(value).__module__ == "enum" or isinstance(value, enum.Enum)


def make_enum(made: Any, home: dict[str, str], data: Any, boundary: Any) -> Any:
    meta, name, bases = made
    body = meta.__prepare__(name, bases)
    body.update(home)
    for member, value in data:
        body[member] = value
    more = {} if boundary is None else {"boundary": boundary}
    return meta(name, bases, body, **more)


def fill_enum(kind: Any, parts: tuple[dict[str, Any], list[tuple[str, Any]]]) -> None:
    extra, states = parts
    for name, value in extra.items():
        type.__setattr__(kind, name, value)
    for name, state in states:
        member = kind._member_map_[name]
        old = member._value_
        member.__dict__.update(state)
        if old != member._value_:
            remap(kind, member, old)


def remap(kind: Any, member: Any, old: Any) -> None:
    values = kind._value2member_map_
    if values.get(old) is member:
        del values[old]
    with suppress(TypeError):  # not hashable: found by comparison
        values.setdefault(member._value_, member)


@family("enum.Enum")
def reduce_member(pickler: Any, member: Any) -> Any:
    kind = type(member)
    name = member._name_
    if name is not None and mro_of(kind) and name in kind._member_map_:
        return find_member, (kind, name)
    return kind, (member._value_,)  # a combination of flags


def find_member(kind: Any, name: str) -> Any:
    return kind._member_map_[name]

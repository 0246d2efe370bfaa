# SPDX-License-Identifier: MIT
"""Classes derived from list, dict and set: their content is put back without their own methods,
which may want a state that is not there yet, or do something each time."""

from typing import Any

from ..kinds import dict_of, inherited
from .states import set_state

OWN_METHODS = {
    dict: ("__setitem__", "items", "__iter__"),
    list: ("append", "extend", "__iter__"),
}


def needs_care(kind: type) -> bool:
    """It is a dict or list with methods of its own that the pickler would call."""
    if inherited(kind, "__reduce__") is not dict_of(object)["__reduce__"]:
        return False
    if inherited(kind, "__reduce_ex__") is not dict_of(object)["__reduce_ex__"]:
        return False
    for base, names in OWN_METHODS.items():
        if issubclass(kind, base):
            return any(inherited(kind, name) is not dict_of(base).get(name) for name in names)
    return False


def take_items(value: Any, parts: list[Any]) -> None:
    """Content and state become one state, with a setter that knows both."""
    base: Any = dict if isinstance(value, dict) else list
    content = list(base.items(value)) if base is dict else list(base.__iter__(value))
    parts[2:] = [(content, parts[2]), None, None, fill]


def fill(value: Any, parts: tuple[list[Any], Any]) -> None:
    content, state = parts
    if isinstance(value, dict):
        for key, item in content:
            dict.__setitem__(value, key, item)
    else:
        list.extend(value, content)
    if state is None:
        return
    if hasattr(type(value), "__setstate__"):
        type(value).__setstate__(value, state)
    else:
        set_state(value, state)

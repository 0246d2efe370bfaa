# SPDX-License-Identifier: MIT
"""How each kind of object is taken apart: (function, arguments, state, ..., setter).

A reducer gets the pickler and the object.  It returns what __reduce_ex__ may return, or raises
Unkeepable with the reason.  Libraries' types are named, never imported: a type can only be met
when its library is there.
"""

import importlib
from collections.abc import Callable
from typing import Any

Reducer = Callable[[Any, Any], Any]

EXACT: dict[type, Reducer] = {}
NAMED: dict[str, Reducer] = {}  # "module.Class", that class only
FAMILIES: dict[str, Reducer] = {}  # "module.Class" and what is derived from it
FAMILIES_MODULES = (
    "anchors",
    "growing",
    "buffers",
    "plain",
    "functions",
    "classes",
    "modules",
    "files",
    "locks",
    "weak",
    "exceptions",
    "values",
    "memory",
    "sqlite_",
    "tables",
    "matplotlib_",
    "typing_",
    "generators",
    "numpy_",
    "hdf",
    "lxml_",
    "torch_",
    "libraries_",
    "defaults",
)


class Unkeepable(Exception):
    """This object cannot be kept; the text says why."""


def exactly(*kinds: type) -> Callable[[Reducer], Reducer]:
    def register(reducer: Reducer) -> Reducer:
        EXACT.update(dict.fromkeys(kinds, reducer))
        return reducer

    return register


def named(*names: str) -> Callable[[Reducer], Reducer]:
    def register(reducer: Reducer) -> Reducer:
        NAMED.update(dict.fromkeys(names, reducer))
        return reducer

    return register


def family(*names: str) -> Callable[[Reducer], Reducer]:
    def register(reducer: Reducer) -> Reducer:
        FAMILIES.update(dict.fromkeys(names, reducer))
        return reducer

    return register


def as_it_is(pickler: Any, value: Any) -> Any:
    """The pickler does this type without help, and it cannot fail: nothing is called for it."""
    return NotImplemented


def unkeepable(why: str, *kinds: str) -> None:
    """These kinds, and what is derived from them, become tombstones."""

    def refuse(_: Any, __: object) -> Any:
        raise Unkeepable(why)

    FAMILIES.update(dict.fromkeys(kinds, refuse))


def load_all() -> None:
    for module in FAMILIES_MODULES:
        importlib.import_module(f"{__name__}.{module}")

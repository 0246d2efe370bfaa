# SPDX-License-Identifier: MIT
"""What the namespace holds, for the reply's metadata: one short text per name.

No user code runs here: a value is looked into only when its type is exactly one of those known
below, by calls that these types themselves implement.  No reference to a user's object is kept.
"""

import json
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Mapping, MutableMapping
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from .cells import Cells

MAX_NAMES = 100  # a list longer than this helps nobody
MAX_TEXT = 80  # characters of one summary
MAX_NAME = 200  # characters of a name worth listing
MAX_SCALAR = 24  # characters of a number
MAX_COLUMNS = 5
NOT_THERE = object()


class Namespace:
    """What report() says of one namespace."""

    def __init__(self, hidden: Mapping[str, Any], budget: int, cells: Cells) -> None:
        self._hidden = hidden  # what IPython itself puts there
        self._budget = budget  # bytes of JSON for all names
        self._cells = cells

    def report(self, namespace: MutableMapping[str, Any]) -> dict[str, Any]:
        variables: list[tuple[str, Any]] = []
        modules: list[list[str]] = []
        for name, value in list(namespace.items()):
            if type(name) is not str or name.startswith("_"):
                continue
            if self._hidden.get(name, NOT_THERE) is value or name in ("In", "Out"):
                continue
            if issubclass(type(value), ModuleType):
                modules.append([name, module_name(value)])
            else:
                variables.append((name, value))
        room = Room(self._budget)
        modules = [entry for entry in modules if room.takes(entry)]
        listed = self._latest_first(variables)
        chosen = [entry for entry in map(describe, listed[:MAX_NAMES]) if room.takes(entry)]
        return {
            "vars": chosen,
            "more_vars": len(listed) - len(chosen),
            "modules": modules,
        }

    def _latest_first(self, variables: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
        """Names bound anew in this cell come first, the last bound of them foremost."""
        latest = list(reversed(variables))
        return sorted(latest, key=lambda entry: -self._cells.when(entry[0]))


class Room:
    """Counts bytes of JSON down."""

    def __init__(self, size: int) -> None:
        self._left = size

    def takes(self, entry: list[str]) -> bool:
        if len(entry[0]) > MAX_NAME:
            return False
        size = len(json.dumps(entry, ensure_ascii=False).encode("utf-8", "replace")) + 2
        if size > self._left:
            return False
        self._left -= size
        return True


def describe(entry: tuple[str, Any]) -> list[str]:
    name, value = entry
    return [name, shorten(summarize(value), MAX_TEXT)]


def summarize(value: Any) -> str:
    kind = type(value)
    known = EXACT.get(kind)
    if known is not None:
        return known(value)
    if issubclass(kind, type):
        return "class"
    for module, name, summary in LIBRARIES:
        if library_type(module, name) is kind:
            return summary(value)
    numpy = sys.modules.get("numpy")
    name = type_name(kind)
    if type(numpy) is ModuleType and vars(numpy).get(name) is kind:
        generic = vars(numpy).get("generic")
        if type(generic) is type and issubclass(kind, generic):
            return f"{name} {shorten(str(value), MAX_SCALAR)}"
    return name


def library_type(module: str, name: str) -> object:
    """A type of a library that is imported already; None when it is not, or is a fake."""
    found = sys.modules.get(module)
    return vars(found).get(name) if type(found) is ModuleType else None


def type_name(kind: type) -> str:
    # Through `type` itself: a metaclass may have made __name__ something that runs.
    return str(type.__dict__["__name__"].__get__(kind))


def module_name(module: ModuleType) -> str:
    name = object.__getattribute__(module, "__dict__").get("__name__")
    return name if type(name) is str else "module"


def shorten(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def counted(unit: str) -> Callable[[Any], str]:
    def summary(value: Any) -> str:
        size = len(value)
        return f"{size} {unit}" if size == 1 else f"{size} {unit}s"

    return summary


def number(value: Any) -> str:
    if type(value) is int and value.bit_length() > 256:
        return f"int of {value.bit_length()} bits"
    return shorten(repr(value), MAX_SCALAR)


def function(value: Any) -> str:
    name = value.__name__
    return "lambda" if name == "<lambda>" else f"{name}()"


def label(value: Any) -> str:
    """A column's name."""
    kind = type(value)
    if kind is str:
        return shorten(value, MAX_SCALAR)
    if kind in (int, float, bool):
        return number(value)
    if kind is tuple:
        return "/".join(label(part) for part in value[:MAX_COLUMNS])
    return type_name(kind)


def frame(value: Any) -> str:
    rows, width = value.shape
    columns = value.columns
    names = [label(columns[i]) for i in range(min(width, MAX_COLUMNS))]
    text = f"{rows}x{width} ["
    shown = 0
    for name in names:
        if shown and len(text) + len(name) > MAX_TEXT - 12:
            break
        text += (", " if shown else "") + name
        shown += 1
    return text + (f", +{width - shown}]" if width > shown else "]")


def series(value: Any) -> str:
    return f"Series {len(value)} {value.dtype}"


def array(value: Any) -> str:
    return f"ndarray {'x'.join(map(str, value.shape)) or 'scalar'} {value.dtype}"


EXACT: dict[type, Callable[[Any], str]] = {
    str: counted("char"),
    bytes: counted("byte"),
    bytearray: counted("byte"),
    dict: counted("key"),
    OrderedDict: counted("key"),
    defaultdict: counted("key"),
    Counter: counted("key"),
    list: counted("item"),
    tuple: counted("item"),
    set: counted("item"),
    frozenset: counted("item"),
    deque: counted("item"),
    range: counted("item"),
    int: number,
    float: number,
    complex: number,
    bool: number,
    type(None): number,
    FunctionType: function,
    BuiltinFunctionType: function,
}

LIBRARIES: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
    ("pandas", "DataFrame", frame),
    ("pandas", "Series", series),
    ("numpy", "ndarray", array),
    ("polars", "DataFrame", frame),
    ("polars", "Series", series),
)

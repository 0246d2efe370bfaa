# SPDX-License-Identifier: MIT
"""What the namespace holds, for the reply's metadata: one short text per name.

No user code runs here: describe.py says how.  No reference to a user's object is kept.
"""

import json
import sys
from collections.abc import Mapping, MutableMapping
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from .cells import Cells
from .describe import Describer, module_of, shorten, type_name

MAX_NAMES = 100  # a list longer than this helps nobody
MAX_TEXT = 80  # characters of one summary
MAX_NAME = 200  # characters of a name worth listing
MAX_TABLES = 12  # whose columns are told, for completions
MAX_COLUMNS = 60
COLUMNS_ROOM = 4096  # bytes of JSON for all of them
NOT_THERE = object()


class Namespace:
    """What report() says of one namespace."""

    def __init__(self, hidden: Mapping[str, Any], budget: int, cells: Cells) -> None:
        self._hidden = hidden  # what IPython itself puts there
        self._budget = budget  # bytes of JSON for all names
        self._cells = cells
        self._marks: dict[str, tuple[object, int]] = {}  # of each name: its mark; since when

    def report(self, namespace: MutableMapping[str, Any]) -> dict[str, Any]:
        variables: list[tuple[str, Any]] = []
        modules: list[list[str]] = []
        imports: list[list[str]] = []
        for name, value in list(namespace.items()):
            origin = origin_of(name, value, self._hidden)
            if origin is None:
                continue
            if not origin:
                variables.append((name, value))
            elif issubclass(type(value), ModuleType):
                modules.append([name, origin])
            else:
                imports.append([name, origin])
        room = Room(self._budget)
        imports.sort(key=lambda row: -self._cells.when(row[0]))
        imported = [row for row in (modules + imports)[:MAX_NAMES] if room.takes(row)]
        describer = Describer()
        listed = self._latest_first(variables, describer)
        rows = ([name, shorten(describer.text(v), MAX_TEXT)] for name, v in listed[:MAX_NAMES])
        chosen = [row for row in rows if room.takes(row)]
        return {
            "vars": chosen,
            "columns": tables(listed[:MAX_NAMES], describer),
            "more_vars": len(listed) - len(chosen),
            "modules": imported,
            "more_modules": len(modules) + len(imports) - len(imported),
        }

    def _latest_first(
        self, variables: list[tuple[str, Any]], describer: Describer
    ) -> list[tuple[str, Any]]:
        """Names bound anew or grown in this cell come first, the last of them foremost."""
        when: dict[str, int] = {}
        marks: dict[str, tuple[object, int]] = {}
        for name, value in variables:
            bound = self._cells.when(name)
            mark = describer.mark(value)
            before, since = self._marks.get(name, (mark, bound))
            if mark != before:  # not new, but not the same inside
                since = self._cells.now
            marks[name] = mark, since
            when[name] = max(bound, since)
        self._marks = marks
        latest = list(reversed(variables))  # of those of one cell, the last bound is foremost
        return sorted(latest, key=lambda entry: -when[entry[0]])


def tables(listed: list[tuple[str, Any]], describer: Describer) -> dict[str, list[str]]:
    """Of the latest tables the names of their columns."""
    room = Room(COLUMNS_ROOM)
    found: dict[str, list[str]] = {}
    for name, value in listed:
        columns = describer.columns(value, MAX_COLUMNS)
        if columns and room.takes([name, *columns]):
            found[name] = columns
        if len(found) == MAX_TABLES:
            break
    return found


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


def origin_of(name: object, value: Any, hidden: Mapping[str, Any]) -> str | None:
    """ "" for a variable, for an import what it brought; None for what no person has made."""
    if type(name) is not str or name.startswith("_") or name in ("In", "Out"):
        return None
    return None if hidden.get(name, NOT_THERE) is value else where_from(value)


def where_from(value: Any) -> str:
    """ "module", or "module.name" of a function or class that an import brings; else ""."""
    kind = type(value)
    if issubclass(kind, ModuleType):
        return module_name(value)
    if kind is FunctionType or kind is BuiltinFunctionType:
        module, name = value.__module__, value.__name__
    elif issubclass(kind, type):
        module, name = module_of(value), type_name(value)
    else:
        return ""
    if type(module) is not str or type(name) is not str or module == "__main__":
        return ""
    home = sys.modules.get(module)
    there = type(home) is ModuleType and vars(home).get(name, NOT_THERE) is value
    return f"{module}.{name}" if there else ""


def module_name(module: ModuleType) -> str:
    name = object.__getattribute__(module, "__dict__").get("__name__")
    return name if type(name) is str and name else "module"

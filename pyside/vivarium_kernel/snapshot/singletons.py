# SPDX-License-Identifier: MIT
"""Objects that a library made once, at module level: they are kept by name, so that `is` holds.

A package is looked through when the first object of one of its types is met, and again when it
has more modules; not at every dump.
"""

import sys
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from .kinds import is_by_name, module_of, top

NEVER = frozenset(
    {
        *(int, float, complex, str, bytes, bytearray, bool, type(None), list, dict, set),
        *(frozenset, tuple, type, ModuleType, FunctionType, BuiltinFunctionType, MethodType),
    }
)


class Singletons:
    def __init__(self) -> None:
        self._by_id: dict[int, tuple[Any, str, str]] = {}  # the object, its module, its name
        self._kinds: set[int] = set()  # ids of their types
        self._seen: set[str] = set()  # modules
        self._packages: dict[str, int] = {}  # modules that there were when it was looked through

    def find(self, value: object) -> tuple[str, str] | None:
        found = self._by_id.get(id(value))
        if found is None or found[0] is not value:
            return None
        _, module, name = found
        return (module, name) if vars(sys.modules[module]).get(name) is value else None

    def has(self, kind: type) -> bool:
        """There are such objects of this type; looks through the package that it comes from."""
        self._cover(top(module_of(kind)))
        return id(kind) in self._kinds

    def _cover(self, package: str) -> None:
        if not package or self._packages.get(package) == len(sys.modules):
            return
        self._packages[package] = len(sys.modules)
        inside = package + "."
        for name, module in list(sys.modules.items()):
            if (name == package or name.startswith(inside)) and name not in self._seen:
                self._seen.add(name)
                if is_by_name(module):
                    self._look_through(name, module, package)

    def _look_through(self, module: str, where: ModuleType, package: str) -> None:
        for name, value in list(vars(where).items()):
            kind = type(value)
            if kind in NEVER or issubclass(kind, type):
                continue
            if top(module_of(kind)) == package:
                self._by_id.setdefault(id(value), (value, module, name))
                self._kinds.add(id(kind))

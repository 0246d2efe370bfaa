# SPDX-License-Identifier: MIT
"""Something done to a library right after it is imported, whoever imports it and when."""

import importlib.abc
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any


class AfterImport(importlib.abc.MetaPathFinder):
    """Finds nothing by itself: it lets the others find, and is told when the module is there."""

    def __init__(self) -> None:
        self._waiting: dict[str, Callable[[Any], None]] = {}
        self._looking = False

    def install(self) -> None:
        sys.meta_path.insert(0, self)

    def do(self, name: str, action: Callable[[Any], None]) -> None:
        if name in sys.modules:
            attempt(action, sys.modules[name])
        else:
            self._waiting[name] = action

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name not in self._waiting or self._looking:
            return None
        self._looking = True  # a finder may ask for the name again
        try:
            return self._found(name, path, target)
        finally:
            self._looking = False

    def _found(self, name: str, path: Any, target: Any) -> Any:
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = None if finder is self or find is None else find(name, path, target)
            if spec is not None and hasattr(spec.loader, "exec_module"):
                self._act_after(name, spec.loader)
                return spec
        return None

    def _act_after(self, name: str, loader: Any) -> None:
        """Once it is executed: who asks for a spec need not import."""
        execute = loader.exec_module

        def exec_module(module: Any) -> None:
            with suppress(AttributeError):
                del loader.exec_module  # what others see of the module is as if we had not been
            execute(module)
            action = self._waiting.pop(name, None)
            if action is not None:
                attempt(action, module)

        with suppress(AttributeError):  # a loader of somebody's own that takes no attributes
            loader.exec_module = exec_module


def attempt(action: Callable[[Any], None], module: Any) -> None:
    """A version of the library that we do not know must still be importable."""
    with suppress(Exception):
        action(module)

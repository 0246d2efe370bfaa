# SPDX-License-Identifier: MIT
"""Modules: by name where `import` finds them again, else with what is in them."""

import importlib
import sys
from types import ModuleType
from typing import Any

from .. import live
from ..kinds import import_name, is_by_name
from . import exactly

NOT_KEPT = ("__builtins__", "__loader__", "__spec__")


@exactly(ModuleType)
def reduce_module(pickler: Any, module: ModuleType) -> Any:
    name = import_name(module)
    if is_by_name(module):
        pickler.modules.add(name)
        return importlib.import_module, (name,)
    if module is sys.modules.get("__main__") or module.__dict__ is live.namespace():
        return main_module, ()
    listed = sys.modules.get(name) is module
    state = {key: value for key, value in module.__dict__.items() if key not in NOT_KEPT}
    return make_module, (name, listed), state, None, None, fill_module


def main_module() -> ModuleType:
    return sys.modules["__main__"]


def make_module(name: str, listed: bool) -> ModuleType:
    module = ModuleType(name)
    if listed:
        module = sys.modules.setdefault(name, module)
    return module


def fill_module(module: ModuleType, state: dict[str, Any]) -> None:
    module.__dict__.update(state)

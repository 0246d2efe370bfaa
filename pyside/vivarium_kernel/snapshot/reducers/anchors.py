# SPDX-License-Identifier: MIT
"""Objects that every process has one of, and that have no name of their own to pickle by.

They are written first.  Then the pickler is told that it has written the real ones, so that it
refers to them wherever they come up, in plain containers too.
"""

import builtins
import sys
from collections.abc import Callable
from typing import Any

from .. import live
from . import exactly

ANCHORS: dict[str, Callable[[], Any]] = {
    "namespace": live.namespace,
    "builtins": lambda: builtins.__dict__,
    "modules": lambda: sys.modules,
    "path": lambda: sys.path,
}


class Anchor:
    def __init__(self, name: str) -> None:
        self.name = name


@exactly(Anchor)
def reduce_anchor(pickler: Any, anchor: Anchor) -> Any:
    return hold, (anchor.name,)


def hold(name: str) -> Any:
    return ANCHORS[name]()

# SPDX-License-Identifier: MIT
"""matplotlib: what a cell connected to a figure's events stays connected."""

from types import FunctionType, MethodType
from typing import Any

from .. import live
from . import family, unkeepable
from .instances import reduce_instance


@family("matplotlib.cbook.CallbackRegistry")
def reduce_registry(pickler: Any, registry: Any) -> Any:
    reduced = list(reduce_instance(pickler, registry))
    for signal, callbacks in registry.callbacks.items():
        for number, reference in callbacks.items():
            function = reference()
            if is_of_a_cell(function):
                reduced[2]["callbacks"].setdefault(signal, {})[number] = function
    return tuple(reduced)


def is_of_a_cell(function: Any) -> bool:
    if type(function) is MethodType:
        function = function.__func__
    return type(function) is FunctionType and function.__globals__ is live.namespace()


unkeepable("its timer and callbacks end with the process", "matplotlib.animation.Animation")

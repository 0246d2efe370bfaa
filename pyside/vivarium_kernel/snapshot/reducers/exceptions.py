# SPDX-License-Identifier: MIT
"""Exceptions, with cause and context, without calling an __init__ of the user's.

Their tracebacks hold frames, and those end with the process.
"""

from typing import Any

from ..kinds import HEAP_TYPE, flags_of, inherited, mro_of
from . import family, unkeepable
from .instances import reduce_instance

CHAIN = ("__cause__", "__context__", "__suppress_context__")


@family("builtins.BaseException")
def reduce_exception(pickler: Any, error: BaseException) -> Any:
    kind = type(error)
    native: Any = next(base for base in mro_of(kind) if not flags_of(base) & HEAP_TYPE)
    for name in ("__reduce__", "__reduce_ex__", "__getstate__"):
        if inherited(kind, name) is not inherited(native, name):
            return reduce_instance(pickler, error)
    state = dict(vars(error))
    if issubclass(native, (AttributeError, NameError, ImportError)):
        known = ("name", "obj", "path")
        state |= {name: getattr(error, name) for name in known if hasattr(error, name)}
    chain = [getattr(error, name) for name in CHAIN]
    made = native.__reduce__(error)[1]
    return make_exception, (kind, native, made), (error.args, state, chain), None, None, fill


def make_exception(kind: Any, native: Any, args: tuple[Any, ...]) -> Any:
    error = native.__new__(kind, *args)
    native.__init__(error, *args)
    return error


def fill(error: Any, parts: Any) -> None:
    error.args, state, chain = parts
    for name, value in state.items():
        object.__setattr__(error, name, value)
    for name, value in zip(CHAIN, chain, strict=True):
        setattr(error, name, value)


unkeepable("a frame ends with its process", "builtins.frame")
unkeepable("it holds frames, and those end with the process", "builtins.traceback")

# SPDX-License-Identifier: MIT
"""Type variables, which the pickler would look for by name."""

import typing
from typing import Any

from ..kinds import is_found_as
from . import named


@named("typing.TypeVar")
def reduce_variable(pickler: Any, variable: Any) -> Any:
    if is_found_as(variable, variable.__module__ or "", variable.__name__):
        return str(variable.__name__)
    how = {"covariant": variable.__covariant__, "contravariant": variable.__contravariant__}
    if getattr(variable, "__infer_variance__", False):  # a parameter of `def f[T]`
        how = {"infer_variance": True}
    made = (variable.__name__, variable.__constraints__, variable.__bound__, how)
    return make_variable, (*made, variable.__module__)


def make_variable(name: str, constraints: Any, bound: Any, how: Any, module: Any) -> Any:
    variable = typing.TypeVar(name, *constraints, bound=bound, **how)  # type: ignore[misc]
    variable.__module__ = module
    return variable


@named("typing.ParamSpec", "typing.TypeVarTuple")
def reduce_other(pickler: Any, variable: Any) -> Any:
    if is_found_as(variable, getattr(variable, "__module__", "") or "", variable.__name__):
        return str(variable.__name__)
    return type(variable), (variable.__name__,)


@named("typing.NewType")
def reduce_new_type(pickler: Any, found: Any) -> Any:
    if is_found_as(found, found.__module__ or "", found.__qualname__):
        return str(found.__qualname__)
    return make_new_type, (found.__name__, found.__supertype__, found.__module__)


def make_new_type(name: str, supertype: Any, module: str) -> Any:
    new: Any = typing.NewType
    made = new(name, supertype)
    made.__module__ = module
    return made
